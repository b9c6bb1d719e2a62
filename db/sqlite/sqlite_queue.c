/*
 * The queue of writers. One connection writes and checkpoints; one caller of db_run_many() at a
 * time, the leader, uses it.
 *
 * Group commit (DeWitt et al., "Implementation Techniques for Main Memory Database Systems", 1984):
 * the works that queue up during one commit share the next one and its disk flush. This needs no
 * extra thread (flat combining, Hendler et al., SPAA 2010). A caller that finds no leader leads: it
 * writes for all callers in the queue. Then the first caller that came meanwhile leads. A caller
 * holds a lock meanwhile. If it is alone, it waits for no other thread to wake.
 *
 * During a checkpoint the checkpointer thread leads (sqlite_checkpoint.c).
 */
#include "sqlite.h"

#include <assert.h>
#include <string.h>
#include <sys/prctl.h>

/* -- the lead --------------------------------------------------------------------------------- */

void queue_give_lead(struct sqlite_store *store)
{
    if (store->queue_head) {
        struct caller *first = store->queue_head->caller;
        first->leads = true;
        sem_post(&first->woken);
        return;
    }
    store->led = false;
    if (store->stopping)
        pthread_cond_signal(&store->checkpointer_called);
}

/* Takes up to group_max runs from the head of the queue. The first is the leader's own. */
static struct run *take_group(struct sqlite_store *store, uint64_t *ret_n)
{
    pthread_mutex_lock(&store->queue_mutex);
    struct run *group = store->queue_head, **end = &store->queue_head;
    int32_t n = 0;
    for (; *end && n < store->options.group_max; n++)
        end = &(*end)->next;
    store->queue_head = *end;
    if (!*end)
        store->queue_tail = &store->queue_head;
    *end = NULL;
    pthread_mutex_unlock(&store->queue_mutex);
    *ret_n = (uint64_t)n;
    return group;
}

static void note_group(struct counters *counters, uint64_t n)
{
    atomic_fetch_sub(&counters->waiting, n);
    atomic_fetch_add(&counters->runs, n);
    if (n > atomic_load(&counters->group_largest))
        atomic_store(&counters->group_largest, n);
}

/* Wakes the other callers before it passes the lead on: their next works share the next commit.
 * Once the lead is passed on, it does not touch the store: db_close() may follow. */
static void lead(struct sqlite_store *store, struct caller *own)
{
    uint64_t n;
    struct run *group = take_group(store, &n);
    assert(group->caller == own);
    note_group(&store->counters, n);
    if (store->options.shared_file) /* on_busy() may sleep less than the default slack, 50 us */
        prctl(PR_SET_TIMERSLACK, 1000);
    writer_commit(store, group);
    if (store->options.shared_file)
        prctl(PR_SET_TIMERSLACK, 0); /* back to the thread's default */

    for (struct run *run = group, *next; run; run = next) {
        struct caller *caller = run->caller;
        next = run->next; /* the run is gone once its caller is woken */
        if (--caller->undecided == 0 && caller != own)
            sem_post(&caller->woken);
    }
    pthread_mutex_lock(&store->queue_mutex);
    if (!checkpoint_call(store))
        queue_give_lead(store);
    pthread_mutex_unlock(&store->queue_mutex);
}

/* Returns whether the caller leads now. Its undecided runs are then first in the queue. */
static bool sleep_until_woken(struct caller *caller)
{
    while (sem_wait(&caller->woken) != 0)
        continue; /* a signal */
    return caller->leads;
}

void writer_run(db *base, db_job *jobs, size_t n)
{
    struct sqlite_store *store = (struct sqlite_store *)base;
    struct caller caller = {.undecided = n};
    struct run runs[DB_JOBS_MAX];
    for (size_t i = 0; i < n; i++)
        runs[i] = (struct run){.next = &runs[i + 1], .caller = &caller, .job = &jobs[i]};
    runs[n - 1].next = NULL;
    sem_init(&caller.woken, 0, 0);
    pthread_mutex_lock(&store->queue_mutex);
    assert(!store->stopping);
    *store->queue_tail = runs;
    store->queue_tail = &runs[n - 1].next;
    atomic_fetch_add(&store->counters.waiting, n);
    bool leads = !store->led;
    store->led = true;
    pthread_mutex_unlock(&store->queue_mutex);
    if (!leads)
        leads = sleep_until_woken(&caller);
    while (leads) {
        lead(store, &caller);
        leads = caller.undecided > 0 && sleep_until_woken(&caller);
    }
    sem_destroy(&caller.woken);
}

/* -- life ------------------------------------------------------------------------------------- */

db_status writer_start(struct sqlite_store *store, db_error *error)
{
    store->queue_tail = &store->queue_head;
    pthread_mutex_init(&store->queue_mutex, NULL);
    db_status status = checkpointer_start(store, error);
    if (status != DB_OK)
        pthread_mutex_destroy(&store->queue_mutex);
    return status;
}

void writer_stop(struct sqlite_store *store)
{
    checkpointer_stop(store);
    pthread_mutex_destroy(&store->queue_mutex);
}
