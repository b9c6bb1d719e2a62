/* Releases, renewals and entry counts with a mistake. Rows: two-step-release, shared-token,
 * clock-skew-getset, stamp-overwritten, hung-worker, explicit-lease, self-deadlock,
 * local-reentry-count. */
#include "hazard_rows.h"

static const struct hazard_step lease_ends_between_get_and_del[] = {
    {A, SEND, NULL},           {A, UNTIL, "lock.release.del"},
    {LOCKS, GONE, NULL},       {B, SEND, NULL},
    {B, UNTIL, "decided"},     {A, RELEASE, NULL},
    {A, ANSWER, NULL},         {C, SEND, NULL},
    {C, AS_FAR_AS, "decided"}, {B, RELEASE, NULL},
    {B, ANSWER, NULL},         {C, RELEASE, NULL},
    {C, ANSWER, NULL},         {B, RETRY, NULL},
    {C, RETRY, NULL},          HAZARD_END,
};

/* A release in one step has no point between compare and delete. A is held before it instead. */
static const struct hazard_step lease_ends_before_the_release[] = {
    {A, SEND, NULL},           {A, UNTIL, "lock.release"}, {LOCKS, GONE, NULL}, {B, SEND, NULL},
    {B, UNTIL, "decided"},     {A, RELEASE, NULL},         {A, ANSWER, NULL},   {C, SEND, NULL},
    {C, AS_FAR_AS, "decided"}, {B, RELEASE, NULL},         {B, ANSWER, NULL},   {C, RELEASE, NULL},
    {C, ANSWER, NULL},         {B, RETRY, NULL},           {C, RETRY, NULL},    HAZARD_END,
};

static const struct hazard_case two_step_release_cases[] = {
    {"redis-token",
     HAZARD_UNSAFE,
     {.slip = "two-step-release"},
     {"GET, then DEL", "先 GET 再 DEL"},
     lease_ends_between_get_and_del},
    {"redis-token", HAZARD_SAFE, {0}, {"Lua", "Lua"}, lease_ends_before_the_release},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_two_step_release = {
    .id = "two-step-release",
    .title = {"The release compares in one step and deletes in another", "比较和删除分成两步"},
    .story = {"A asks who owns the key: A does. Before its DEL arrives, the lease ends and B takes "
              "the lock. The DEL frees B's lock, and C enters while B is inside.",
              "A 先 GET：key 是自己的。DEL 还没送达，租约到期，B 拿到了锁。这个 DEL 释放的是 B "
              "的锁，C 和 B 同时进入临界区。"},
    .warning = {"This is why the release is a script: GET and DEL happen at two moments.",
                "释放要写成脚本的原因：GET 和 DEL 是两个时刻。"},
    .fix = {"Compare and delete in one Lua script.", "用一段 Lua 脚本完成比较和删除。"},
    .reach = {.needs = LK_CAP_OWNER},
    .with = {.lease_ms = 1500, .watchdog = OFF, .fence = OFF},
    .cases = two_step_release_cases,
};

static const struct hazard_step late_release[] = {
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

static const struct hazard_case shared_token_cases[] = {
    {"redis-token", HAZARD_UNSAFE, {.slip = "shared-token"}, {"constant value", "固定的值"}, NULL},
    {"redis-token", HAZARD_SAFE, {0}, {"token per hold", "每次一个锁标识"}, NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_shared_token = {
    .id = "shared-token",
    .title = {"All holders write the same value into the lock", "所有持有者在锁里写同样的值"},
    .story = {"The release compares the value, but all holders write the same value. The "
              "comparison always succeeds. A's late release frees B's lock.",
              "释放时确实比较了值，可写的值都一样，永远相等。A 迟到的释放释放了 B 的锁。"},
    .warning = {"A constant, a host name, or a thread id that two processes share: none of these "
                "is a token.",
                "常量、主机名、两个进程都有的线程号，都不能当锁标识。"},
    .fix = {"Use a random token per hold.", "每次加锁用一个随机的锁标识（UUID）。"},
    .reach = {.never = "mutex", .needs = LK_CAP_OWNER},
    .with = {.lease_ms = 1500, .watchdog = OFF, .fence = OFF},
    .steps = late_release,
    .cases = shared_token_cases,
};

static const struct hazard_step clock_ahead_takes_a_live_lock[] = {
    {B, SEND, NULL},           {B, UNTIL, "decided"}, {A, SEND, NULL},
    {A, AS_FAR_AS, "decided"}, {B, RELEASE, NULL},    {B, ANSWER, NULL},
    {A, RELEASE, NULL},        {A, ANSWER, NULL},     HAZARD_END,
};

static const struct hazard_case clock_skew_cases[] = {
    {"redis-getset", HAZARD_UNSAFE, {0}, {NULL}, NULL},
    {"redis-token", HAZARD_SAFE, {0}, {NULL}, NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_clock_skew_getset = {
    .id = "clock-skew-getset",
    .title = {"A client's clock is ahead", "某个客户端的时钟快了"},
    .story =
        {"The lock's expiry is a time stamp, and each client judges it by its own clock. The clock "
         "of A's machine is a minute ahead. B's valid lock looks expired, and A takes it.",
         "锁的过期时间是写在里面的时间戳，由读它的客户端用自己的时钟判断。A 的机器快了一分钟：B "
         "仍有效的锁看上去早已过期，A 就抢走了它。"},
    .warning = {"The old SETNX and GETSET recipe needs synchronized clocks, but mentions this only "
                "in passing.",
                "老的 SETNX 加 GETSET 方案要求各机时钟同步，常常只用半句话带过。"},
    .fix = {"Let only the server's clock judge: use PX.",
            "只用一个时钟来判断，也就是服务器的：PX。"},
    .reach = {.needs = LK_CAP_LEASE, .holds = LK_CAP_SERVER_CLOCK},
    .with = {.lease_ms = 8000, .clock_ms = 60000},
    .steps = clock_ahead_takes_a_live_lock,
    .cases = clock_skew_cases,
};

static const struct hazard_step two_replace_a_dead_stamp[] = {
    {A, SEND, NULL},       {A, UNTIL, "decided"},     {A, KILL, NULL},
    {LOCKS, GONE, NULL},   {B, SEND, NULL},           {B, UNTIL, "lock.getset"},
    {C, SEND, NULL},       {C, UNTIL, "lock.getset"}, {B, RELEASE, NULL},
    {B, UNTIL, "decided"}, {C, RELEASE, NULL},        {C, AS_FAR_AS, "decided"},
    {B, RELEASE, NULL},    {B, ANSWER, NULL},         {C, RELEASE, NULL},
    {C, ANSWER, NULL},     {A, RESTART, NULL},        HAZARD_END,
};

static const struct hazard_case stamp_cases[] = {
    {"redis-getset", HAZARD_SAFE, {0}, {"expiry moved, nothing lost", "期限被改，没有丢"}, NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_stamp_overwritten = {
    .id = "stamp-overwritten",
    .title = {"The loser's GETSET moves the winner's stamp", "输家的 GETSET 改了赢家的时间戳"},
    .story = {"A died, and its stamp has expired. B and C both see this, and both send GETSET. B "
              "is first and gets the lock. C gets B's stamp back and knows that it lost, but it "
              "has overwritten B's stamp. B's lock ends at the time that C wrote.",
              "A 崩溃，时间戳已过期。B 和 C 都看到了，都发了 GETSET。B 先到，拿到锁；C 取回的是 B "
              "的时间戳，知道自己没拿到，但已经把它覆盖：B 的锁按 C 的时间到期。"},
    .warning = {"Texts on GETSET call this harmless. That holds only if all leases are equal and "
                "no owner identifies its lock by its stamp.",
                "讲 GETSET 的文章说无妨；前提是所有客户端的租约一样，而且不靠时间戳来认自己的锁。"},
    .fix =
        {"Use SET NX PX with a token: a client that does not get the lock writes nothing into it.",
         "用带锁标识的 SET NX PX：没拿到锁的客户端不会往里写。"},
    .reach = {.only = "redis-getset"},
    .with = {.lease_ms = 1500},
    .last = {[A] = ANSWER_NONE},
    .steps = two_replace_a_dead_stamp,
    .cases = stamp_cases,
};

static const struct hazard_step worker_hangs[] = {
    {A, SEND, NULL},   {A, UNTIL, "decided"}, {B, RUN, NULL}, {A, RELEASE, NULL},
    {A, ANSWER, NULL}, {A, RETRY, NULL},      HAZARD_END,
};

static const struct hazard_case hung_worker_cases[] = {
    {"redis-reentrant", HAZARD_STUCK, {0}, {"no maximum hold time", "没有上限"}, NULL},
    {"redis-reentrant",
     HAZARD_SAFE,
     {.max_hold_ms = 500},
     {"maximum hold time", "有最长持有时间"},
     NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_hung_worker = {
    .id = "hung-worker",
    .title = {"The worker hangs, and the watchdog renews for ever", "业务挂死，看门狗一直续期"},
    .story = {"A's thread waits for something that never comes. The watchdog is another thread and "
              "keeps renewing. The lock never ends, although nobody works.",
              "A "
              "的线程在等一个永远不来的结果。看门狗是另一个线程，照样续期：锁永不到期，却没有任何进"
              "展。"},
    .warning = {"Automatic renewal cannot tell work from a hang, and texts on it often omit this.",
                "夸自动续期的文章没说的：它分不清是在工作还是已挂死。"},
    .fix = {"Set a maximum hold time, after which the watchdog stops.",
            "设最长持有时间，到了看门狗就停。"},
    .reach = {.needs = LK_CAP_RENEW | LK_CAP_SESSION},
    .with = {.wait_ms = 2500, .lease_ms = 600},
    .steps = worker_hangs,
    .cases = hung_worker_cases,
};

static const struct hazard_step outlives_its_lease[] = {
    {A, SEND, NULL},    {A, UNTIL, "checked"},       {LOCKS, OUTLIVE, NULL},
    {B, SEND, NULL},    {B, AS_FAR_AS, "committed"}, {B, RELEASE, NULL},
    {A, RELEASE, NULL}, {A, ANSWER, NULL},           {B, ANSWER, NULL},
    HAZARD_END,
};

static const struct hazard_case explicit_lease_cases[] = {
    {"redis-reentrant", HAZARD_UNSAFE, {.watchdog = OFF}, {"lease given", "指定了租约"}, NULL},
    {"redis-reentrant", HAZARD_SAFE, {.watchdog = ON}, {"no lease given", "不指定租约"}, NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_explicit_lease = {
    .id = "explicit-lease",
    .title = {"Giving a lease switches the watchdog off", "指定了租约，看门狗就不续期"},
    .story = {"lock(10, SECONDS) looks safer than lock(). It means: hold for exactly this time, do "
              "not renew. The work takes longer, and B enters.",
              "lock(10, SECONDS) 看着比 lock() "
              "更稳妥。其实它的意思是：只持有这么久，不续期。业务更久，B 就进来了。"},
    .warning = {"Texts that praise the watchdog and then show a call with a lease.",
                "有的文章一边夸看门狗，一边给出带租约的调用。"},
    .fix = {"Give no lease, or one that is certainly longer than the work. Add a fence.",
            "不要指定租约，或指定一定比业务长的租约，再加栅栏令牌。"},
    .reach = {.needs = LK_CAP_RENEW},
    .with = {.fence = OFF},
    .steps = outlives_its_lease,
    .cases = explicit_lease_cases,
};

static const struct hazard_step asks_twice[] = {
    {A, RUN, NULL},
    HAZARD_END,
};

static const struct hazard_case self_deadlock_cases[] = {
    {"redis-token", HAZARD_STUCK, {0}, {NULL}, NULL},
    {"redis-reentrant", HAZARD_SAFE, {0}, {NULL}, NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_self_deadlock = {
    .id = "self-deadlock",
    .title = {"The same owner asks for its lock twice", "同一个持有者再拿一次自己的锁"},
    .story =
        {"A locked function calls another function that takes the same lock. The key exists, so "
         "the inner call waits for the outer one. The outer call waits for the inner one.",
         "一个加了锁的函数调用另一个要拿同一把锁的函数。key 在，里层就等：等外层，外层又在等它。"},
    .warning = {"This is why lock libraries offer re-entrance.", "这就是锁库强调“可重入”的原因。"},
    .fix = {"Use a re-entrant lock that counts on the server, or lock in one place only.",
            "用在服务器上计数的可重入锁，或者只在一处加锁。"},
    .reach = {.never = HAZARD_NO_LOCK, .holds = LK_CAP_REENTRANT},
    .with = {.wait_ms = 1200, .slip = "nested-acquire"},
    .steps = asks_twice,
    .cases = self_deadlock_cases,
};

static const struct hazard_step expires_between_outer_and_inner[] = {
    {A, SEND, NULL},           {A, UNTIL, "lock.acquired"},
    {LOCKS, GONE, NULL},       {B, SEND, NULL},
    {B, UNTIL, "decided"},     {A, RELEASE, NULL},
    {A, AS_FAR_AS, "decided"}, {B, RELEASE, NULL},
    {B, ANSWER, NULL},         {A, RELEASE, NULL},
    {A, ANSWER, NULL},         {A, RETRY, NULL},
    {B, RETRY, NULL},          HAZARD_END,
};

static const struct hazard_case local_count_cases[] = {
    {"redis-reentrant",
     HAZARD_UNSAFE,
     {.slip = "local-count"},
     {"counted in the client", "在客户端计数"},
     NULL},
    {"redis-reentrant",
     HAZARD_SAFE,
     {.slip = "nested-acquire"},
     {"counted on the server", "在服务器计数"},
     NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_local_reentry_count = {
    .id = "local-reentry-count",
    .title = {"Re-entry is counted in the client only", "重入次数只记在客户端"},
    .story =
        {"A takes the lock, and its lease ends unnoticed. The inner acquire looks at a counter in "
         "A's own memory, finds the lock held and goes on. But B holds it on the server.",
         "A "
         "拿过锁，租约悄悄到期。里层加锁只看自己内存里的计数：大于零，就继续执行。而服务器上锁已经"
         "是 B 的了。"},
    .warning = {"Home-made re-entrance: a ThreadLocal counter around a Redis key.",
                "用 ThreadLocal 计数包着 Redis key 的自制可重入锁。"},
    .fix = {"Count on the server: the inner acquire then learns that the lock is lost.",
            "在服务器上计数：里层一问就知道锁丢了。"},
    .reach = {.needs = LK_CAP_REENTRANT},
    .with = {.lease_ms = 1200, .watchdog = OFF, .fence = OFF},
    .steps = expires_between_outer_and_inner,
    .cases = local_count_cases,
};
