/* Order and delay of waiters. Rows: unfair. */
#include "hazard_rows.h"

static const struct hazard_step twenty_wait_in_a_known_order[] = {
    {A, SEND, NULL},   {A, UNTIL, "decided"}, {QUEUE, SEND, NULL}, {A, RELEASE, NULL},
    {A, ANSWER, NULL}, {QUEUE, ANSWER, NULL}, HAZARD_END,
};

static const struct hazard_case unfair_cases[] = {
    {"redis-token", HAZARD_SLOW, {0}, {"polling", "轮询"}, NULL},
    {"redis-fair", HAZARD_SAFE, {0}, {"handed over", "直接交给下一个"}, NULL},
    {"zk-sequential", HAZARD_SAFE, {0}, {"each watches the one before it", "各看前一个"}, NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_unfair = {
    .id = "unfair",
    .title = {"Later waiters overtake earlier ones", "先来的不一定先办"},
    .story =
        {"Twenty wait for A's lock, one after another, each seen to wait before the next comes. "
         "When it is free, whoever happens to ask next gets it. Who has waited longest asks least "
         "often, for its pauses have grown: late-comers pass it by, nineteen of them at worst.",
         "二十个人一个接一个来等 A 的锁，看到前一个在等，后一个才来。锁一放，谁碰巧去问就归谁。"
         "等得最久的间隔越拉越长，问得最少：后来的从它身边过去，最坏十九个。"},
    .warning = {"J. Mellor-Crummey and M. Scott (1991): a lock that is polled makes no promise on "
                "order; texts on Redis locks advertise a fair one beside the plain one for it.",
                "Mellor-Crummey 与 Scott 1991：轮询的锁不保证次序；"
                "讲 Redis 锁的文章因此在普通锁之外另推公平锁。"},
    .fix = {"A queue on the server: the lock is handed to whoever came first.",
            "在服务器上排队：锁交给最先来的。"},
    .queue = HAZARD_QUEUE_MAX,
    .slow_overtakings = 3,
    .with = {.lease_ms = 10000, .wait_ms = 30000},
    .steps = twenty_wait_in_a_known_order,
    .cases = unfair_cases,
};
