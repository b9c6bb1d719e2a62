/*
 * The verdict: what went wrong in units and money, and whether the guard keeps its claim. It
 * compares an audit with the answers that the client counted. The audit is the service's or the
 * judge's own (rows.h). Pure functions: no network, no clock.
 */
#ifndef VERDICT_H
#define VERDICT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Name and meaning. All zero: safe. Order and names are those of the JSON. */
#define VERDICT_MAP(X)                                                                             \
    X(oversold, "pieces sold beyond the stock")                                                    \
    X(over_limit, "pieces sold to users beyond their limit")                                       \
    X(undersold, "pieces left although buyers were turned away")                                   \
    X(lost_updates, "accepted changes overwritten by another one")                                 \
    X(lost_amount, "difference between the value and the sum of its changes")                      \
    X(duplicates, "effects beyond the first of one request")                                       \
    X(negative, "resources that fell below zero")                                                  \
    X(broken, "ledger rows that do not fit their chain")                                           \
    X(mismatch, "difference between what was answered and what is stored")                         \
    X(disagreements, "figures in which the service's audit and its ledger rows differ")            \
    X(replay_mismatch, "repeated requests answered otherwise than the first time")                 \
    X(unknown, "requests whose outcome could not be found out")

struct verdict {
#define VERDICT_FIELD(name, text) int64_t name;
    VERDICT_MAP(VERDICT_FIELD)
#undef VERDICT_FIELD
};

/* Safe: nothing is wrong or unknown. Broken: something is certainly wrong. */
bool verdict_is_safe(const struct verdict *verdict);
bool verdict_is_broken(const struct verdict *verdict);
/* Does it match the claim? A guard that claims to be safe must be safe, any other broken. */
bool verdict_as_claimed(const struct verdict *verdict, bool claims_safe);
/* Takes the larger value of each figure. */
void verdict_worse(struct verdict *into, const struct verdict *other);
void verdict_add(struct verdict *into, const struct verdict *from);
/* "OK", "OVERSOLD 73", "LOST 4,300", ...: the worst figure, in short. */
char *verdict_text(const struct verdict *verdict, char *out, size_t size);

/* One row of the ledger. */
struct ledger_row {
    char resource[80], txn_id[321], instance[40];
    int64_t delta, before, after, version_before, at_us;
};

json_t *ledger_row_to_json(const struct ledger_row *row); /* NULL without memory */

/* One resource as an audit reports it: the service's, or rows_audit(). */
struct audit_row {
    char resource[80];
    int64_t initial, current, ledger_sum, sold, restocked;
    int64_t oversold, over_limit, lost_updates, lost_amount, duplicates, negative, broken;
    bool has_fork;
    struct ledger_row fork[2]; /* two changes made from the same reading */
};

/* Reads one member of "resources". Returns 0, or -1 if a required field is missing. */
int audit_row_parse(const json_t *object, struct audit_row *ret);

/* The client's counts of one resource. */
struct client_count {
    int64_t accepted; /* items: pieces in answers 201; accounts: sum of the acknowledged changes */
    int64_t demand;   /* items: pieces in requests that were sent, whatever the answer */
    int64_t unknown;  /* requests on it whose outcome is unknown */
    int64_t unknown_amount; /* items: their pieces; accounts: sum of their absolute amounts */
};

void verdict_of_item(const struct audit_row *audit, const struct client_count *client,
                     struct verdict *ret);
void verdict_of_account(const struct audit_row *audit, const struct client_count *client,
                        struct verdict *ret);

#endif
