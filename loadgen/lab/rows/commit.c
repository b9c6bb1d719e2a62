/* A COMMIT that is not answered. Rows: commit-unknown. */
#include "hazard_rows.h"

static const struct hazard_step commit_is_on_its_way[] = {
    {A, SEND, NULL},
    {A, UNTIL, "checked"},
    {A, HOLD_COMMIT, NULL},
    {A, RELEASE, NULL},
    {A, COMMIT_HELD, NULL},
    {B, SEND, NULL},
    {B, UNTIL, "decided"},
    {A, LAND_COMMIT, NULL},
    {B, RELEASE, NULL},
    {B, ANSWER, NULL},
    {A, ANSWER, NULL},
    {A, RETRY, NULL},
    HAZARD_END,
};

#define GIVEN_BACK                                                                                 \
    {                                                                                              \
        "the lock is released at once", "立即释放锁"                                          \
    }
#define FOUND_OUT                                                                                  \
    {                                                                                              \
        "the outcome is found out first", "先查明结果再释放锁"                            \
    }

static const struct hazard_case commit_unknown_cases[] = {
    {"redis-set", HAZARD_UNSAFE, {.slip = "given-back"}, GIVEN_BACK, NULL},
    {"redis-set", HAZARD_SAFE, {0}, FOUND_OUT, NULL},
    {"redlock", HAZARD_UNSAFE, {.slip = "given-back"}, GIVEN_BACK, NULL},
    {"redlock", HAZARD_SAFE, {0}, FOUND_OUT, NULL},
    {"redis-token", HAZARD_UNSAFE, {.slip = "given-back", .fence = OFF}, GIVEN_BACK, NULL},
    {"redis-token", HAZARD_SAFE, {.fence = OFF}, FOUND_OUT, NULL},
    {"redis-token",
     HAZARD_SAFE,
     {.slip = "given-back"},
     {"released at once, fence on", "立即释放，有栅栏令牌"},
     NULL},
    {NULL, HAZARD_SAFE, {0}, {NULL}, NULL},
};

const struct hazard hazard_commit_unknown = {
    .id = "commit-unknown",
    .title = {"The COMMIT is not answered", "COMMIT 没有应答"},
    .story =
        {"A sends COMMIT, and its database connection breaks. A does not know whether the commit "
         "happened, but releases its lock. B gets the lock and reads the old balance, because A's "
         "COMMIT is still on its way. Then the COMMIT arrives, and B overwrites it.",
         "A 发出 COMMIT，与数据库的连接断了。A 不知道提交了没有，就释放了锁。B "
         "拿到锁，读到旧余额，因为 A 的 COMMIT 还在路上。随后 COMMIT 送达，B 又把它覆盖。"},
    .warning = {"A commit that times out is neither a yes nor a no: the database may still be "
                "executing it.",
                "提交超时既不是成功也不是失败：数据库可能还在做。"},
    .fix = {"Ask on another connection by transaction number. If the transaction still runs, end "
            "it. Release the lock only when the outcome is known.",
            "换一条连接按事务号去问；还在进行就终止它；有了定论才释放锁。"},
    .with = {.store_by_proxy = true, .lease_ms = 30000},
    .steps = commit_is_on_its_way,
    .cases = commit_unknown_cases,
};
