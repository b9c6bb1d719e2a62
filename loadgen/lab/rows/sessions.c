/* Locks that last as long as a session: ZooKeeper, PostgreSQL. Rows: advisory-pool,
 * zk-lost-create, zk-herd, zk-readers. */
#include "hazard_rows.h"

static const struct hazard_step connection_goes_back_with_the_lock[] = {
    {A, RUN, NULL},
    {LOCKS, STILL_THERE, NULL},
    {B, RUN, NULL},
    HAZARD_END,
};

static const struct hazard_step connection_goes_back[] = {
    {A, RUN, NULL},
    {LOCKS, GONE, NULL},
    {B, RUN, NULL},
    HAZARD_END,
};

static const struct hazard_case advisory_pool_cases[] = {
    {"pg-advisory",
     HAZARD_STUCK,
     {.slip = "rollback-only"},
     {"session level, ROLLBACK", "会话级，只 ROLLBACK"},
     connection_goes_back_with_the_lock},
    {"pg-advisory", HAZARD_SAFE, {0}, {"session level, unlocked", "会话级，显式解锁"}, NULL},
    {"pg-advisory-xact", HAZARD_SAFE, {0}, {"transaction level", "事务级"}, NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_advisory_pool = {
    .id = "advisory-pool",
    .title = {"After ROLLBACK the pooled connection still holds the lock",
              "ROLLBACK 之后，还回连接池的连接仍持有锁"},
    .story = {"A takes a session-level advisory lock, ends its work with ROLLBACK and returns the "
              "connection to the pool. The lock belongs to the connection, not to the transaction. "
              "It stays, and B waits in vain.",
              "A 拿的是会话级的咨询锁，用 ROLLBACK 收尾，把连接还给连接池。"
              "锁属于连接，不属于事务：它还在，B 白等。"},
    .warning = {"PostgreSQL documentation, Advisory Locks: a session-level lock does not end with "
                "its transaction and survives a ROLLBACK.",
                "PostgreSQL 文档“咨询锁”：会话级的锁不理会事务的结束，ROLLBACK 之后仍然有效。"},
    .fix = {"Unlock on the same connection before you return it. Or take the lock at transaction "
            "level: any end of the transaction frees it.",
            "归还连接之前在同一条连接上解锁；或者用事务级的锁，事务无论怎样结束都会释放。"},
    .reach = {.only = "pg-*"},
    .with = {.wait_ms = 1500},
    .steps = connection_goes_back,
    .cases = advisory_pool_cases,
};

/* C was there before: the queue's folder is made, and A's first command makes its own node. */
static const struct hazard_step answer_to_the_create_is_lost[] = {
    {C, RUN, NULL},
    {A, LOSE, NULL},
    {A, SEND, NULL},
    {A, LOST, NULL},
    {A, PASSED, "lock.cleanup"},
    {B, RUN, NULL},
    {A, ANSWER, NULL},
    {A, RETRY, NULL},
    HAZARD_END,
};

static const struct hazard_step nobody_knows_the_node[] = {
    {C, RUN, NULL},
    {A, LOSE, NULL},
    {A, SEND, NULL},
    {A, LOST, NULL},
    {B, RUN, NULL},
    {A, ANSWER, NULL},
    {LOCKS, STILL_THERE, NULL},
    HAZARD_END,
};

static const struct hazard_case zk_lost_create_cases[] = {
    {"zk-sequential", HAZARD_SAFE, {0}, {"found by its token", "靠名字里的标识找回"}, NULL},
    {"zk-sequential",
     HAZARD_STUCK,
     {.slip = "nameless-node", .wait_ms = 2000},
     {"no token in its name", "名字里没有标识"},
     nobody_knows_the_node},
    {"zk-ephemeral", HAZARD_SAFE, {0}, {"found by its token", "靠名字里的标识找回"}, NULL},
    {"zk-readwrite", HAZARD_SAFE, {0}, {"found by its token", "靠名字里的标识找回"}, NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_zk_lost_create = {
    .id = "zk-lost-create",
    .title = {"The node was created, but the answer was lost", "节点已创建，应答丢失"},
    .story =
        {"ZooKeeper creates A's node, and the connection breaks before the answer. A's "
         "session lives on, and so does the node. A does not even know its number. If A "
         "cannot find the node again, it blocks A and everybody else until the session ends.",
         "ZooKeeper 创建了 A 的节点，应答之前连接断开。会话还在，节点也就还在，"
         "而 A 连它的序号都不知道。找不回它，A 就一直挡着自己，也挡着所有请求，直到会话结束。"},
    .warning = {"Curator's tech notes: a create may have succeeded although the client saw an "
                "error. So Curator puts a GUID into the node's name (protection).",
                "Curator 的技术说明：客户端看到出错，创建却可能已经成功；"
                "所以它在节点名里放 GUID（protection）。"},
    .fix = {"Put a token into the name. After a reconnect, find your own node. Remove it or keep "
            "its place in the queue.",
            "名字里带唯一标识：连接恢复后先找自己的节点，删掉它或者接着用它的位置。"},
    .reach = {.only = "zk-*"},
    .with = {.lease_ms = 20000},
    .steps = answer_to_the_create_is_lost,
    .cases = zk_lost_create_cases,
};

static const struct hazard_step crowd_waits_for_one[] = {
    {A, SEND, NULL},
    {A, UNTIL, "checked"},
    {CROWD, SEND, NULL},
    {CROWD, UNTIL, "lock.wait"},
    {A, RELEASE, NULL},
    {A, ANSWER, NULL},
    {CROWD, PASSED, "lock.woken"},
    {CROWD, RELEASE, NULL},
    {CROWD, ANSWER, NULL},
    HAZARD_END,
};

static const struct hazard_case zk_herd_cases[] = {
    {"zk-ephemeral", HAZARD_SLOW, {0}, {"all watch one node", "都监视同一个节点"}, NULL},
    {"zk-sequential", HAZARD_SAFE, {0}, {"each watches the one before it", "各自监视前一个"}, NULL},
    {"zk-readwrite", HAZARD_SAFE, {0}, {"each watches the one before it", "各自监视前一个"}, NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_zk_herd = {
    .id = "zk-herd",
    .title = {"Each release wakes all fifty waiters", "五十个等待者，释放一次锁全被唤醒"},
    .story = {"A holds the lock, and fifty buyers wait for it. All of them watch the same node. "
              "When A releases, all fifty wake up and ask at once. One gets the lock. Forty-nine "
              "have asked in vain and watch again. The next release repeats this.",
              "A 持有锁，五十个买家在等，监视的是同一个节点。A "
              "一释放锁，五十个同时被唤醒，同时去抢，一个抢到，四十九个徒劳，重新监视。下一次释放又"
              "重复一遍。"},
    .warning = {"ZooKeeper Recipes, Locks: each node is watched by exactly one client, to avoid "
                "the herd effect.",
                "ZooKeeper 官方用法“锁”：每个节点只由一个客户端监视，以避免羊群效应。"},
    .fix = {"Use a queue: each waiter watches the node just before its own. One release wakes one "
            "waiter.",
            "排成队：各自只监视前面那个节点，释放一次锁只唤醒一个。"},
    .subject = ITEM,
    .initial = 100,
    .crowd = 50,
    .slow_wakes = 5,
    .reach = {.needs = LK_CAP_WAKES},
    .with = {.instances = 1, .workers = 60, .lease_ms = 20000, .wait_ms = 30000},
    .steps = crowd_waits_for_one,
    .cases = zk_herd_cases,
};

static const struct hazard_step writer_comes_among_readers[] = {
    {READERS, SEND, NULL},
    {A, SEND, NULL},
    {A, PASSED, "lock.wait"},
    {A, UNTIL, "decided"},
    {READERS, AS_FAR_AS, "lock.wait"},
    {A, RELEASE, NULL},
    {A, ANSWER, NULL},
    {READERS, UNTIL, "read"},
    {READERS, ANSWER, NULL},
    HAZARD_END,
};

static const struct hazard_step readers_overtake_the_writer[] = {
    {READERS, SEND, NULL},
    {A, SEND, NULL},
    {A, AS_FAR_AS, "decided"},
    {READERS, UNTIL, "read"},
    {A, ANSWER, NULL},
    {READERS, ANSWER, NULL},
    HAZARD_END,
};

static const struct hazard_case zk_readers_cases[] = {
    {"zk-readwrite", HAZARD_SAFE, {0}, {"in order of arrival", "按到达顺序"}, NULL},
    {"redis-readwrite",
     HAZARD_STUCK,
     {.wait_ms = 1500},
     {"readers overtake", "读者插队"},
     readers_overtake_the_writer},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_zk_readers = {
    .id = "zk-readers",
    .title = {"Readers never let the writer in", "读者接力，写者永远进不去"},
    .story = {"Readers share the lock, and they come in a stream: each leaves only after the next "
              "has entered. A comes to write. If a reader may enter while others read, the lock is "
              "never free, and A waits for ever. If all wait in order of arrival, new readers stop "
              "behind A. A is alone inside, and then the readers go on.",
              "读者共享一把锁，而且源源不断：前一个没走，后一个已经进来。A 要写。"
              "如果有人在读时新读者就能进，锁永远空不下来，A 一直等。"
              "如果人人都等先来的，读者就排在 A 后面，A 独自进去写完，读者再继续。"},
    .warning =
        {"ZooKeeper Recipes, Shared Locks: a reader waits for the writers before it. Courtois, "
         "Heymans and Parnas (1971) give both kinds, and say which one starves the writer.",
         "ZooKeeper 官方用法“共享锁”：读者要等排在前面的写者。"
         "Courtois、Heymans 和 Parnas 1971 年就给出两种写法，并说明哪一种会饿死写者。"},
    .fix = {"Use one queue for both kinds, in order of arrival.", "读者写者同排一队，先到先进。"},
    .reach = {.needs = LK_CAP_SHARED},
    .with = {.lease_ms = 20000},
    .steps = writer_comes_among_readers,
    .cases = zk_readers_cases,
};
