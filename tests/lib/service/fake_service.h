/*
 * A small fake of the service, in this process, with selectable defects. It shows whether the load
 * generator detects each defect. It keeps values, orders, ledger and answers in memory and serves
 * one request at a time, so without a defect nothing is lost.
 */
#ifndef FAKE_SERVICE_H
#define FAKE_SERVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct fake_defects {
    int oversell;         /* sells this many pieces beyond the stock */
    int undersell;        /* says sold out with this many pieces left */
    int lose_nth;         /* the Nth accepted change starts from the previous change's reading */
    int forget_nth;       /* the Nth accepted request is answered but not done */
    int double_nth;       /* the Nth accepted request is done twice */
    bool replay_differs;  /* a repeated key is answered with another body */
    bool busy_first;      /* the first sending of each key is answered 503 */
    bool in_flight_first; /* ... 409 in-flight */
    int cut_nth;          /* the Nth new key is done, then its connection is cut: no answer */
    int lose_request_nth; /* the Nth new key's connection is cut and nothing is done */
    int never_nth;        /* the Nth new key is always answered 503 */
    bool bad_audit;       /* the audit lacks a field */
    int refuse_nth;       /* the Nth new key is answered 400 */
    /* One wrong figure, 1 too large:
     * - "audit.NAME": in the audit
     * - "shown.NAME": in GET of the item or account
     * - "row.NAME": in the Nth row of the ledger, counting rows of creations; for "row.txn_id" its
     *   key is changed
     * Or a wrong row: "row.missing", "row.twice", "row.added". */
    const char *lie;
    int lie_nth;       /* row of the lie; 0: the third */
    bool clean_audit;  /* the audit reports nothing, whatever happened */
    bool hides_excess; /* the ledger lacks the rows of pieces sold beyond the stock */
    int held_row;      /* the ledger has more rows, but never shows the Nth nor those behind it: a
                          transaction on the database server stays open */
};

struct fake_options {
    struct fake_defects defects;
    const char *instance; /* NULL: "fake" */
    bool lanes;
};

struct fake_service;

/* NULL after a message on stderr. */
struct fake_service *fake_start(const struct fake_options *options);
void fake_stop(struct fake_service *service);
const char *fake_url(const struct fake_service *service);
/* POSTs received so far, repeated ones included. */
int fake_posts(const struct fake_service *service);

#endif
