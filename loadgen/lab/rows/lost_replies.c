/* Lost answers and lost messages. Rows: reply-of-acquire-lost, reply-of-release-lost,
 * lost-wake-up, silent-subscription, grant-to-the-dead. */
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
     {"3 of 5 answers lost, cleaned up", "五个应答丢三个，会清理"},
     answers_of_the_majority_are_lost},
    {"redlock",
     HAZARD_SLOW,
     {.by_proxy = true, .slip = "acknowledged-only"},
     {"3 of 5 answers lost, cleaned up only where the answer was yes",
      "五个应答丢三个，只清理应答成功的"},
     answers_of_the_majority_are_lost},
    {"redis-setnx", HAZARD_SAFE, {0}, {"cleaned up by its token", "靠锁标识清理"}, NULL},
    {"redis-setnx",
     HAZARD_STUCK,
     {.slip = "no-clean-up", .wait_ms = 2000},
     {"no lease, not cleaned up", "没有租约，不清理"},
     NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_reply_of_acquire_lost = {
    .id = "reply-of-acquire-lost",
    .title = {"The lock was granted, but the answer was lost", "锁已授予，应答丢失"},
    .story = {"Redis executes A's SET, and the connection breaks before the answer. A does not "
              "know that it holds the lock. If nobody removes this orphan, it keeps everybody out "
              "until its lease ends, or for ever if it has no lease.",
              "A 的 SET 已执行，应答之前连接断开。A "
              "不知道锁已属于自己。如果没有谁撤销，这把无主的锁会挡住所有请求直到租约到期；没有租约"
              "，就永远挡住。"},
    .warning = {"Any request over a network: no answer does not mean no.",
                "网络上的任何请求都一样：没有应答不等于没有执行。"},
    .fix =
        {"Record the attempt before it is sent. If it fails, release whatever it may have taken.",
         "发出之前先记下，失败后把可能拿到的释放掉。"},
    .slow_ms = 900,
    .reach = {.never = HAZARD_NO_SERVER},
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
        "the release did not arrive", "释放命令没有送达"                                   \
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
    .title = {"The lock was freed, but the answer was lost", "锁已释放，应答丢失"},
    .story = {"A's release is done, but its answer is lost. A asks again and does not find its own "
              "lock. This is fine: another holder's lock is not touched. If the release itself is "
              "lost, A hears nothing either. A bare DEL cannot be sent again, because another "
              "holder may have the key by then. The lock stays until its lease ends, or for ever "
              "if it has no lease, although nobody died.",
              "A 的释放已执行，应答丢失。A "
              "再问一次，发现没有自己的锁，这没有问题：别人的锁不会被动到。如果丢的是释放命令本身，"
              "A 看到的也一样：没有应答。裸 DEL 不能重发，因为这时 key "
              "可能已经是别人的。于是锁要留到租约到期；没有租约，就永远留着，尽管没有谁崩溃。"},
    .warning = {"A release must be safe to repeat.", "释放必须可以重复执行。"},
    .fix = {"Use compare-and-delete: it can be repeated until it is answered.",
            "比较再删除：可以一直重复，直到有应答。"},
    .slow_ms = 900,
    .reach = {.never = HAZARD_NO_SERVER},
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
    .title = {"The release is published before the waiter listens", "还没订阅，通知已经发过了"},
    .story = {"B finds the lock taken and is about to subscribe. At that moment A releases and "
              "publishes, but nobody listens. B subscribes and sleeps, although the lock is free.",
              "B 发现锁被占，正要去订阅。就在这时 A 释放并发布通知，没有订阅者。B "
              "订阅完成后就睡眠，而锁其实空着。"},
    .warning = {"The lost wake-up of condition variables, over a network.",
                "条件变量的“丢失唤醒”，换到了网络上。"},
    .fix = {"Subscribe first, try once more, and sleep no longer than the lease.",
            "先订阅，再试一次，睡眠不超过租约。"},
    .slow_ms = 900,
    .reach = {.needs = LK_CAP_WAKES},
    .with = {.lease_ms = 2500},
    .steps = released_before_the_subscription,
    .cases = lost_wake_up_cases,
};

/* B has subscribed and sleeps. UNHEARD waits until the message of A's release is swallowed. */
static const struct hazard_step message_vanishes_on_the_way[] = {
    {A, SEND, NULL},    {A, UNTIL, "decided"}, {B, SEND, NULL},    {B, UNTIL, "lock.subscribe"},
    {B, RELEASE, NULL}, {B, SILENCE, NULL},    {A, RELEASE, NULL}, {A, ANSWER, NULL},
    {B, UNHEARD, NULL}, {B, ANSWER, NULL},     HAZARD_END,
};

static const struct hazard_case silent_subscription_cases[] = {
    {"redis-reentrant", HAZARD_SAFE, {0}, {"PINGs the subscription", "会探活"}, NULL},
    {"redis-reentrant",
     HAZARD_SLOW,
     {.slip = "unproved-line"},
     {"trusts the connection", "相信连接还在"},
     NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_silent_subscription = {
    .id = "silent-subscription",
    .title = {"The subscription goes silent without an error", "订阅悄悄失效，没有报错"},
    .story = {"B waits for a message on its subscription. A device on the network forgets the "
              "connection, and its packets vanish without an error. A releases and publishes, but "
              "B hears nothing. The kernel considers the connection healthy for hours.",
              "B 在订阅上等通知。中间设备丢了这条连接的状态：包被悄悄丢弃，没有任何报错。A "
              "释放并发布，B 什么也收不到，而内核在几小时内都认为连接正常。"},
    .warning =
        {"RFC 1122, 4.2.3.6: TCP keep-alive is off by default. If it is on, it waits two hours.",
         "RFC 1122 4.2.3.6：TCP 保活默认关闭，开了也要两小时。"},
    .fix = {"Send PING on the subscription itself, once a second. Without an answer, reconnect, "
            "and let every waiter try the lock again.",
            "在订阅连接上每秒 PING；没有应答就重连，每个等待者再试一次。"},
    .slow_ms = 6000,
    .reach = {.never = "mutex", .needs = LK_CAP_WAKES},
    .with = {.lease_ms = 12000, .wait_ms = 30000},
    .steps = message_vanishes_on_the_way,
    .cases = silent_subscription_cases,
};

static const struct hazard_step leaves_the_queue_unheard[] = {
    {A, SEND, NULL},    {A, UNTIL, "decided"}, {C, LOSE_LEAVE, NULL},
    {C, SEND, NULL},    {C, ANSWER, NULL},     {C, ASKING_LOST, NULL},
    {A, RELEASE, NULL}, {A, ANSWER, NULL},     {B, RUN, NULL},
    HAZARD_END,
};

static const struct hazard_case grant_to_the_dead_cases[] = {
    {"redis-fair", HAZARD_SAFE, {0}, {"the leave command is repeated", "退出命令会重试"}, NULL},
    {"redis-fair",
     HAZARD_STUCK,
     {.slip = "leave-unchecked"},
     {"the reply to the leave is ignored", "不检查退出的应答"},
     NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_grant_to_the_dead = {
    .id = "grant-to-the-dead",
    .title = {"The lock is granted to a waiter that is gone", "锁交给了已经离开的等待者"},
    .story = {"C gives up, but its command to leave the queue is lost. C was alive a moment ago, "
              "so A's release hands it the lock. C's client drops the grant, because no caller "
              "waits for it. The lock is held for a whole lease, and nobody uses it.",
              "C 放弃了，可退出队列的命令丢了。它刚才还活着，A 释放时就把锁交给它。"
              "C 的客户端收到通知，已没有请求要它，于是丢弃：锁白白占用整整一个租约。"},
    .warning = {"A failed clean-up is still owed. Check its result like any other.",
                "失败的清理仍是欠账：它的返回值也必须检查。"},
    .fix = {"Repeat a failed clean-up in the background until the server answers.",
            "清理失败的，在后台重试，直到服务器应答为止。"},
    .last = {[C] = ANSWER_STUCK},
    .reach = {.needs = LK_CAP_FAIR},
    .with = {.lease_ms = 12000, .wait_ms = 1500},
    .steps = leaves_the_queue_unheard,
    .cases = grant_to_the_dead_cases,
};
