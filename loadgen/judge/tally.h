/*
 * The client's own record of a run: whether each request was sent, and how it ended. The verdict
 * compares it with the service's ledger.
 *
 * Requests are numbered from 0. A share of them are duplicates: request 17 may be request 5 sent
 * again, with 5's key and content. Then 5 is its origin. After tally_settle() the origin has the
 * outcome of its key.
 */
#ifndef TALLY_H
#define TALLY_H

#include "load.h"

#include <pthread.h>

enum { TALLY_PROBLEMS_MAX = 32, TALLY_PROBLEM_TEXT_MAX = 40, TALLY_ANSWER_TEXT_MAX = 256 };

enum tally_state {
    TALLY_UNSENT,  /* nothing happened */
    TALLY_UNKNOWN, /* sent, outcome not known yet */
    TALLY_ACCEPTED,
    TALLY_REFUSED, /* a decision: sold out, insufficient funds, ... */
    TALLY_FAILED   /* a final error: the request was wrong */
};

struct tally_entry {
    int64_t first_us;     /* first sending; 0: never */
    uint64_t answer_hash; /* of status and body of the final answer; 0: none */
    enum tally_state state;
};

struct tally_problem {
    char name[TALLY_PROBLEM_TEXT_MAX];
    uint64_t count;
};

struct tally {
    struct tally_entry *entries;
    uint64_t n;           /* requests planned at most */
    _Atomic uint64_t end; /* one past the highest request that was sent */
    uint64_t seed;
    double duplicates_pct;
    int64_t patience_ms; /* a client retries this long before it leaves a request unknown */
    atomic_bool *stop;   /* no retries once set; may be NULL */

    pthread_mutex_t lock; /* the rest */
    struct tally_problem problems[TALLY_PROBLEMS_MAX];
    size_t n_problems;
    char failure[TALLY_ANSWER_TEXT_MAX];         /* the first answer that counted as failed */
    char refused_for_now[TALLY_ANSWER_TEXT_MAX]; /* the first answer that decided nothing: 5xx, 429,
                                                    408 */
};

/* 0, or -1 without memory. */
int tally_init(struct tally *tally, uint64_t n, uint64_t seed, double duplicates_pct,
               int64_t patience_ms);
void tally_free(struct tally *tally);

/* The request whose key and content seq has: itself, or an earlier one. */
uint64_t tally_origin(const struct tally *tally, uint64_t seq);
/* The same 64 random bits for the same seed, seq and use, whatever the order of calls. */
uint64_t tally_random(const struct tally *tally, uint64_t seq, unsigned use);

/* For load_workload.outcome. */
int64_t tally_outcome(struct tally *tally, uint64_t seq, const struct load_answer *answer);
/* Records an answer. True if it decides the request. */
bool tally_decide(struct tally *tally, uint64_t seq, int status, const char *body);
void tally_count_problem(struct tally *tally, const char *name);

/* Call after the load: an origin takes the state of a duplicate that knows more. */
void tally_settle(struct tally *tally);
uint64_t tally_end(const struct tally *tally);
uint64_t tally_count(const struct tally *tally, enum tally_state state); /* of origins */
/* How many answers differ from another answer to the same key. */
uint64_t tally_differing(const struct tally *tally);

#endif
