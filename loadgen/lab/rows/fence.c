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
     {"only the number is compared", "只比较号码"},
     NULL},
    {"redis-token",
     HAZARD_SAFE,
     {0},
     {"version and number in one test", "版本与号码一并检查"},
     NULL},
    {"redis-reentrant",
     HAZARD_UNSAFE,
     {.slip = "number-only"},
     {"only the number is compared", "只比较号码"},
     NULL},
    {"redis-reentrant",
     HAZARD_SAFE,
     {0},
     {"version and number in one test", "版本与号码一并检查"},
     NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_late_second_turn = {
    .id = "late-second-turn",
    .title = {"A late holder writes a second time under its fence",
              "迟到的持有者用同一个令牌写第二次"},
    .story = {"A lane keeps its lock for several writes. After the first one the lock is lost, and "
              "A gets it with a newer number. A reads, and then the late lane writes a second "
              "time: its number is still the newest that the store has seen, so the write passes. "
              "The number has not moved since A read, so A's write passes as well.",
              "一条通道拿着锁连写几次。写完第一次后锁丢了，A 拿到锁和更大的号码。"
              "A 读完，迟到的通道又写了一次：存储见过的最大号码还是它的，于是放行。"
              "A 读过之后号码没有变，A 的写入也放行。"},
    .warning = {"Texts about fencing tokens compare the token alone; that stops a late writer "
                "only after the newer holder has written.",
                "讲栅栏令牌的文章只比较令牌；新持有者写入之前，它挡不住迟到的写入。"},
    .fix = {"One statement tests the version that the holder has read and the number: A's write "
            "finds another version, and A reads again.",
            "一条语句同时检查持有者读到的版本和号码：A 的写入发现版本变了，于是重新读取。"},
    .with = {.watchdog = OFF, .lease_ms = 30000, .lane_turns = 2},
    .steps = writes_a_second_time,
    .cases = late_second_turn_cases,
};
