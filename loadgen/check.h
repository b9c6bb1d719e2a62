/*
 * Small separate checkers of a history. Each is a pure function that looks for one kind of breach
 * and keeps the first example it met. What is unknown is allowed both ways: never a breach.
 *
 *   set          each acknowledged change is one of its own: no order id and no version of a
 *                resource was given to two of them (two of one version: one overwrote the other)
 *   stock        pieces acknowledged never exceed the initial stock; nothing fell below zero; with
 *                an audit: what is stored is what was acknowledged
 *   bank         each answer's sum is right, no balance fell below zero; with an audit: each
 *                balance is its initial value plus the acknowledged changes, and transfers kept the
 *                sum, also those whose answer was lost
 *   lock         changes of a resource came one after the other: each read what the one before had
 *                written, no fence fell, and none that was answered before another was asked for
 *                came after it
 *   idempotence  all answers to one key are the same
 *
 * What the history has a resource of and the audit has not is a breach of stock or bank.
 *
 * After Jepsen's checkers (https://github.com/jepsen-io/jepsen): set, counter, bank.
 */
#ifndef CHECK_H
#define CHECK_H

#include "history.h"
#include "verdict.h"

enum { CHECK_EXAMPLE_MAX = 512 };

/* What GET /v1/audit said of the resources. */
struct check_audit {
    struct audit_row *rows;
    size_t n_rows;
};

/* From a file with its answer. 0, or -1 with a message. To be freed with check_audit_free(). */
int check_audit_read(const char *path, struct check_audit *ret, char *message, size_t size);
void check_audit_free(struct check_audit *audit);

struct check_result {
    uint64_t checked; /* of what the checker counts; 0: it does not apply */
    uint64_t breaches;
    char example[CHECK_EXAMPLE_MAX]; /* the first breach, with its values */
};

struct checker {
    const char *name, *what; /* what: of its unit, in the plural */
    /* audit may be NULL. */
    void (*check)(const struct history *history, const struct check_audit *audit,
                  struct check_result *ret);
};

extern const struct checker checkers[];
extern const size_t n_checkers;

/* The command "loadgen check". Returns the program's exit status. */
struct options;
int check_command(const struct options *options);

#endif
