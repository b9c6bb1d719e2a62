/*
 * Small separate checkers of a history. Each is a pure function that looks for one kind of breach
 * and keeps the first example. An unknown outcome is never a breach: it may have happened or not.
 *
 *   order        linearizability (linear.h): there is an order of all requests that explains their
 *                answers, in which each takes effect between its invocation and its completion.
 *                Checked per item, per account and per user's limit. Reads, refusals and the final
 *                audit count
 *   set          no two acknowledged changes have the same order id or the same version of a
 *                resource (one version twice: one change overwrote the other), and no order was
 *                closed twice (paid or cancelled)
 *   stock        pieces acknowledged never exceed the initial stock; nothing fell below zero; with
 *                an audit: what is stored is what was acknowledged
 *   bank         each answer's sum is right, no balance fell below zero; with an audit: each
 *                balance is its initial value plus the acknowledged changes, and transfers kept the
 *                sum, also those whose answer was lost
 *   fence        no accepted change has an older fence than one of a lower version
 *   idempotence  all answers to one key are the same
 *   audit        the service's audit, when there is one, agrees with the history on each resource,
 *                adds up, and reports no breach
 *
 * A transfer is judged at each of its accounts, and by the sum of all accounts. The orders found
 * for different accounts are not compared: two transfers that each saw the other's effect on one
 * account only would pass.
 *
 * After Jepsen's checkers (https://github.com/jepsen-io/jepsen): linearizable, set, counter, bank.
 */
#ifndef CHECK_H
#define CHECK_H

#include "history.h"
#include "verdict.h"

enum { CHECK_EXAMPLE_MAX = 1200 };

/* The parsed answer of GET /v1/audit. */
struct check_audit {
    struct audit_row *rows;
    size_t n_rows;
};

/* Reads a file that holds the answer. Returns 0, or -1 with a message. Free it with
 * check_audit_free(). */
int check_audit_read(const char *path, struct check_audit *ret, char *message, size_t size);
void check_audit_free(struct check_audit *audit);
/* NULL: no audit, or the resource is not in it. */
const struct audit_row *check_audit_row(const struct check_audit *audit, const char *resource);

struct check_result {
    uint64_t checked; /* things checked, in the checker's unit; 0: it does not apply */
    uint64_t breaches;
    uint64_t undecided;              /* neither right nor wrong, in the same unit */
    char example[CHECK_EXAMPLE_MAX]; /* the first breach with its values, else the first undecided
                                        case */
};

struct checker {
    const char *name, *what; /* what: its unit, in the plural */
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
    CHECK_UNDECIDED, /* no breach, but something could not be decided */
    CHECK_NOTHING    /* there was nothing to check */
};
/* Of one checker, or (n = n_checkers) of all together. */
enum check_verdict check_verdict(const struct check_result *results, size_t n);
/* "holds", "broken", "undecided", "nothing" */
const char *check_verdict_text(enum check_verdict verdict);

#endif
