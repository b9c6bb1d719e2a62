/* The holder or its lock server dies or loses the key. Rows: holder-crash-no-expiry,
 * crash-before-expire, row-crash, restart-empty, memcached-restart, unique-row-crash,
 * zk-holder-crash, eviction, renewal-lost. */
#include "hazard_rows.h"

static const struct hazard_step holder_is_killed[] = {
    {A, SEND, NULL}, {A, UNTIL, "decided"}, {A, KILL, NULL},
    {B, RUN, NULL},  {A, RESTART, NULL},    HAZARD_END,
};

static const struct hazard_case holder_crash_cases[] = {
    {"redis-setnx", HAZARD_STUCK, {0}, {NULL}, NULL},
    {"redis-set", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"redis-token", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"redis-reentrant", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"redis-fair", HAZARD_SAFE, {0}, {NULL}, NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_holder_crash_no_expiry = {
    .id = "holder-crash-no-expiry",
    .title = {"The holder dies, and its lock never expires", "持有者崩溃，锁永不过期"},
    .story = {"A takes the lock, and its process is killed inside the section. No process is left "
              "to delete the key. B waits until it times out.",
              "A 拿到锁，进程在临界区内被强杀。再没有谁会删除这个 key。B 一直等到超时。"},
    .warning = {"The first objection to SETNX and DEL in every text on Redis locks.",
                "每一篇 Redis 锁的文章对 SETNX 加 DEL 的第一条意见。"},
    .fix = {"Set a lease, with the same command that takes the lock.",
            "加租约，并且和加锁是同一条命令。"},
    .reach = {.never = HAZARD_NO_LOCK " mutex", .holds = LK_CAP_LEASE | LK_CAP_SESSION},
    .with = {.wait_ms = 2000},
    .last = {[A] = ANSWER_NONE},
    .steps = holder_is_killed,
    .cases = holder_crash_cases,
};

static const struct hazard_step killed_between_setnx_and_expire[] = {
    {A, SEND, NULL}, {A, UNTIL, "lock.setnx.expire"},
    {A, KILL, NULL}, {LOCKS, STILL_THERE, NULL},
    {B, RUN, NULL},  {A, RESTART, NULL},
    HAZARD_END,
};

static const struct hazard_case crash_before_expire_cases[] = {
    {"redis-setnx-expire", HAZARD_STUCK, {0}, {NULL}, killed_between_setnx_and_expire},
    {"redis-set", HAZARD_SAFE, {0}, {NULL}, NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_crash_before_expire = {
    .id = "crash-before-expire",
    .title = {"Killed between SETNX and EXPIRE", "在 SETNX 和 EXPIRE 之间被强杀"},
    .story = {"A second command sets the lease. A is killed after the first command: the lock "
              "exists and never expires.",
              "租约要靠第二条命令设置。A 在第一条之后被强杀：锁已存在，却没有过期时间。"},
    .warning = {"Two commands are not atomic: this is why SET has NX and PX.",
                "两条命令不是原子的：SET 的 NX 和 PX 就是为此而有。"},
    .fix = {"Use one command: SET key value NX PX lease.",
            "用一条命令：SET key value NX PX 租约。"},
    .reach = {.needs = LK_CAP_LEASE, .holds = LK_CAP_ATOMIC_LEASE},
    .with = {.wait_ms = 2000},
    .last = {[A] = ANSWER_NONE},
    .steps = holder_is_killed,
    .cases = crash_before_expire_cases,
};

static const struct hazard_case row_crash_cases[] = {
    {"sql-row", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"pg-advisory", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"pg-advisory-xact", HAZARD_SAFE, {0}, {NULL}, NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_row_crash = {
    .id = "row-crash",
    .title = {"The holder of a database lock dies", "数据库锁的持有者崩溃"},
    .story = {"A is killed while it holds the row lock. Its connection ends with it. The database "
              "releases the lock and undoes the unfinished change.",
              "A 持有行锁时被强杀。连接随之断开，数据库把锁和没做完的改动一起收回。"},
    .warning = {"PostgreSQL documentation, Explicit Locking: locks end with their transaction.",
                "PostgreSQL 文档“显式锁定”：锁随事务结束。"},
    .fix = {"Nothing to fix: this is the strength of a lock inside the database.",
            "不用修：这正是数据库内部的锁的长处。"},
    .reach = {.only = "sql-row sql-unique* pg-*"},
    .with = {.wait_ms = 2000},
    .last = {[A] = ANSWER_NONE},
    .steps = holder_is_killed,
    .cases = row_crash_cases,
};

static const struct hazard_step server_forgets[] = {
    {A, SEND, NULL},           {A, UNTIL, "checked"}, {LOCKS, REBOOT, "gone"}, {B, SEND, NULL},
    {B, AS_FAR_AS, "checked"}, {A, RELEASE, NULL},    {A, ANSWER, NULL},       {B, RELEASE, NULL},
    {B, ANSWER, NULL},         {A, RETRY, NULL},      {B, RETRY, NULL},        HAZARD_END,
};

static const struct hazard_step server_remembers[] = {
    {A, SEND, NULL},           {A, UNTIL, "checked"}, {LOCKS, REBOOT, "stays"}, {B, SEND, NULL},
    {B, AS_FAR_AS, "checked"}, {A, RELEASE, NULL},    {A, ANSWER, NULL},        {B, RELEASE, NULL},
    {B, ANSWER, NULL},         {A, RETRY, NULL},      {B, RETRY, NULL},         HAZARD_END,
};

static const struct hazard_case restart_empty_cases[] = {
    {"redis-token", HAZARD_UNSAFE, {0}, {"no persistence", "不持久化"}, NULL},
    {"redis-token",
     HAZARD_SAFE,
     {.redis = REDIS_DURABLE},
     {"appendfsync always", "AOF 每次落盘"},
     server_remembers},
    {"redis-token",
     HAZARD_SAFE,
     {.fence = ON, .fence_source = "database"},
     {"fence from the database", "栅栏令牌来自数据库"},
     NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_restart_empty = {
    .id = "restart-empty",
    .title = {"The lock server restarts empty", "锁服务器丢了数据重启"},
    .story =
        {"A holds the lock. Redis is killed and started again. It kept nothing on disk, so the "
         "lock is gone. B takes it while A is still inside.",
         "A 持有锁。Redis 被强杀后重启，没有持久化，锁就没了。B 拿到锁，和 A 同时在临界区内。"},
    .warning = {"The Redis documentation of distributed locks, the paragraph on persistence.",
                "Redis 分布式锁文档里讲持久化的那一段。"},
    .fix = {"The lock server writes each grant to disk before it answers, or grants nothing for "
            "one lease after a restart.",
            "锁服务器每次加锁先落盘再应答，或者重启后先停用一个租约。"},
    .reach = {.never = HAZARD_NO_SERVER},
    .with = {.lease_ms = 8000, .fence = OFF},
    .steps = server_forgets,
    .cases = restart_empty_cases,
};

static const struct hazard_case memcached_restart_cases[] = {
    {"memcached", HAZARD_UNSAFE, {0}, {NULL}, NULL},
    {"memcached",
     HAZARD_SAFE,
     {.fence = ON, .fence_source = "database"},
     {"fence from the database", "栅栏令牌来自数据库"},
     NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_memcached_restart = {
    .id = "memcached-restart",
    .title = {"The cache that keeps the lock restarts", "存锁的缓存重启了"},
    .story =
        {"A's lock is in memcached, which keeps nothing on disk. It restarts or is flushed, and B "
         "adds the same key.",
         "A 的锁放在 memcached 里，它什么都不落盘。重启或清空之后，B 又成功 add 了同一个 key。"},
    .warning = {"memcached's protocol text: it is a cache and may forget at any time.",
                "memcached 自己的协议文档：它是缓存，随时可能忘掉。"},
    .fix = {"Use a fence that the database hands out and checks.",
            "用数据库发放并检查的栅栏令牌。"},
    .reach = {.only = "memcached"},
    .with = {.lease_ms = 8000, .fence = OFF},
    .steps = server_forgets,
    .cases = memcached_restart_cases,
};

static const struct hazard_case unique_row_cases[] = {
    {"sql-unique-forever", HAZARD_STUCK, {0}, {"no lease", "没有租约"}, NULL},
    {"sql-unique", HAZARD_SAFE, {0}, {"lease by database time", "按数据库时间的租约"}, NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_unique_row_crash = {
    .id = "unique-row-crash",
    .title = {"The holder dies, and its lock row stays", "持有者崩溃，锁表里的行还在"},
    .story = {"The lock is a row with a unique key, and deleting the row frees it. A is killed, "
              "and its row stays for ever.",
              "锁是一行带唯一键的记录，释放就是删掉它。A 被强杀，这一行永远留在那里。"},
    .warning = {"Every text on database locks lists this first among the drawbacks.",
                "讲数据库锁的文章列缺点时的第一条。"},
    .fix = {"Put a lease into the row, and let the database's own clock judge it.",
            "在行里写上租约，由数据库自己的时钟来判断。"},
    .reach = {.only = "sql-unique*"},
    .with = {.wait_ms = 2000},
    .last = {[A] = ANSWER_NONE},
    .steps = holder_is_killed,
    .cases = unique_row_cases,
};

static const struct hazard_case zk_crash_cases[] = {
    {"zk-ephemeral", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"zk-sequential", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"zk-readwrite", HAZARD_SAFE, {0}, {NULL}, NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_zk_holder_crash = {
    .id = "zk-holder-crash",
    .title = {"The holder of a ZooKeeper lock dies", "ZooKeeper 锁的持有者崩溃"},
    .story = {"A's process is killed, and its session sends no more heartbeats. After the session "
              "timeout ZooKeeper removes the node, and B is next.",
              "A 的进程被强杀，会话不再有心跳。会话超时后 ZooKeeper 删掉节点，轮到 B。"},
    .warning = {"ZooKeeper recipes: ephemeral nodes end with their session.",
                "ZooKeeper 官方用法：临时节点随会话结束。"},
    .fix = {"Nothing to fix: the next holder waits for the session timeout.",
            "不用修；要等的就是会话超时那么久。"},
    .last = {[A] = ANSWER_NONE},
    .reach = {.only = "zk-*"},
    .steps = holder_is_killed,
    .cases = zk_crash_cases,
};

static const struct hazard_step server_evicts[] = {
    {A, SEND, NULL},           {A, UNTIL, "checked"}, {LOCKS, EVICT, "gone"}, {B, SEND, NULL},
    {B, AS_FAR_AS, "checked"}, {A, RELEASE, NULL},    {A, ANSWER, NULL},      {B, RELEASE, NULL},
    {B, ANSWER, NULL},         {A, RETRY, NULL},      {B, RETRY, NULL},       HAZARD_END,
};

static const struct hazard_step server_keeps[] = {
    {A, SEND, NULL},           {A, UNTIL, "checked"}, {LOCKS, EVICT, "stays"}, {B, SEND, NULL},
    {B, AS_FAR_AS, "checked"}, {A, RELEASE, NULL},    {A, ANSWER, NULL},       {B, RELEASE, NULL},
    {B, ANSWER, NULL},         {A, RETRY, NULL},      {B, RETRY, NULL},        HAZARD_END,
};

static const struct hazard_case eviction_cases[] = {
    {"redis-token",
     HAZARD_UNSAFE,
     {.redis = REDIS_SMALL, .fence = OFF},
     {"volatile-lru", "volatile-lru"},
     NULL},
    {"redis-token",
     HAZARD_SAFE,
     {.redis = REDIS_SMALL, .fence = ON},
     {"volatile-lru, fence on", "volatile-lru，开启栅栏令牌"},
     NULL},
    {"redis-token", HAZARD_SAFE, {.fence = OFF}, {"noeviction", "noeviction"}, server_keeps},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_eviction = {
    .id = "eviction",
    .title = {"The lock is evicted like any cache entry", "锁像缓存一样被淘汰"},
    .story = {"One Redis holds the locks and is also a cache. When memory runs short, it may drop "
              "keys that have a lease. A lock is such a key.",
              "存锁的 Redis 同时当缓存用，内存不足时可以淘汰带过期时间的 key。锁正是这样的 key。"},
    .warning = {"Redis documentation, Key eviction: a volatile policy evicts keys that can expire.",
                "Redis 文档“key 淘汰”：volatile 策略拿走的正是会过期的 key。"},
    .fix = {"Use a separate server for the locks, with noeviction. Add a fence at the resource.",
            "锁用单独的服务器并设为 noeviction；资源一侧再加栅栏令牌。"},
    .reach = {.only = "redis-* redlock memcached"},
    .with = {.lease_ms = 8000},
    .steps = server_evicts,
    .cases = eviction_cases,
};

static const struct hazard_step deleted_under_the_holder[] = {
    {A, SEND, NULL},
    {A, UNTIL, "decided"},
    {LOCKS, DELETE, NULL},
    {A, PASSED, "lock.lost"},
    {A, RELEASE, NULL},
    {A, ANSWER, NULL},
    HAZARD_END,
};

static const struct hazard_case renewal_lost_cases[] = {
    {"redis-reentrant", HAZARD_REFUSED, {0}, {NULL}, NULL},
    {"redis-token", HAZARD_REFUSED, {0}, {NULL}, NULL},
    {"redis-fair", HAZARD_REFUSED, {0}, {NULL}, NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_renewal_lost = {
    .id = "renewal-lost",
    .title = {"The watchdog finds the lock gone", "看门狗发现锁没了"},
    .story =
        {"Somebody deletes A's key while A works. The next renewal finds no key, and the watchdog "
         "tells the holder. The service answers 503 instead of writing.",
         "A 工作时它的 key 被删除。下一次续期失败，持有者得到通知，服务返回 503，不再写入。"},
    .warning = {"A failed renewal must stop the work; otherwise renewal is useless.",
                "续期失败必须通知业务代码，否则续期毫无意义。"},
    .fix = {"Nothing to fix: the on-lost callback fired and nothing was written.",
            "不用修：丢锁回调会触发，业务不再写入。"},
    .reach = {.needs = LK_CAP_RENEW | LK_CAP_SESSION},
    .steps = deleted_under_the_holder,
    .cases = renewal_lost_cases,
};
