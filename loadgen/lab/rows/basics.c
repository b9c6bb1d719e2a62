/* Why a lock is needed. Rows: lost-update, two-processes, oversell. */
#include "hazard_rows.h"

static const struct hazard_step both_read_then_both_write[] = {
    {A, SEND, NULL},           {A, UNTIL, "decided"}, {B, SEND, NULL},
    {B, AS_FAR_AS, "decided"}, {A, RELEASE, NULL},    {A, ANSWER, NULL},
    {B, RELEASE, NULL},        {B, ANSWER, NULL},     HAZARD_END,
};

static const struct hazard_case lost_update_cases[] = {
    {"none", HAZARD_UNSAFE, {.instances = 1}, {NULL}, NULL},
    {"mutex", HAZARD_SAFE, {.instances = 1}, {NULL}, NULL},
    {"redis-setnx", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"redis-setnx-expire", HAZARD_SAFE, {.lease_ms = 5000}, {NULL}, NULL},
    {"redis-set", HAZARD_SAFE, {.lease_ms = 5000}, {NULL}, NULL},
    {"redis-getset", HAZARD_SAFE, {.lease_ms = 5000}, {NULL}, NULL},
    {"redis-token", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"redis-reentrant", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"redis-fair", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"redis-readwrite", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"redis-semaphore", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"redlock", HAZARD_SAFE, {.lease_ms = 5000}, {NULL}, NULL},
    {"memcached", HAZARD_SAFE, {.lease_ms = 5000}, {NULL}, NULL},
    {"zk-ephemeral", HAZARD_SAFE, {.lease_ms = 5000}, {NULL}, NULL},
    {"zk-sequential", HAZARD_SAFE, {.lease_ms = 5000}, {NULL}, NULL},
    {"zk-readwrite", HAZARD_SAFE, {.lease_ms = 5000}, {NULL}, NULL},
    {"sql-unique", HAZARD_SAFE, {.lease_ms = 5000}, {NULL}, NULL},
    {"sql-unique-forever", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"pg-advisory", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"pg-advisory-xact", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"sql-row", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"sql-atomic", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"sql-version", HAZARD_SAFE, {0}, {NULL}, NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_lost_update = {
    .id = "lost-update",
    .title = {"Two withdrawals read the same balance", "两笔扣款读到同一个余额"},
    .story = {"An account holds 1000. A takes 200 and B takes 300 at the same time. Both read "
              "1000, compute a new balance and write it. B's write overwrites A's. The bank has "
              "paid 500, but the account is only 300 poorer.",
              "账户里有 1000。A 扣 200，B 同时扣 300。两个请求都读到 "
              "1000，各自算出新余额再写回：后写的覆盖了先写的。银行付出了 500，账户却只少了 300。"},
    .warning =
        {"Berenson and others, A Critique of ANSI SQL Isolation Levels (1995), call it the lost "
         "update. Any program that reads, computes and writes back can have it.",
         "Berenson 等人 1995 年的论文把它叫作“丢失更新”：凡是先读、再算、再写回的程序都会遇到。"},
    .fix = {"Let one request at a time read, decide and write. Use any lock that both sides share, "
            "or one SQL statement that does all three.",
            "让读、算、写一次只由一个请求完成：用双方共用的任何一种锁，或者一条完成这三步的 SQL "
            "语句。"},
    .steps = both_read_then_both_write,
    .cases = lost_update_cases,
};

static const struct hazard_case two_processes_cases[] = {
    {"mutex", HAZARD_UNSAFE, {.instances = 2}, {"2 instances", "两个实例"}, NULL},
    {"mutex", HAZARD_SAFE, {.instances = 1}, {"1 instance", "一个实例"}, NULL},
    {"redis-token", HAZARD_SAFE, {.instances = 2}, {"2 instances", "两个实例"}, NULL},
    {"zk-sequential",
     HAZARD_SAFE,
     {.instances = 2, .lease_ms = 5000},
     {"2 instances", "两个实例"},
     NULL},
    {"pg-advisory", HAZARD_SAFE, {.instances = 2}, {"2 instances", "两个实例"}, NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_two_processes = {
    .id = "two-processes",
    .title = {"A lock inside one process does not stop a second process", "进程内的锁遇上两个进程"},
    .story = {"The service is scaled out. A's request goes to one instance, B's to the other. Each "
              "instance takes a lock in its own memory, which the other cannot see.",
              "服务扩容成两个实例：A 的请求到一个，B "
              "的到另一个。各自拿到的都是自己内存里的锁，互相看不见。"},
    .warning = {"Every introduction to distributed locks begins here: synchronized and mutexes "
                "work only inside one process.",
                "讲分布式锁的文章都从这里开始：synchronized 和互斥锁只在本进程内有效。"},
    .fix = {"Use a lock that all instances see: in Redis, ZooKeeper or the database.",
            "换成所有实例都能看到的锁：放在 Redis、ZooKeeper 或数据库里。"},
    .reach = {.holds = LK_CAP_DISTRIBUTED},
    .steps = both_read_then_both_write,
    .cases = two_processes_cases,
};

static const struct hazard_step crowd_buys[] = {
    {CROWD, SEND, NULL},
    {CROWD, AS_FAR_AS, "decided"},
    {CROWD, RELEASE, NULL},
    {CROWD, ANSWER, NULL},
    HAZARD_END,
};

static const struct hazard_case oversell_cases[] = {
    {"none", HAZARD_UNSAFE, {0}, {NULL}, NULL},
    {"mutex", HAZARD_SAFE, {.instances = 1}, {NULL}, NULL},
    {"redis-setnx", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"redis-setnx-expire", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"redis-set", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"redis-getset", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"redis-token", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"redis-reentrant", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"redis-fair", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"redis-readwrite", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"redis-semaphore", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"redlock", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"memcached", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"zk-ephemeral", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"zk-sequential", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"zk-readwrite", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"sql-unique", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"sql-unique-forever", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"pg-advisory", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"pg-advisory-xact", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"sql-row", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"sql-atomic", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"sql-version", HAZARD_SAFE, {0}, {NULL}, NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_oversell = {
    .id = "oversell",
    .title = {"2,000 buyers, 100 pieces", "两千人抢一百件"},
    .story = {"A flash sale starts, and all buyers come at once. Several read the same stock. Each "
              "finds enough and takes one piece. More orders are confirmed than there are pieces.",
              "秒杀开始，买家同时涌入。多个请求读到同一个库存，都判断够卖，都减一：确认的订单比库存"
              "还多。"},
    .warning = {"Every flash-sale tutorial promises to prevent this overselling.",
                "每一篇秒杀教程都说要防的“超卖”。"},
    .fix = {"Use a lock around read, decide and write, or one conditional UPDATE.",
            "用锁把读、判断、写围起来，或者用一条带条件的 UPDATE。"},
    .subject = ITEM,
    .initial = 100,
    .crowd = 2000,
    .with = {.lease_ms = 10000, .wait_ms = 30000},
    .steps = crowd_buys,
    .cases = oversell_cases,
};
