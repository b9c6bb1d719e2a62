/* A lease or session ends while its holder works. Rows: expired-lease, paused-holder,
 * zk-session-lost, wrong-delete. */
#include "hazard_rows.h"

/* A is held at "checked": after lk_check(), before the write. No check protects that write. */
static const struct hazard_step writes_after_the_lease[] = {
    {A, SEND, NULL},
    {A, UNTIL, "checked"},
    {LOCKS, OUTLIVE, NULL},
    {B, SEND, NULL},
    {B, AS_FAR_AS, "committed"},
    {B, RELEASE, NULL},
    {A, RELEASE, NULL},
    {A, ANSWER, NULL},
    {B, ANSWER, NULL},
    {A, RETRY, NULL},
    {B, RETRY, NULL},
    HAZARD_END,
};

/* The lease is long enough for a watchdog that waits for a core. */
#define WATCHED(guard)                                                                             \
    {                                                                                              \
        guard, HAZARD_SAFE, {.watchdog = ON, .lease_ms = 3000}, {"watchdog", "有看门狗"}, NULL     \
    }

static const struct hazard_case expired_lease_cases[] = {
    {"redis-set", HAZARD_UNSAFE, {0}, {NULL}, NULL},
    {"redis-token", HAZARD_UNSAFE, {.watchdog = OFF}, {"no watchdog", "没有看门狗"}, NULL},
    {"redis-token",
     HAZARD_SAFE,
     {.watchdog = OFF, .fence = ON},
     {"fence on", "开启栅栏令牌"},
     NULL},
    WATCHED("redis-token"),
    WATCHED("redis-reentrant"),
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_expired_lease = {
    .id = "expired-lease",
    .title = {"The work takes longer than the lease", "业务比租约还长"},
    .story = {"A holds the lock for a fixed time, but its work takes longer. The lease ends, and "
              "the lock server correctly lets B in. Two holders are inside. B writes, and then A "
              "writes a result computed from the old value.",
              "A 的锁有固定租约，业务却更久。租约到期，锁服务器让 B "
              "进来，按它的时钟没有错。临界区内有了两个请求：B 写完，A 又写入按旧值算出的结果。"},
    .warning = {"M. Kleppmann, How to do distributed locking (2016): a lease is a bet on time. The "
                "resource must be able to refuse a holder whose lease has ended.",
                "Kleppmann 2016 年的文章：租约赌的是时间。租约已到期的持有者，资源必须能拒绝。"},
    .fix = {"Use a watchdog that renews the lease of a live holder, and a fence that the store "
            "checks in the write itself.",
            "活着的持有者由看门狗续期；再加上随写入一起检查的栅栏令牌。"},
    .reach = {.needs = LK_CAP_LEASE},
    .with = {.fence = OFF},
    .steps = writes_after_the_lease,
    .cases = expired_lease_cases,
};

/* The whole process of A is stopped, so its watchdog does not renew. GONE waits until the lease has
 * ended. After CONTINUE the watchdog finds the loss; only then A, past its check, goes on and
 * writes. With the fence on, the store refuses that write: 503 lock-lost, and RETRY is served. */
static const struct hazard_step stopped_past_the_lease[] = {
    {A, SEND, NULL},
    {A, UNTIL, "checked"},
    {A, STOP, NULL},
    {LOCKS, GONE, NULL},
    {B, RUN, NULL},
    {A, CONTINUE, NULL},
    {A, PASSED, "lock.lost"},
    {A, RELEASE, NULL},
    {A, ANSWER, NULL},
    {A, RETRY, NULL},
    HAZARD_END,
};

static const struct hazard_case paused_holder_cases[] = {
    {"redis-reentrant", HAZARD_UNSAFE, {.fence = OFF}, {"fence off", "关闭栅栏令牌"}, NULL},
    {"redis-reentrant", HAZARD_SAFE, {.fence = ON}, {"fence on", "开启栅栏令牌"}, NULL},
    {"redis-token", HAZARD_UNSAFE, {.fence = OFF}, {"fence off", "关闭栅栏令牌"}, NULL},
    {"redis-token", HAZARD_SAFE, {.fence = ON}, {"fence on", "开启栅栏令牌"}, NULL},
    {"redis-fair", HAZARD_UNSAFE, {.fence = OFF}, {"fence off", "关闭栅栏令牌"}, NULL},
    {"redis-fair", HAZARD_SAFE, {.fence = ON}, {"fence on", "开启栅栏令牌"}, NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_paused_holder = {
    .id = "paused-holder",
    .title = {"The whole process is paused past its lease", "整个进程停顿，租约先到期"},
    .story = {"A's process is stopped, as by a long garbage collection or a frozen virtual "
              "machine. The watchdog is in the same process and stops too, so the lease ends. B "
              "works and finishes. A wakes up, does not know how long it slept, and writes.",
              "A "
              "的进程停顿，像一次很长的垃圾回收或虚拟机冻结。看门狗就在这个进程里，也跟着停住，租约"
              "于是到期。B 进来并完成。A 恢复运行，不知道停了多久，照样写入。"},
    .warning =
        {"M. Kleppmann (2016) shows it with a garbage collection pause. A watchdog does not help "
         "here, and texts on watchdogs often omit this.",
         "Kleppmann 2016 年用垃圾回收停顿举的例子；看门狗救不了它，夸看门狗的文章常常不提。"},
    .fix = {"Use a fence: the store has seen B's newer fence and refuses A's write.",
            "用栅栏令牌：存储已见过 B 更新的栅栏令牌，拒绝 A 的写入。"},
    .reach = {.never = HAZARD_NO_LOCK " mutex redis-setnx sql-unique-forever"},
    .steps = stopped_past_the_lease,
    .cases = paused_holder_cases,
};

static const struct hazard_case zk_session_cases[] = {
    {"zk-sequential", HAZARD_UNSAFE, {.fence = OFF}, {"fence off", "关闭栅栏令牌"}, NULL},
    {"zk-sequential", HAZARD_SAFE, {.fence = ON}, {"zxid as fence", "用 zxid 作栅栏令牌"}, NULL},
    {"zk-ephemeral", HAZARD_UNSAFE, {.fence = OFF}, {"fence off", "关闭栅栏令牌"}, NULL},
    {"zk-ephemeral", HAZARD_SAFE, {.fence = ON}, {"zxid as fence", "用 zxid 作栅栏令牌"}, NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_zk_session_lost = {
    .id = "zk-session-lost",
    .title = {"The holder is paused past its session timeout", "持有者停顿超过会话超时"},
    .story = {"A's process is stopped for longer than its session timeout. ZooKeeper removes its "
              "node. B enters, works and finishes. A wakes up and writes before it hears that its "
              "session has ended.",
              "A 的进程停得比会话还久。ZooKeeper 删掉它的节点，B 进来并完成。A "
              "恢复运行，还不知道会话已经结束，就写入了。"},
    .warning = {"Many texts say that ZooKeeper does not have this problem. It does: the client is "
                "the last to learn that its session has ended.",
                "很多文章说 ZooKeeper 没有这个问题，其实有：客户端总是最后知道。"},
    .fix = {"Use the zxid of the node as a fence: the store refuses A's write.",
            "用节点的 zxid 作栅栏令牌：存储拒绝 A。"},
    .reach = {.needs = LK_CAP_SESSION},
    .steps = stopped_past_the_lease,
    .cases = zk_session_cases,
};

/* A is held before its check, so it is refused and writes nothing. Its release does the damage. */
static const struct hazard_step deletes_the_successors[] = {
    {A, SEND, NULL},
    {A, UNTIL, "decided"},
    {LOCKS, GONE, NULL},
    {B, SEND, NULL},
    {B, UNTIL, "decided"},
    {A, RELEASE, NULL},
    {A, ANSWER, NULL},
    {C, SEND, NULL},
    {C, AS_FAR_AS, "decided"},
    {B, RELEASE, NULL},
    {B, ANSWER, NULL},
    {C, RELEASE, NULL},
    {C, ANSWER, NULL},
    {A, RETRY, NULL},
    {B, RETRY, NULL},
    {C, RETRY, NULL},
    HAZARD_END,
};

static const struct hazard_case wrong_delete_cases[] = {
    {"redis-set", HAZARD_UNSAFE, {0}, {NULL}, NULL},
    {"redis-getset",
     HAZARD_UNSAFE,
     {.clock_ms = -60000},
     {"A's clock is a minute behind", "A 的时钟慢一分钟"},
     NULL},
    {"redis-getset", HAZARD_SAFE, {0}, {"checks its own stamp first", "先看自己的时间戳"}, NULL},
    {"redis-token", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"memcached", HAZARD_UNSAFE, {.slip = "plain-delete"}, {"delete", "delete"}, NULL},
    {"memcached", HAZARD_SAFE, {0}, {"compare-and-delete", "比较再删除"}, NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_wrong_delete = {
    .id = "wrong-delete",
    .title = {"A late DEL frees another holder's lock", "迟到的 DEL 释放了别人的锁"},
    .story = {"A's lease has ended, and B holds the lock. A finishes and deletes the key without "
              "checking the owner. C finds no lock and enters while B is inside.",
              "A 的租约到期，锁已经是 B 的。A 收尾时直接删除 key，不检查锁是谁的。C "
              "发现没有锁，就和 B 同时进入临界区。"},
    .warning = {"The Redis documentation of SET says: delete only your own token. Many texts still "
                "show a bare DEL.",
                "Redis 文档 SET 一节说只能删除带有自己标识的锁；很多文章仍然直接 DEL。"},
    .fix = {"Use a token per hold. The server compares and deletes it in one step (Lua).",
            "每次加锁用自己的锁标识（UUID），在服务器上一步完成“比较再删除”（Lua）。"},
    .reach = {.never = HAZARD_NO_LOCK " sql-row", .holds = LK_CAP_OWNER},
    .with = {.watchdog = OFF, .fence = OFF, .lease_ms = 1500},
    .steps = deletes_the_successors,
    .cases = wrong_delete_cases,
};
