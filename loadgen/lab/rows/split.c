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
    .title = {"The old master still serves one client", "老主节点还在给一个客户端发锁"},
    .story = {"The network splits. The Sentinels do not reach the master, call it dead and promote "
              "its replica, where B gets the lock. But the old master lives, on the other side, "
              "with A: it knows of nothing, and grants A the same lock.",
              "网络一分为二。哨兵够不到主节点，当它死了，提升了副本，B 在那里拿到锁。"
              "可老主节点还活着，在另一边跟 A 在一起：它什么都不知道，把同一把锁也给了 A。"},
    .warning = {"The documentation of Redis Sentinel: a master on the minority's side of a "
                "partition goes on taking writes, which are lost when it is healed.",
                "Redis 哨兵文档：分区少数一侧的主节点会继续接受写入，愈合时这些写入全丢。"},
    .fix = {"A fence from the database, which is on one side only: the write of one of the two is "
            "refused. min-replicas-to-write shortens the window and does not close it.",
            "由数据库发栅栏令牌，数据库只在一边：两人中有一个的写会被拒绝。"
            "min-replicas-to-write 只能缩短这段时间，关不掉。"},
    .with = {.redis = REDIS_SENTINEL, .lease_ms = 20000, .wait_ms = 12000, .fence = OFF},
    .steps = one_lock_on_each_side,
    .cases = split_cases,
};
