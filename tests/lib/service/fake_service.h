/*
 * The service in miniature, in this process, with defects on request: shows whether the load
 * generator notices each of them. It keeps values, orders, ledger and answers in memory and serves
 * one request at a time, so without a defect nothing is ever lost.
 */
#ifndef FAKE_SERVICE_H
#define FAKE_SERVICE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct fake_defects {
    int oversell;         /* sells this many pieces beyond the stock */
    int undersell;        /* says sold out with this many pieces left */
    int lose_nth;         /* the Nth accepted change is made from the reading of the one before */
    int forget_nth;       /* the Nth accepted request is answered and not done */
    int double_nth;       /* the Nth accepted request is done twice */
    bool replay_differs;  /* a repeated key is answered with another body */
    bool busy_first;      /* the first sending of each key is answered 503 */
    bool in_flight_first; /* ... 409 in-flight */
    int cut_nth;          /* the Nth new key is done, and its connection cut before the answer */
    int lose_request_nth; /* the Nth new key's connection is cut and nothing done */
    int never_nth;        /* the Nth new key is always answered 503 */
    bool bad_audit;       /* the audit lacks a field */
    int refuse_nth;       /* the Nth new key is answered 400 */
    /* A figure that is told 1 too large, everything else being as it is: "audit.NAME", "shown.NAME"
     * (GET of the item or account), "row.NAME" (of the Nth row of the ledger, rows of creations
     * included, or its key for "row.txn_id"); or "row.missing", "row.twice", "row.added" */
    const char *lie;
    int lie_nth;       /* row of the lie; 0: the third */
    bool clean_audit;  /* the audit finds nothing, whatever there is */
    bool hides_excess; /* and the ledger has no row of what was sold beyond the stock */
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
/* POSTs taken so far, repeated ones included. */
int fake_posts(const struct fake_service *service);

#endif
