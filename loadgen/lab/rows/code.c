/* The lock is right, and the code around it is wrong. Rows: unlock-before-commit,
 * snapshot-before-lock, result-ignored, duplicate-request, key-outside-transaction,
 * crash-before-reply, off-by-one, opposite-order. */
#include "hazard_rows.h"

static const struct hazard_step second_comes_before_the_commit[] = {
    {A, SEND, NULL},           {A, UNTIL, "checked"}, {B, SEND, NULL},
    {B, AS_FAR_AS, "decided"}, {A, RELEASE, NULL},    {A, ANSWER, NULL},
    {B, RELEASE, NULL},        {B, ANSWER, NULL},     HAZARD_END,
};

static const struct hazard_case unlock_before_commit_cases[] = {
    {"redis-token",
     HAZARD_UNSAFE,
     {.slip = "unlock-early"},
     {"unlock, then commit", "先解锁再提交"},
     NULL},
    {"redis-token", HAZARD_SAFE, {0}, {"commit, then unlock", "先提交再解锁"}, NULL},
    {"mutex",
     HAZARD_UNSAFE,
     {.slip = "unlock-early", .instances = 1},
     {"unlock, then commit", "先解锁再提交"},
     NULL},
    {"mutex", HAZARD_SAFE, {.instances = 1}, {"commit, then unlock", "先提交再解锁"}, NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_unlock_before_commit = {
    .id = "unlock-before-commit",
    .title = {"The lock is released before the commit", "先释放锁，后提交"},
    .story = {"The lock is inside the transaction. A unlocks first and commits later. Between the "
              "two, B gets the lock and reads the old value.",
              "锁写在事务里面：A 先解锁，之后才提交。就在这两步之间，B 拿到锁，读到了旧值。"},
    .warning = {"A transactional method that locks and unlocks inside: the commit happens only "
                "when the method returns.",
                "在带事务注解的方法里加锁解锁：方法返回时才提交。"},
    .fix = {"Lock outside, transaction inside. Release the lock after the commit has returned.",
            "锁在外，事务在内：提交返回之后再释放锁。"},
    .reach = {.never = HAZARD_NO_LOCK " sql-row"},
    .with = {.fence = OFF},
    .steps = second_comes_before_the_commit,
    .cases = unlock_before_commit_cases,
};

static const struct hazard_case snapshot_cases[] = {
    {"redis-token", HAZARD_UNSAFE, {.slip = "read-early"}, {"read, then lock", "先读再加锁"}, NULL},
    {"redis-token",
     HAZARD_UNSAFE,
     {.slip = "read-early", .isolation = "repeatable-read"},
     {"read, then lock; repeatable read", "先读再加锁；可重复读"},
     NULL},
    {"redis-token",
     HAZARD_UNSAFE,
     {.slip = "read-early", .isolation = "serializable"},
     {"read, then lock; serializable", "先读再加锁；可串行化"},
     NULL},
    {"redis-token", HAZARD_SAFE, {0}, {"lock, then read", "先加锁再读"}, NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

static const struct hazard_step reads_before_it_locks[] = {
    {A, SEND, NULL},    {A, UNTIL, "decided"}, {B, SEND, NULL},   {B, PASSED, "lock.wait"},
    {A, RELEASE, NULL}, {A, ANSWER, NULL},     {B, ANSWER, NULL}, HAZARD_END,
};

const struct hazard hazard_snapshot_before_lock = {
    .id = "snapshot-before-lock",
    .title = {"The value was read before the lock was acquired", "先读了值，才拿到锁"},
    .story = {"B reads the value and then waits for the lock. A commits in the meantime. B gets "
              "the lock, but its value is older than A's commit.",
              "B 先读了值，再去等锁。A 趁此提交了。B 拿到了锁，手里却是 A 提交之前的值。"},
    .warning = {"PostgreSQL documentation, Advisory Locks and isolation: a snapshot does not wait "
                "for a lock. A stricter isolation level for the write does not help, because its "
                "transaction begins after the lock is acquired.",
                "PostgreSQL 文档讲锁与隔离级别：快照不会等锁。只提高写事务的隔离级别没有用，"
                "它在拿到锁之后才开始。"},
    .fix = {"Acquire the lock first, then read.", "先拿锁，再做第一次读。"},
    .reach = {.never = HAZARD_NO_LOCK},
    .with = {.fence = OFF},
    .steps = reads_before_it_locks,
    .cases = snapshot_cases,
};

static const struct hazard_step not_had_in_time[] = {
    {A, SEND, NULL},    {A, UNTIL, "checked"}, {B, RUN, NULL},
    {A, RELEASE, NULL}, {A, ANSWER, NULL},     HAZARD_END,
};

static const struct hazard_case result_ignored_cases[] = {
    {"redis-token",
     HAZARD_UNSAFE,
     {.slip = "result-ignored"},
     {"result ignored", "不看返回值"},
     NULL},
    {"redis-token", HAZARD_REFUSED, {0}, {"result checked", "检查返回值"}, NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_result_ignored = {
    .id = "result-ignored",
    .title = {"tryLock() failed, and the result was ignored", "tryLock() 返回 false，却没有检查"},
    .story = {"B waits for the lock and times out. tryLock() returns false, but B goes on as if it "
              "had the lock. A is still inside.",
              "B 等锁超时，tryLock() 返回 false，代码却当作拿到了锁继续执行。A 还在临界区内。"},
    .warning = {"Examples that call tryLock(10, SECONDS) and ignore its result.",
                "把 tryLock(10, SECONDS) 当语句调用、不看返回值的示例。"},
    .fix = {"Check the result: B is answered 503, has changed nothing and may try again.",
            "检查返回值：B 得到 503，没有改动任何数据，可以重试。"},
    .gives_up = true,
    .reach = {.never = HAZARD_NO_LOCK},
    .with = {.wait_ms = 800, .lease_ms = 8000, .fence = OFF},
    .steps = not_had_in_time,
    .cases = result_ignored_cases,
};

static const struct hazard_step client_sends_twice_with_two_keys[] = {
    {A, RUN, NULL},
    {A, SEND_AGAIN, NULL},
    HAZARD_END,
};

static const struct hazard_step client_sends_twice_with_one_key[] = {
    {A, RUN, NULL},
    {A, REPEAT, NULL},
    HAZARD_END,
};

static const struct hazard_case duplicate_request_cases[] = {
    {"redis-token",
     HAZARD_UNSAFE,
     {0},
     {"a new key", "换了新键"},
     client_sends_twice_with_two_keys},
    {"redis-token",
     HAZARD_SAFE,
     {0},
     {"the same Idempotency-Key", "同一个幂等键"},
     client_sends_twice_with_one_key},
    {"sql-row", HAZARD_UNSAFE, {0}, {"a new key", "换了新键"}, client_sends_twice_with_two_keys},
    {"sql-row",
     HAZARD_SAFE,
     {0},
     {"the same Idempotency-Key", "同一个幂等键"},
     client_sends_twice_with_one_key},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_duplicate_request = {
    .id = "duplicate-request",
    .title = {"The client sends one request twice", "客户端为一件事请求了两次"},
    .story = {"A is charged, but its client never sees the answer and asks again. The service "
              "takes this for a new request, unless the client says that it is the same one.",
              "A 的钱扣了，客户端却没收到应答，又请求一次。除非客户端说明是同一件事，"
              "服务只能当成另一个请求。"},
    .warning = {"No lock helps here: the two requests come one after the other.",
                "这里用什么锁都没用：两次请求是一前一后来的。"},
    .fix = {"Send the same Idempotency-Key for the same request: the service replays the stored "
            "answer.",
            "同一个请求用同一个幂等键：服务直接返回存下的应答。"},
    .cases = duplicate_request_cases,
};

static const struct hazard_step killed_after_the_commit[] = {
    {A, SEND, NULL},    {A, UNTIL, "committed"}, {A, KILL, NULL},
    {A, RESTART, NULL}, {A, RETRY, NULL},        HAZARD_END,
};

static const struct hazard_case key_outside_cases[] = {
    {"redis-token",
     HAZARD_UNSAFE,
     {.slip = "key-apart"},
     {"key in a second transaction", "键在另一个事务"},
     NULL},
    {"redis-token", HAZARD_SAFE, {0}, {"key in the same transaction", "键在同一个事务"}, NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_key_outside_transaction = {
    .id = "key-outside-transaction",
    .title = {"The idempotency row is written in a second transaction", "幂等记录写在另一个事务里"},
    .story = {"A's change is committed. The process dies before it writes the row for A's key. The "
              "retry finds no row, and A is charged again.",
              "A 的改动已提交，记住幂等键的那一行还没写，进程就死了。重试时查不到，又扣了一次。"},
    .warning = {"De-duplication in Redis beside a change in the database: no transaction covers "
                "both systems.",
                "改数据库、却在 Redis 里去重：两个系统，没有共同的事务。"},
    .fix = {"Write the row and the effect in one transaction.", "记录和效果放进同一个事务。"},
    .steps = killed_after_the_commit,
    .cases = key_outside_cases,
};

static const struct hazard_case crash_before_reply_cases[] = {
    {"redis-token", HAZARD_SAFE, {0}, {NULL}, NULL},
    {"mutex", HAZARD_SAFE, {.instances = 1}, {NULL}, NULL},
    {"sql-row", HAZARD_SAFE, {0}, {NULL}, NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_crash_before_reply = {
    .id = "crash-before-reply",
    .title = {"Killed after the commit, before the answer", "提交之后、应答之前被强杀"},
    .story = {"A's money is moved, but its client hears nothing. The client does not know whether "
              "anything happened, and asks again with the same key.",
              "A 的钱已经扣了，客户端却没有收到应答。它不知道是否成功，就用同一个键重试。"},
    .warning = {"A timeout is not a no: the third outcome is unknown.",
                "超时不等于失败：第三种结果叫“不知道”。"},
    .fix = {"Nothing to fix: the retry replays the stored answer.", "不用修：重试得到存下的应答。"},
    .steps = killed_after_the_commit,
    .cases = crash_before_reply_cases,
};

static const struct hazard_step last_piece_twice[] = {
    {A, RUN, NULL},
    {B, RUN, NULL},
    HAZARD_END,
};

static const struct hazard_case off_by_one_cases[] = {
    {"redis-token", HAZARD_UNSAFE, {.slip = "off-by-one"}, {"stock >= 0", "stock >= 0"}, NULL},
    {"redis-token", HAZARD_SAFE, {0}, {"stock > 0", "stock > 0"}, NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_off_by_one = {
    .id = "off-by-one",
    .title = {"One too many: stock >= 0", "多卖一件：stock >= 0"},
    .story = {"The last piece is sold. The next buyer finds a stock of 0, which is not below 0, "
              "and gets a piece too. The lock works correctly all the time.",
              "最后一件卖掉了。下一个买家看到库存 0，不小于 0，于是也卖给了他。锁自始至终都正常。"},
    .warning = {"Flash-sale code that checks the stock with >= before it takes a piece.",
                "先判断再减库存、判断写成 >= 的秒杀代码。"},
    .fix = {"Check stock >= quantity.", "判断 stock >= 数量。"},
    .subject = ITEM,
    .initial = 1,
    .last = {[B] = ANSWER_SOLD_OUT},
    .steps = last_piece_twice,
    .cases = off_by_one_cases,
};

static const struct hazard_step two_transfers_cross[] = {
    {A, SEND, NULL},    {A, UNTIL, "lock.acquired"},
    {B, SEND, NULL},    {B, AS_FAR_AS, "lock.acquired"},
    {A, RELEASE, NULL}, {B, RELEASE, NULL},
    {A, ANSWER, NULL},  {B, ANSWER, NULL},
    HAZARD_END,
};

static const struct hazard_case opposite_order_cases[] = {
    {"redis-token",
     HAZARD_STUCK,
     {.slip = "unsorted-locks"},
     {"order as given", "按给出的顺序"},
     NULL},
    {"redis-token", HAZARD_SAFE, {0}, {"sorted order", "按固定顺序"}, NULL},
    {"redis-reentrant",
     HAZARD_STUCK,
     {.slip = "unsorted-locks"},
     {"order as given", "按给出的顺序"},
     NULL},
    {"redis-reentrant", HAZARD_SAFE, {0}, {"sorted order", "按固定顺序"}, NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_opposite_order = {
    .id = "opposite-order",
    .title = {"Two transfers lock in opposite order", "两笔转账按相反的顺序加锁"},
    .story = {"A moves money from X to Y and locks X first. B moves money from Y to X and locks Y "
              "first. Each now waits for the other's lock.",
              "A 从 X 转到 Y，先锁 X。B 从 Y 转到 X，先锁 Y。双方各自等着对方的锁。"},
    .warning = {"Coffman and others, System Deadlocks (1971): the circular wait.",
                "Coffman 等人 1971 年的论文：循环等待。"},
    .fix = {"Acquire all locks in one order, sorted by key.",
            "所有请求按同一个顺序加锁：按 key 排序。"},
    .subject = TRANSFER,
    .deltas = {-200, 300, 0},
    .reach = {.never = "none"},
    .with = {.wait_ms = 1500},
    .steps = two_transfers_cross,
    .cases = opposite_order_cases,
};
