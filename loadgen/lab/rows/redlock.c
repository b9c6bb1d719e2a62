/* Five independent nodes that vote. Rows: redlock-minority-down, redlock-restart,
 * redlock-clock-jump. */
#include "hazard_rows.h"

static const struct hazard_step two_nodes_are_dead[] = {
    {LOCKS, DOWN, "45"},
    {A, SEND, NULL},
    {A, UNTIL, "decided"},
    {B, SEND, NULL},
    {B, AS_FAR_AS, "decided"},
    {A, RELEASE, NULL},
    {A, ANSWER, NULL},
    {B, RELEASE, NULL},
    {B, ANSWER, NULL},
    {LOCKS, UP, "45"},
    HAZARD_END,
};

static const struct hazard_step three_nodes_are_dead[] = {
    {LOCKS, DOWN, "345"},
    {A, RUN, NULL},
    {LOCKS, UP, "345"},
    HAZARD_END,
};

static const struct hazard_case minority_cases[] = {
    {"redlock", HAZARD_SAFE, {0}, {"2 of 5 nodes dead", "5 个节点宕 2 个"}, two_nodes_are_dead},
    {"redlock",
     HAZARD_REFUSED,
     {.wait_ms = 1000},
     {"3 of 5 nodes dead", "5 个节点宕 3 个"},
     three_nodes_are_dead},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_redlock_minority_down = {
    .id = "redlock-minority-down",
    .title = {"Some of the five nodes are dead", "五个节点宕机几个"},
    .story =
        {"Two of five nodes are killed. Three are a majority, so the lock is still granted, to one "
         "holder at a time. With three dead there is no majority, and nobody gets the lock.",
         "五个节点宕两个：剩三个仍是多数，锁照常授予，一次一个。宕三个就没有多数，谁也拿不到锁。"},
    .warning = {"The majority of five is three: n/2+1. Some texts wrongly ask for more than n/2+1.",
                "五个的多数是三个，即 n/2+1；有的文章写成“多于 n/2+1”，不对。"},
    .fix = {"Nothing to fix: without a majority the lock is refused.",
            "不用修：没有多数就拒绝加锁。"},
    .gives_up = true,
    .reach = {.only = "redlock"},
    .with = {.lease_ms = 5000},
    .cases = minority_cases,
};

/* A has 1, 2, 3. Node 3 forgets, and 3, 4, 5 are a majority for B. */
static const struct hazard_step one_of_the_majority_forgets[] = {
    {LOCKS, DOWN, "45"}, {A, SEND, NULL},           {A, UNTIL, "checked"},
    {LOCKS, UP, "45"},   {LOCKS, DOWN, "3"},        {LOCKS, UP, "3"},
    {B, SEND, NULL},     {B, AS_FAR_AS, "checked"}, {A, RELEASE, NULL},
    {A, ANSWER, NULL},   {B, RELEASE, NULL},        {B, ANSWER, NULL},
    {A, RETRY, NULL},    {B, RETRY, NULL},          HAZARD_END,
};

/* The node stays away until every lease that it may have forgotten is over. */
static const struct hazard_step it_stays_away_for_a_lease[] = {
    {LOCKS, DOWN, "45"}, {A, SEND, NULL},    {A, UNTIL, "decided"},     {LOCKS, UP, "45"},
    {LOCKS, DOWN, "3"},  {B, SEND, NULL},    {B, AS_FAR_AS, "decided"}, {A, RELEASE, NULL},
    {A, ANSWER, NULL},   {B, RELEASE, NULL}, {B, ANSWER, NULL},         {LOCKS, UP, "3"},
    HAZARD_END,
};

static const struct hazard_case restart_cases[] = {
    {"redlock", HAZARD_UNSAFE, {.fence = OFF}, {"restarts at once", "立刻重启"}, NULL},
    {"redlock",
     HAZARD_SAFE,
     {.fence = OFF},
     {"stays away for a lease", "等一个租约再回来"},
     it_stays_away_for_a_lease},
    {"redlock",
     HAZARD_SAFE,
     {.fence = ON, .fence_source = "database"},
     {"fence from the database", "栅栏令牌来自数据库"},
     NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_redlock_restart = {
    .id = "redlock-restart",
    .title = {"One node of the majority restarts empty", "多数派中的一个节点丢了数据重启"},
    .story = {"Nodes 1, 2 and 3 grant A the lock while 4 and 5 are down. Nodes 4 and 5 come back, "
              "and node 3 restarts empty. Nodes 3, 4 and 5 have no lock and are a majority for B.",
              "4、5 号宕机时 A 拿到了 1、2、3 号。后来 4、5 号恢复，3 号丢了数据重启：3、4、5 "
              "号都不知道有锁，正好是 B 的多数。"},
    .warning = {"The Redis documentation of Redlock, on crash recovery; M. Kleppmann (2016).",
                "Redis 的 Redlock 文档讲崩溃恢复的一段；Kleppmann 2016。"},
    .fix = {"A restarted node stays away until the longest lease has ended. Or use a fence.",
            "重启的节点等最长的租约过去再回来；或者用栅栏令牌。"},
    .reach = {.only = "redlock"},
    .with = {.lease_ms = 6000},
    .steps = one_of_the_majority_forgets,
    .cases = restart_cases,
};

static const struct hazard_step clock_of_one_leaps[] = {
    {LOCKS, DOWN, "45"}, {A, SEND, NULL},    {A, UNTIL, "checked"},     {LOCKS, UP, "45"},
    {LOCKS, LEAP, "3"},  {B, SEND, NULL},    {B, AS_FAR_AS, "checked"}, {A, RELEASE, NULL},
    {A, ANSWER, NULL},   {B, RELEASE, NULL}, {B, ANSWER, NULL},         {A, RETRY, NULL},
    {B, RETRY, NULL},    HAZARD_END,
};

static const struct hazard_case clock_jump_cases[] = {
    {"redlock", HAZARD_UNSAFE, {.fence = OFF}, {NULL}, NULL},
    {"redlock",
     HAZARD_SAFE,
     {.fence = ON, .fence_source = "database"},
     {"fence from the database", "栅栏令牌来自数据库"},
     NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_redlock_clock_jump = {
    .id = "redlock-clock-jump",
    .title = {"The clock of one node jumps", "一个节点的时钟跳了"},
    .story =
        {"Nodes 1, 2 and 3 grant A the lock. Somebody sets the clock of node 3 ahead. By its wall "
         "clock the lease has ended, so it drops the lock. Nodes 3, 4 and 5 are a majority for B.",
         "A 拿到了 1、2、3 号。3 号的时钟被拨快；按它的墙上时钟租约已过，锁就没了。"
         "3、4、5 正好是 B 的多数。"},
    .warning =
        {"M. Kleppmann (2016) on Redlock: it trusts clocks that can jump. Redis expires keys by "
         "the wall clock.",
         "Kleppmann 2016 年对 Redlock 的批评：它依赖会跳变的时钟。Redis 按墙上时钟让 key 过期。"},
    .fix = {"Take a fence from the resource itself. Slew clocks, never set them.",
            "由资源自己发栅栏令牌；时钟只许缓慢校准，不许直接改。"},
    .reach = {.only = "redlock"},
    .with = {.lease_ms = 6000},
    .steps = clock_of_one_leaps,
    .cases = clock_jump_cases,
};
