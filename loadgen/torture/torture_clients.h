/*
 * The clients of a round. Each has a thread and asks one thing after the other: orders, payments,
 * cancellations, changes of balances, transfers, reads. It writes each attempt into the books
 * before it sends it, and each answer when it comes. Without a decided answer it asks again with
 * the same key, at any instance.
 */
#ifndef TORTURE_CLIENTS_H
#define TORTURE_CLIENTS_H

#include "history.h"
#include "torture_plan.h"

#include <pthread.h>
#include <stdatomic.h>

enum { TORTURE_CLIENTS_MAX = 16, TORTURE_ORDERS_KEPT = 32 };

enum torture_phase {
    TORTURE_STRIKES, /* faults strike: ask for ever */
    TORTURE_HEALED,  /* get what is under way decided, then one of each resource, and end */
    TORTURE_NO_MORE  /* end at once */
};

struct torture_clients;

struct torture_client {
    pthread_t thread;
    struct torture_clients *all;
    uint32_t index;
    uint64_t random, keys;
    char orders[TORTURE_ORDERS_KEPT][72]; /* ids of its own */
    uint32_t n_orders;
    char last_key[48], last_path[128], last_body[128]; /* decided: may be sent again */
};

struct torture_clients {
    const struct torture_settings *is;
    const struct load_target *targets;
    struct history_writer *books;
    _Atomic enum torture_phase phase;
    atomic_bool stop;
    atomic_int busy; /* clients that have not ended */
    atomic_llong accepted, refused, unknown;
    uint32_t n;
    struct torture_client clients[TORTURE_CLIENTS_MAX];
};

/* Returns 0, or -1 when a thread cannot be started. clients->is, targets and books are set. */
int torture_clients_start(struct torture_clients *clients, uint64_t seed);
void torture_clients_join(struct torture_clients *clients);

#endif
