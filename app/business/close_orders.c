#include "close_orders.h"
#include "answer.h"
#include "business.h"
#include "attempt.h"
#include "point.h"
#include "repeated.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    ORDER_WAIT_US = 1000000, /* at most, for the locks of one order */
    SLOW_ITEMS_MAX = 128     /* of a run; with so many it waits for none */
};

static const char task_name[] = "close-orders";

/* An item whose lock was not granted in this run. */
struct slow_item {
    char id[DB_ID_MAX + 1];
    bool away; /* the lock server did not answer */
};

struct close_orders {
    struct section_base base;
    struct section section;
    struct lock_set lock; /* of the task itself */
    db_expired page[DB_EXPIRED_MAX];
    struct slow_item slow[SLOW_ITEMS_MAX];
    size_t n_slow;
    struct repeated thread;
};

/* Two instances need not do the same work: the lock of their default guard keeps them apart. If
 * their default guards differ, or are in the store, the item's guard keeps them apart order by
 * order. Guard none does not, which is the lesson. */
static bool enter(struct close_orders *task)
{
    struct guard *guard = guard_default(task->base.guards);
    section_clear(&task->section);
    lock_set_clear(&task->lock);
    if (guard->kind == GUARD_LOCK)
        lock_set_add(&task->lock, guard, "task:close-orders");
    return lock_set_acquire(&task->lock, 0) == PROBLEM_NONE; /* busy: another instance is at it */
}

static enum problem close_order(struct close_orders *task, const char *id, int64_t wait_us)
{
    struct op op = {
        .kind = OP_CANCEL_ORDER, .deadline_us = now_us() + wait_us, .seams = task->base.seams};
    snprintf(op.id, sizeof op.id, "%s", id);
    attempt_one(&task->section, &close_operation, &op);
    answer_free(&op.answer);
    return op.answer.problem;
}

static const struct slow_item *find_slow(const struct close_orders *task, const char *id)
{
    for (size_t i = 0; i < task->n_slow; i++) {
        if (strcmp(task->slow[i].id, id) == 0)
            return &task->slow[i];
    }
    return NULL;
}

static void note_slow(struct close_orders *task, const char *id, bool away)
{
    if (task->n_slow == SLOW_ITEMS_MAX || find_slow(task, id))
        return;
    struct slow_item *slow = &task->slow[task->n_slow++];
    snprintf(slow->id, sizeof slow->id, "%s", id);
    slow->away = away;
}

/* Whether a lock server or the store is away. */
static bool is_away(enum problem problem)
{
    switch (problem) {
    case PROBLEM_UNAVAILABLE:
    case PROBLEM_STORAGE_FULL:
    case PROBLEM_READ_ONLY:
    case PROBLEM_CROWDED:
        return true;
    default:
        return false;
    }
}

/* An item whose lock is held, or whose lock server is away, must not hold up the orders of other
 * items. So the task waits for it once in a run. After that each of its orders gets one attempt,
 * because only one order's lock may be stuck. If the server is away, they get none. False: the
 * store is away, or has not said what became of the order. */
static bool take_turn(struct close_orders *task, const db_expired *order, int64_t *done)
{
    const struct slow_item *slow = find_slow(task, order->item_id);
    if (slow && slow->away)
        return true;
    bool patient = !slow && task->n_slow < SLOW_ITEMS_MAX;
    enum problem problem = close_order(task, order->id, patient ? ORDER_WAIT_US : 0);
    *done += problem == PROBLEM_NONE;
    const bool away = is_away(problem);
    if (away || problem == PROBLEM_LOCK_TIMEOUT)
        note_slow(task, order->item_id, away);
    return !task->section.outcome_unknown && (!away || db_ping(task->base.db) == DB_OK);
}

/* Reads up to a page of expired orders, after the last order of the page before. */
static size_t read_page(struct close_orders *task, const db_expired *after)
{
    size_t n = 0;
    db_reader *reader = section_reader(&task->section);
    if (!reader ||
        db_read_expired(reader, wall_us(), after, task->page, DB_EXPIRED_MAX, &n) != DB_OK)
        return 0; /* the store is away: the next run tries again */
    return n;
}

struct record {
    const char *instance;
    int64_t at_us, done;
};

static db_status write_record(db_tx *tx, void *arg)
{
    const struct record *record = arg;
    return db_tx_put_task(tx, task_name, record->instance, record->at_us, record->done);
}

/* Closes the orders that have expired. */
static void run(struct close_orders *task)
{
    struct record record = {.instance = task->base.config->instance, .at_us = wall_us()};
    if (read_page(task, NULL) == 0 || !enter(task))
        return;
    bool go_on = true;
    task->n_slow = 0;
    size_t n =
        read_page(task, NULL); /* again under the lock: another instance may have closed them */
    while (n > 0 && go_on) {
        for (size_t i = 0; i < n && go_on; i++)
            go_on = take_turn(task, &task->page[i], &record.done) &&
                    !repeated_is_stopping(&task->thread) && !lock_set_lost(&task->lock);
        const db_expired last = task->page[n - 1];
        n = read_page(task, &last);
    }
    if (record.done > 0) {
        counter_add(&task->base.counters->closed, (uint64_t)record.done);
        db_run(task->base.db, write_record, &record, NULL); /* for information only */
    }
    /* The task's lock, too, is kept while the last order's transaction is undecided. */
    if (task->section.outcome_unknown)
        keeper_take(task->base.keeper, &task->lock, &task->section.commit_id);
    else
        lock_set_release(&task->lock);
}

/* A period of rest after each run. */
static int64_t period_us(const struct close_orders *task)
{
    return task->base.config->close_orders_ms * 1000;
}

static int64_t run_and_rest(void *arg)
{
    run(arg);
    return period_us(arg);
}

struct close_orders *close_orders_open(const struct section_base *base)
{
    struct close_orders *task = calloc(1, sizeof *task);
    if (!task)
        return NULL;
    task->base = *base;
    if (section_init(&task->section, base, 1) == 0 && lock_set_init(&task->lock) == 0 &&
        repeated_start(&task->thread, period_us(task), run_and_rest, task))
        return task;
    close_orders_close(task);
    return NULL;
}

void close_orders_close(struct close_orders *task)
{
    if (!task)
        return;
    repeated_stop(&task->thread);
    section_free(&task->section);
    lock_set_free(&task->lock);
    free(task);
}
