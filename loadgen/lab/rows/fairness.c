/* Order and delay of waiters. Rows: unfair. */
#include "hazard_rows.h"

static const struct hazard_step twenty_wait_in_a_known_order[] = {
    {A, SEND, NULL},   {A, UNTIL, "decided"}, {QUEUE, SEND, NULL}, {A, RELEASE, NULL},
    {A, ANSWER, NULL}, {QUEUE, ANSWER, NULL}, HAZARD_END,
};

static const struct hazard_case unfair_cases[] = {
    {"redis-token", HAZARD_SLOW, {0}, {"polling", "轮询"}, NULL},
    {"redis-fair", HAZARD_SAFE, {0}, {"handed over", "直接交给下一个"}, NULL},
    {"zk-sequential", HAZARD_SAFE, {0}, {"each watches the one before it", "各自监视前一个"}, NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_unfair = {
    .id = "unfair",
    .title = {"Later waiters overtake earlier ones", "先到的不一定先得"},
    .story =
        {"Twenty requests wait for A's lock. Each arrives when the one before it waits. A free "
         "lock goes to the next waiter that asks. The longest waiter asks least often, because its "
         "pauses have grown. Later waiters overtake it, nineteen at worst.",
         "二十个请求一个接一个来等 A "
         "的锁，前一个在等，后一个才来。锁一释放，谁碰巧来轮询就归谁。等得最久的退避间隔最长，轮询"
         "最少：后来的会超过它，最坏时十九个。"},
    .warning = {"J. Mellor-Crummey and M. Scott (1991): a lock that waiters poll promises no "
                "order. So texts on Redis locks offer a fair lock beside the plain one.",
                "Mellor-Crummey 与 Scott 1991：轮询的锁不保证次序；"
                "讲 Redis 锁的文章因此在普通锁之外另推公平锁。"},
    .fix = {"Use a queue on the server: the lock goes to the first waiter.",
            "在服务器上排队：锁交给最先到的。"},
    .queue = HAZARD_QUEUE_MAX,
    .slow_overtakings = 3,
    .reach = {.never = "none", .holds = LK_CAP_FAIR},
    .with = {.lease_ms = 10000, .wait_ms = 30000},
    .steps = twenty_wait_in_a_known_order,
    .cases = unfair_cases,
};
