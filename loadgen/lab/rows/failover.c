/* The lock server fails over to a replica that lacks the lock. Rows: failover. */
#include "hazard_rows.h"

static const struct hazard_step promoted_without_the_lock[] = {
    {LOCKS, CUT_REPLICA, NULL}, {A, SEND, NULL},    {A, UNTIL, "checked"}, {LOCKS, FAIL_OVER, NULL},
    {B, INSIST, "checked"},     {A, RELEASE, NULL}, {A, ANSWER, NULL},     {B, RELEASE, NULL},
    {B, ANSWER, NULL},          {A, RETRY, NULL},   {B, RETRY, NULL},      HAZARD_END,
};

static const struct hazard_step replica_must_have_it[] = {
    {LOCKS, CUT_REPLICA, NULL},
    {A, RUN, NULL},
    HAZARD_END,
};

static const struct hazard_step master_needs_a_copy[] = {
    {LOCKS, NEED_COPY, NULL},
    {LOCKS, CUT_REPLICA, NULL},
    {A, RUN, NULL},
    HAZARD_END,
};

/* The nearest that five independent nodes have to it: one of the holder's dies. */
static const struct hazard_step node_of_the_majority_dies[] = {
    {A, SEND, NULL},           {A, UNTIL, "checked"}, {LOCKS, DOWN, "1"}, {B, SEND, NULL},
    {B, AS_FAR_AS, "checked"}, {A, RELEASE, NULL},    {A, ANSWER, NULL},  {B, RELEASE, NULL},
    {B, ANSWER, NULL},         {LOCKS, UP, "1"},      HAZARD_END,
};

static const struct hazard_step leader_dies[] = {
    {A, SEND, NULL},       {A, UNTIL, "checked"},
    {LOCKS, DEPOSE, NULL}, {B, INSIST, "checked"},
    {A, RELEASE, NULL},    {A, ANSWER, NULL},
    {B, RELEASE, NULL},    {B, ANSWER, NULL},
    {B, RETRY, NULL},      HAZARD_END,
};

static const struct hazard_case failover_cases[] = {
    {"redis-token", HAZARD_UNSAFE, {.redis = REDIS_SENTINEL}, {"Sentinel", "哨兵"}, NULL},
    {"redis-token",
     HAZARD_SAFE,
     {.redis = REDIS_SENTINEL, .fence = ON, .fence_source = "database"},
     {"Sentinel, fence from the database", "哨兵，栅栏令牌来自数据库"},
     NULL},
    {"redis-token",
     HAZARD_REFUSED,
     {.redis = REDIS_SENTINEL, .replicas = 1},
     {"a replica must have the lock", "锁必须先到副本"},
     replica_must_have_it},
    {"redis-token",
     HAZARD_REFUSED,
     {.redis = REDIS_SENTINEL},
     {"the master needs a replica to write", "主节点没有副本就不写"},
     master_needs_a_copy},
    {"redlock",
     HAZARD_SAFE,
     {0},
     {"5 nodes, one dies", "5 个节点宕 1 个"},
     node_of_the_majority_dies},
    {"zk-sequential",
     HAZARD_SAFE,
     {.servers = 3},
     {"3 servers, the leader dies", "3 台服务器，leader 宕机"},
     leader_dies},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_failover = {
    .id = "failover",
    .title = {"The master dies before the lock reaches its replica",
              "锁还没复制到副本，主节点就宕机"},
    .story =
        {"Replication is asynchronous. The master grants A the lock and dies before the replica "
         "has it. The Sentinels promote the replica, which has no lock. So B gets the lock too.",
         "复制是异步的。主节点把锁给了 "
         "A，还没复制到副本就宕机了。哨兵提升副本，副本不知道有这把锁，于是 B 也拿到了锁。"},
    .warning = {"The Redis documentation of distributed locks: why failover-based implementations "
                "are not enough.",
                "Redis 分布式锁文档：为什么靠主从切换的实现不够。"},
    .fix = {"Use independent nodes and a majority. Or count a lock only when a replica has it. Or "
            "take a fence from the database: it works whatever the lock server forgets.",
            "用相互独立的节点和多数派；或者副本收到才算数；或者不管锁服务器忘了什么，"
            "由数据库发栅栏令牌。"},
    .gives_up = true,
    .reach = {.never = HAZARD_NO_SERVER " memcached"},
    .with = {.lease_ms = 20000, .wait_ms = 12000, .fence = OFF},
    .steps = promoted_without_the_lock,
    .cases = failover_cases,
};
