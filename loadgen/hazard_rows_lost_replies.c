/* Something was done, and nobody was told: lost answers and lost wake-ups. */
#include "hazard_rows.h"

static const struct hazard_step answer_to_the_acquire_is_lost[] = {
    {A, LOSE, NULL},   {A, SEND, NULL},  {A, LOST, NULL}, {B, RUN, NULL},
    {A, ANSWER, NULL}, {A, RETRY, NULL}, HAZARD_END,
};

static const struct hazard_step answers_of_the_majority_are_lost[] = {
    {A, LOSE, "345"},  {A, SEND, NULL},  {A, LOST, "345"}, {B, RUN, NULL},
    {A, ANSWER, NULL}, {A, RETRY, NULL}, HAZARD_END,
};

static const struct hazard_case acquire_lost_cases[] = {
    {"redis-token", HAZARD_SAFE, {0}, {"cleaned up", "会清理"}, NULL},
    {"redis-token", HAZARD_SLOW, {.slip = "no-clean-up"}, {"not cleaned up", "不清理"}, NULL},
    {"redlock",
     HAZARD_SAFE,
     {.by_proxy = true},
     {"3 of 5 answers lost, cleaned up", "五个回答丢三个，会清理"},
     answers_of_the_majority_are_lost},
    {"redlock",
     HAZARD_SLOW,
     {.by_proxy = true, .slip = "acknowledged-only"},
     {"3 of 5 answers lost, cleaned up where it was told yes", "五个回答丢三个，只清理答应过的"},
     answers_of_the_majority_are_lost},
    {"redis-setnx", HAZARD_SAFE, {0}, {"cleaned up by its token", "靠令牌清理"}, NULL},
    {"redis-setnx",
     HAZARD_STUCK,
     {.slip = "no-clean-up", .wait_ms = 2000},
     {"no lease, not cleaned up", "没有租约，不清理"},
     NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_reply_of_acquire_lost = {
    .id = "reply-of-acquire-lost",
    .title = {"The lock was granted, the answer was lost", "锁给了，回答丢了"},
    .story = {"A's SET was done, and the connection broke before the answer. A does not know that "
              "it holds the lock. If nobody undoes it, the orphan keeps everybody out until its "
              "lease ends, and for ever if it has none.",
              "A 的 SET 执行了，回答之前连接断了。A 不知道锁在自己手里。"
              "没人撤销的话，这把没主的锁要挡住大家直到租约到期；没有租约，就永远挡着。"},
    .warning = {"Any request over a network: no answer is not no.",
                "网络上的任何请求都一样：没有回答不等于没做。"},
    .fix = {"Mark the attempt before it is sent, and release whatever it may have taken.",
            "发出之前先记下，失败后把可能拿到的释放掉。"},
    .slow_ms = 900,
    .with = {.lease_ms = 2500},
    .steps = answer_to_the_acquire_is_lost,
    .cases = acquire_lost_cases,
};

static const struct hazard_step answer_to_the_release_is_lost[] = {
    {A, SEND, NULL}, {A, UNTIL, "committed"}, {A, LOSE, NULL}, {A, RELEASE, NULL},
    {A, LOST, NULL}, {A, ANSWER, NULL},       {B, RUN, NULL},  HAZARD_END,
};

static const struct hazard_step release_itself_is_lost[] = {
    {A, SEND, NULL},        {A, UNTIL, "committed"}, {A, LOSE_ASKING, NULL}, {A, RELEASE, NULL},
    {A, ASKING_LOST, NULL}, {A, ANSWER, NULL},       {B, RUN, NULL},         HAZARD_END,
};

#define DID_NOT_ARRIVE                                                                             \
    {                                                                                              \
        "the release did not arrive", "放锁的命令没有送到"                                \
    }

static const struct hazard_case release_lost_cases[] = {
    {"redis-token", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"redis-reentrant", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"redis-token", HAZARD_SAFE, {0}, DID_NOT_ARRIVE, release_itself_is_lost},
    {"redis-set", HAZARD_SLOW, {0}, DID_NOT_ARRIVE, release_itself_is_lost},
    {"redis-setnx", HAZARD_STUCK, {.wait_ms = 2000}, DID_NOT_ARRIVE, release_itself_is_lost},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_reply_of_release_lost = {
    .id = "reply-of-release-lost",
    .title = {"The lock was freed, the answer was lost", "锁放了，回答丢了"},
    .story =
        {"A's release was done, its answer lost. A asks once more and finds nothing of its own "
         "there, which is fine: another's lock is not touched. When the release itself is lost, A "
         "hears the same: nothing. A bare DEL cannot be sent again, as the key may be another's by "
         "then. So the lock stays until its lease ends, and for ever if it has none, though nobody "
         "has died.",
         "A 的释放执行了，回答丢了。A 再问一次，发现没有自己的锁，这很好：别人的锁不会被动到。"
         "如果丢的是释放命令本身，A 听到的也一样：什么都没有。裸 DEL 不能重发，因为这时 key "
         "可能已经是别人的。于是锁要留到租约到期；没有租约，就永远留着，虽然谁也没有死。"},
    .warning = {"A release has to be safe to repeat.", "释放必须可以重复执行。"},
    .fix = {"Compare-and-delete: it can be repeated until it is answered.",
            "比较再删除：可以一直重复，直到有回答。"},
    .slow_ms = 900,
    .with = {.lease_ms = 2500},
    .steps = answer_to_the_release_is_lost,
    .cases = release_lost_cases,
};

static const struct hazard_step released_before_the_subscription[] = {
    {A, SEND, NULL},    {A, UNTIL, "decided"}, {B, SEND, NULL},    {B, UNTIL, "lock.subscribe"},
    {A, RELEASE, NULL}, {A, ANSWER, NULL},     {B, RELEASE, NULL}, {B, ANSWER, NULL},
    HAZARD_END,
};

static const struct hazard_case lost_wake_up_cases[] = {
    {"redis-reentrant", HAZARD_SAFE, {0}, {"second try", "订阅后再试一次"}, NULL},
    {"redis-reentrant", HAZARD_SLOW, {.slip = "no-second-try"}, {"no second try", "不再试"}, NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_lost_wake_up = {
    .id = "lost-wake-up",
    .title = {"The release is published before the waiter listens", "还没开始听，通知已经发过了"},
    .story = {"B finds the lock taken and is about to subscribe. In that moment A releases and "
              "publishes; nobody listens. B subscribes, and sleeps although the lock is free.",
              "B 发现锁被占，正要去订阅。就在这时 A 释放并发布通知，没有人听。"
              "B 订阅好了就睡，而锁其实空着。"},
    .warning = {"The lost wake-up of every condition variable, over a network.",
                "条件变量的“丢失唤醒”，换到了网络上。"},
    .fix = {"Subscribe first, then try once more, and sleep no longer than the lease.",
            "先订阅，再试一次，睡眠不超过租约。"},
    .slow_ms = 900,
    .with = {.lease_ms = 2500},
    .steps = released_before_the_subscription,
    .cases = lost_wake_up_cases,
};
