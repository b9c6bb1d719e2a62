/* What a fenced write must compare. Rows: late-second-turn. */
#include "hazard_rows.h"

/* B and C come to one instance: C goes on under the lock that B took, as the next turn of the lane.
 * A comes to the other instance, and reads before C writes. */
static const struct hazard_step writes_a_second_time[] = {
    {B, SEND, NULL},          {B, UNTIL, "decided"}, {C, SEND, NULL},
    {C, PASSED, "submitted"}, {B, RELEASE, NULL},    {C, UNTIL, "decided"},
    {LOCKS, DELETE, NULL},    {A, SEND, NULL},       {A, UNTIL, "decided"},
    {C, RELEASE, NULL},       {C, ANSWER, NULL},     {A, RELEASE, NULL},
    {A, ANSWER, NULL},        {B, ANSWER, NULL},     HAZARD_END,
};

static const struct hazard_case late_second_turn_cases[] = {
    {"redis-token",
     HAZARD_UNSAFE,
     {.slip = "number-only"},
     {"only the fence is compared", "只比较栅栏令牌"},
     NULL},
    {"redis-token",
     HAZARD_SAFE,
     {0},
     {"version and fence in one test", "版本与栅栏令牌一并检查"},
     NULL},
    {"redis-reentrant",
     HAZARD_UNSAFE,
     {.slip = "number-only"},
     {"only the fence is compared", "只比较栅栏令牌"},
     NULL},
    {"redis-reentrant",
     HAZARD_SAFE,
     {0},
     {"version and fence in one test", "版本与栅栏令牌一并检查"},
     NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_late_second_turn = {
    .id = "late-second-turn",
    .title = {"A late holder writes a second time with the same fence",
              "迟到的持有者用同一个栅栏令牌写第二次"},
    .story = {"A lane keeps its lock for several writes. After the first write the lock is lost, "
              "and A gets it with a newer fence. A reads. Then the late lane writes again. Its "
              "fence is still the newest that the store has seen, so the write passes. The store's "
              "fence is the same as when A read, so A's write passes too.",
              "一条通道拿着锁连写几次。写完第一次后锁丢了，A 拿到锁和更新的栅栏令牌。A "
              "读完，迟到的通道又写了一次：存储见过的最新栅栏令牌还是它的，于是放行。存储里的栅栏令"
              "牌和 A 读的时候一样，A 的写入也放行。"},
    .warning = {"Texts on fencing tokens compare the token alone. That stops a late writer only "
                "after the newer holder has written.",
                "讲栅栏令牌的文章只比较栅栏令牌；新持有者写入之前，它挡不住迟到的写入。"},
    .fix = {"One statement tests both the version that the holder read and the fence. A's write "
            "finds another version, and A reads again.",
            "一条语句同时检查持有者读到的版本和栅栏令牌：A 的写入发现版本变了，于是重新读取。"},
    .reach = {.never = HAZARD_NO_SERVER},
    .with = {.watchdog = OFF, .lease_ms = 30000, .lane_turns = 2},
    .steps = writes_a_second_time,
    .cases = late_second_turn_cases,
};
