/*
 * Small separate checkers of a history. Each is a pure function that looks for one kind of breach
 * and keeps the first example it met. What is unknown is allowed both ways: never a breach.
 *
 *   order        the answers fit an order in which one request took effect after the other, none
 *                before it was asked for and none after it was answered: linearizability
 *                (linear.h), of each item, each account and each user's limit by itself. Reads
 *                count, refusals too, and so does what an audit found at the end
 *   set          each acknowledged change is one of its own: no order id and no version of a
 *                resource was given to two of them (two of one version: one overwrote the other),
 *                and no order was paid and cancelled
 *   stock        pieces acknowledged never exceed the initial stock; nothing fell below zero; with
 *                an audit: what is stored is what was acknowledged
 *   bank         each answer's sum is right, no balance fell below zero; with an audit: each
 *                balance is its initial value plus the acknowledged changes, and transfers kept the
 *                sum, also those whose answer was lost
 *   fence        no accepted change has an older fence than one of a lower version
 *   idempotence  all answers to one key are the same
 *   audit        the service's audit, when there is one, knows each resource as the history does,
 *                adds up, and complains of nothing
 *
 * A transfer is judged at each of its accounts, and by the sum of all. That the orders of several
 * accounts fit each other is not judged: two transfers that each saw the other's effect on one
 * account only would pass.
 *
 * After Jepsen's checkers (https://github.com/jepsen-io/jepsen): linearizable, set, counter, bank.
 */
#ifndef CHECK_H
#define CHECK_H

#include "history.h"
#include "verdict.h"

enum { CHECK_EXAMPLE_MAX = 1200 };

/* What GET /v1/audit said of the resources. */
struct check_audit {
    struct audit_row *rows;
    size_t n_rows;
};

/* From a file with its answer. 0, or -1 with a message. To be freed with check_audit_free(). */
int check_audit_read(const char *path, struct check_audit *ret, char *message, size_t size);
void check_audit_free(struct check_audit *audit);
/* NULL: there is no audit, or it does not know the resource. */
const struct audit_row *check_audit_row(const struct check_audit *audit, const char *resource);

struct check_result {
    uint64_t checked; /* of what the checker counts; 0: it does not apply */
    uint64_t breaches;
    uint64_t undecided; /* of what the checker counts: neither right nor wrong was found */
    char example[CHECK_EXAMPLE_MAX]; /* the first breach, with its values; else what is undecided */
};

struct checker {
    const char *name, *what; /* what: of its unit, in the plural */
    /* audit may be NULL. */
    void (*check)(const struct history *history, const struct check_audit *audit,
                  struct check_result *ret);
};

extern const struct checker checkers[];
extern const size_t n_checkers;

/* For checkers: counts a breach, and keeps the first one's text. */
void check_breach(struct check_result *result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void check_undecided(struct check_result *result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
bool check_is_item(const char *resource);
bool check_is_account(const char *resource);

/* check_order.c, check_sums.c */
void check_order(const struct history *history, const struct check_audit *audit,
                 struct check_result *ret);
void check_stock(const struct history *history, const struct check_audit *audit,
                 struct check_result *ret);
void check_bank(const struct history *history, const struct check_audit *audit,
                struct check_result *ret);

enum check_verdict {
    CHECK_HOLDS,
    CHECK_BROKEN,
    CHECK_UNDECIDED, /* no breach, but some of it was too much to decide */
    CHECK_NOTHING    /* no breach, and nothing that could have been one */
};
/* Of one checker, or (n = n_checkers) of all together. */
enum check_verdict check_verdict(const struct check_result *results, size_t n);
/* "holds", "broken", "undecided", "nothing" */
const char *check_verdict_text(enum check_verdict verdict);

#endif
