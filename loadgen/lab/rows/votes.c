/* Redlock: votes that come late or whose answer is lost. Rows: redlock-slow, redlock-orphan. */
#include "hazard_rows.h"

/* A's process stands still between the last answer and the counting, as in a long garbage
 * collection; the wait is shorter than the lease, so there is no second try. */
static const struct hazard_step votes_are_counted_after_the_lease[] = {
    {A, SEND, NULL},       {A, UNTIL, "lock.voted"}, {LOCKS, GONE, NULL},       {B, SEND, NULL},
    {B, UNTIL, "checked"}, {A, RELEASE, NULL},       {A, AS_FAR_AS, "checked"}, {B, RELEASE, NULL},
    {B, ANSWER, NULL},     {A, RELEASE, NULL},       {A, ANSWER, NULL},         HAZARD_END,
};

static const struct hazard_case slow_cases[] = {
    {"redlock",
     HAZARD_REFUSED,
     {0},
     {"elapsed time is subtracted", "用掉的时间从租约中扣除"},
     NULL},
    {"redlock",
     HAZARD_UNSAFE,
     {.slip = "votes-untimed", .wait_ms = 6000},
     {"elapsed time is not counted", "不计用掉的时间"},
     NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_redlock_slow = {
    .id = "redlock-slow",
    .title = {"Getting the lock takes longer than the lease", "拿锁花的时间比租约还长"},
    .story = {"All five nodes vote for A, but its process is stopped before it counts the votes. "
              "When it wakes up, the keys have expired and B has the lock. A has five votes, and "
              "none of them is valid.",
              "五个节点都投了 A，可它还没数票，进程就停住了。恢复时 key 早已到期，锁是 B 的。A "
              "手里有五张票，一张也不算数。"},
    .warning = {"The Redis documentation of Redlock: the lock counts only if the elapsed time is "
                "less than the lease. What remains is the lease less that time.",
                "Redis 的 Redlock 文档：用掉的时间小于租约才算拿到，能用的只有剩下的那一段。"},
    .fix = {"Take the time before asking for the first vote, and subtract. If nothing remains, the "
            "lock was not acquired.",
            "要第一张票之前先记下时间，最后相减：没有剩余，就是没拿到。"},
    .gives_up = true,
    .reach = {.needs = LK_CAP_LEASE},
    .with = {.lease_ms = 1500, .wait_ms = 1000, .watchdog = OFF, .fence = OFF},
    .steps = votes_are_counted_after_the_lease,
    .cases = slow_cases,
};

/* A knows of its votes from nodes 1, 2 and 3. It also has those of 4 and 5, whose answers were
 * lost. Node 1 is dead, so the next caller needs node 4 or 5. */
static const struct hazard_step two_nodes_keep_what_nobody_counted[] = {
    {A, LOSE, "45"},    {A, SEND, NULL}, {A, LOST, "45"},  {A, ANSWER, NULL},
    {LOCKS, DOWN, "1"}, {B, RUN, NULL},  {LOCKS, UP, "1"}, HAZARD_END,
};

static const struct hazard_case orphan_cases[] = {
    {"redlock", HAZARD_SAFE, {0}, {"released on all nodes", "在所有节点上释放"}, NULL},
    {"redlock",
     HAZARD_SLOW,
     {.slip = "acknowledged-only"},
     {"released only where the answer was yes", "只在应答成功的节点上释放"},
     NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_redlock_orphan = {
    .id = "redlock-orphan",
    .title = {"A node set the key, but its reply was lost", "节点已设 key，应答却丢了"},
    .story = {"All five nodes set A's key, but the answers of 4 and 5 are lost. Three are a "
              "majority, so A works and releases. If A releases only where the answer was yes, 4 "
              "and 5 keep A's key. Then node 1 dies. Three of the other four would do, but two of "
              "them refuse B until the lease ends.",
              "五个节点都设了 A 的 key，4、5 号的应答丢了。三个就是多数，A "
              "完成后释放。如果只在应答成功的节点上释放，4、5 号就留着早已离开的 A 的 key。这时 1 "
              "号宕机：剩四个中有三个就够，可其中两个一直拒绝 B，直到租约到期。"},
    .warning = {"The Redis documentation of Redlock: release on every instance, even where the "
                "client believes it has no lock.",
                "Redis 的 Redlock 文档：在每个实例上释放，哪怕自认为没在那里拿到锁。"},
    .fix = {"Release on all nodes, whatever they answered. Compare-and-delete harms nobody.",
            "不管应答是什么，在所有节点上都释放：比较再删除不会伤到别人。"},
    .slow_ms = 1500,
    .reach = {.only = "redlock"},
    .with = {.lease_ms = 5000, .wait_ms = 10000, .by_proxy = true},
    .steps = two_nodes_keep_what_nobody_counted,
    .cases = orphan_cases,
};
