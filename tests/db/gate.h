/* Holds the leader of a group inside its work, so that a group of known size queues behind it. */
#ifndef TESTS_DB_GATE_H
#define TESTS_DB_GATE_H

#include "fixture.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>

struct gate {
    db *store;
    pthread_t thread;
    sem_t entered, open;
};

static inline db_status work_at_gate(db_tx *tx, void *arg)
{
    struct gate *gate = arg;
    (void)tx;
    sem_post(&gate->entered);
    sem_wait(&gate->open);
    return DB_OK;
}

static inline void *gate_main(void *arg)
{
    struct gate *gate = arg;
    db_run(gate->store, work_at_gate, gate, NULL);
    return NULL;
}

/* Starts the gate's thread; does not wait until the gate is closed. */
static inline void gate_start(struct gate *gate, db *store)
{
    gate->store = store;
    sem_init(&gate->entered, 0, 0);
    sem_init(&gate->open, 0, 0);
    assert_int_equal(0, pthread_create(&gate->thread, NULL, gate_main, gate));
}

static inline void gate_close(struct gate *gate, db *store)
{
    gate_start(gate, store);
    sem_wait(&gate->entered);
}

static inline void gate_wait_for(struct gate *gate, uint64_t waiting)
{
    db_stats stats;
    do {
        sched_yield();
        db_get_stats(gate->store, &stats);
    } while (stats.waiting < waiting);
}

static inline void gate_open(struct gate *gate)
{
    sem_post(&gate->open);
    pthread_join(gate->thread, NULL);
    sem_destroy(&gate->entered);
    sem_destroy(&gate->open);
}

#endif
