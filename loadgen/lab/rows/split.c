/* A network partition with a master on each side. Rows: sentinel-split. */
#include "hazard_rows.h"

/* B's instance is a new one, on the side of the Sentinels; A's keeps its connection. */
static const struct hazard_step one_lock_on_each_side[] = {
    {LOCKS, SPLIT, NULL}, {B, KILL, NULL},       {B, RESTART, NULL}, {B, INSIST, "checked"},
    {A, SEND, NULL},      {A, UNTIL, "checked"}, {B, RELEASE, NULL}, {B, ANSWER, NULL},
    {A, RELEASE, NULL},   {A, ANSWER, NULL},     {A, RETRY, NULL},   {B, RETRY, NULL},
    HAZARD_END,
};

static const struct hazard_case split_cases[] = {
    {"redis-token", HAZARD_UNSAFE, {0}, {"Sentinel", "哨兵"}, NULL},
    {"redis-token",
     HAZARD_SAFE,
     {.fence = ON, .fence_source = "database"},
     {"Sentinel, fence from the database", "哨兵，栅栏令牌来自数据库"},
     NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_sentinel_split = {
    .id = "sentinel-split",
    .title = {"The old master still serves one client", "旧主节点还在给一个客户端发锁"},
    .story =
        {"The network splits. The Sentinels cannot reach the master, consider it dead and "
         "promote its replica. B gets the lock there. The old master still lives, on the "
         "other side with A. It does not know of B's lock and grants A the same one.",
         "网络一分为二。哨兵连不上主节点，判定它宕机，提升了副本，B "
         "在那里拿到锁。可旧主节点还活着，和 A 在另一边：它不知道 B 的锁，把同一把锁也给了 A。"},
    .warning = {"Redis Sentinel documentation: a master on the minority side of a partition keeps "
                "accepting writes. They are lost when the partition heals.",
                "Redis 哨兵文档：分区少数一侧的主节点会继续接受写入，分区恢复时这些写入全部丢失。"},
    .fix = {"Take a fence from the database. A and B write to the same database, and it refuses "
            "one of the two writes. min-replicas-to-write only shortens the window.",
            "由数据库发栅栏令牌。A 和 B 写的是同一个数据库，它会拒绝其中一个。"
            "min-replicas-to-write 只能缩短这段时间。"},
    .reach = {.never = HAZARD_NO_SERVER " memcached"},
    .with = {.redis = REDIS_SENTINEL, .lease_ms = 20000, .wait_ms = 12000, .fence = OFF},
    .steps = one_lock_on_each_side,
    .cases = split_cases,
};
