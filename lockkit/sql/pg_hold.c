#include "pg_hold.h"
#include "pg_watch.h"
#include "sql_postgres.h"

#include <stdlib.h>
#include <string.h>

/* A waiter's first wait() looks this long for an answer and then lets the core try again, as wait()
 * may: by then its request stands in the server's queue. */
enum { FIRST_LOOK_US = 20000, US_PER_MS = 1000 };

struct pg_hold {
    const lk_context *context;
    const lk_sql_set *set;
    lk_pg_watch *watch;
    lk_pg_pool pool;
    lk_pg_pool numbers; /* one connection, for fences that must not wait for a COMMIT */
};

/* -- statements ------------------------------------------------------------------------------- */

static int take_number(void *arg, const lk_sql_row *row)
{
    *(int64_t *)arg = row->number[0];
    return 1;
}

/* ret_number: untouched when there is no row. */
static lk_status ask(lk_pg_conn *conn, int statement, const char *key, int64_t *ret_number)
{
    return lk_pg_run(conn, statement, (lk_sql_arg[]){{.text = key}}, take_number, ret_number);
}

/* One that this level of lock may do without. */
static lk_status tell(const struct pg_hold *self, lk_pg_conn *conn, int statement)
{
    if (self->set->statements[statement].text[LK_SQL_POSTGRES] == NULL)
        return LK_OK;
    return lk_pg_run(conn, statement, NULL, NULL, NULL);
}

/* On any connection; for what is not about a hold. */
static lk_status ask_any(struct pg_hold *self, int statement, const lk_sql_arg *args,
                         lk_sql_each *each, void *arg)
{
    return lk_pg_pool_run(&self->pool, statement, args, each, arg);
}

/* -- acquiring -------------------------------------------------------------------------------- */

/* The connection holds no lock for certain, or is given up. */
static void leave(struct pg_hold *self, lk_pg_conn *conn)
{
    if (tell(self, conn, LK_PG_ABANDON) == LK_OK)
        lk_pg_give(&self->pool, conn);
    else
        lk_pg_drop(&self->pool, conn);
}

/* A connection on which the lock may be asked for. LK_BUSY: others of this client have them all, so
 * the caller waits as for the lock. */
static lk_status begin(struct pg_hold *self, lk_pg_conn **ret)
{
    lk_status status = lk_pg_take(&self->pool, ret);
    if (status != LK_OK)
        return status;
    status = tell(self, *ret, LK_PG_BEGIN);
    if (status == LK_OK)
        return LK_OK;
    lk_pg_drop(&self->pool, *ret);
    return LK_UNAVAILABLE; /* no lock was asked for */
}

/* Where the lock is a transaction that stays open, a number drawn in it would not be durable before
 * its COMMIT: a server that is killed meanwhile would give it to the next holder as well. The
 * number counts only if the lock still stands after it was drawn: else the next holder may have
 * drawn a lower one before. */
static lk_status draw_fence(struct pg_hold *self, const char *key, lk_pg_conn *conn, int64_t *ret)
{
    int64_t held = 0;
    if (self->set->statements[LK_PG_BEGIN].text[LK_SQL_POSTGRES] == NULL)
        return ask(conn, LK_PG_FENCE, key, ret);
    lk_status status = lk_pg_pool_run(&self->numbers, LK_PG_FENCE, (lk_sql_arg[]){{.text = key}},
                                      take_number, ret);
    if (status == LK_OK)
        status = ask(conn, LK_PG_CONFIRM, key, &held);
    return status == LK_OK && held == 0 ? LK_UNAVAILABLE : status;
}

/* The connection has the lock. */
static lk_status grant(struct pg_hold *self, lk_hold *hold, lk_pg_conn *conn)
{
    int64_t fence = 0;
    lk_status status = draw_fence(self, hold->key, conn, &fence);
    if (status == LK_OK) {
        hold->fence = (uint64_t)fence;
        hold->private_.slot = lk_pg_watch_add(self->watch, conn);
        status = hold->private_.slot != 0 ? LK_OK : LK_NO_MEMORY;
    }
    if (status != LK_OK)
        lk_pg_drop(&self->pool, conn);
    return status;
}

/* attempt->waiter: the connection whose request for the lock is not answered yet. */
static lk_status collect(struct pg_hold *self, lk_attempt *attempt)
{
    lk_pg_conn *conn = attempt->waiter;
    int64_t patience_us = self->context->options->command_timeout_ms * US_PER_MS;
    int64_t until_us = lk_monotonic_us() + (attempt->last ? patience_us : 0);
    lk_status status = lk_pg_receive(conn, until_us, NULL, NULL);
    if (status == LK_TIMEOUT && !attempt->last)
        return LK_BUSY; /* it keeps its place */
    attempt->waiter = NULL;
    if (status == LK_OK)
        return grant(self, attempt->hold, conn);
    if (status == LK_BUSY)
        leave(self, conn);
    else
        lk_pg_drop(&self->pool, conn);
    if (status == LK_TIMEOUT)
        return lk_note(self->context, LK_UNKNOWN, "PostgreSQL: no answer in time");
    return status;
}

lk_status lk_pg_hold_try(void *arg, lk_attempt *attempt)
{
    struct pg_hold *self = arg;
    lk_pg_conn *conn;
    int64_t granted = 0;
    attempt->hold->private_.slot = 0;
    if (attempt->waiter != NULL)
        return collect(self, attempt);
    lk_status status = begin(self, &conn);
    if (status != LK_OK)
        return status;
    status = ask(conn, LK_PG_TRY, attempt->hold->key, &granted);
    if (status == LK_OK && granted == 1)
        return grant(self, attempt->hold, conn);
    if (status == LK_OK) {
        leave(self, conn);
        return LK_BUSY;
    }
    lk_pg_drop(&self->pool, conn);
    return status;
}

/* -- waiting ---------------------------------------------------------------------------------- */

/* As long as the whole call may take: the place in the queue outlives this wait(). */
static lk_status enlist(struct pg_hold *self, lk_attempt *attempt)
{
    const lk_env *env = self->context->env;
    lk_pg_conn *conn;
    lk_status status = begin(self, &conn);
    if (status != LK_OK)
        return status;
    int64_t left_ms = (attempt->deadline_us - env->now_us(env->ctx)) / US_PER_MS + 1;
    if (left_ms < 1) /* 0 would be for ever */
        left_ms = 1;
    if (left_ms > INT32_MAX)
        left_ms = INT32_MAX;
    status = lk_pg_send(conn, LK_PG_LOCK,
                        (lk_sql_arg[]){{.text = attempt->hold->key}, {.number = left_ms}});
    if (status == LK_OK)
        attempt->waiter = conn;
    else
        lk_pg_drop(&self->pool, conn);
    return status;
}

lk_status lk_pg_hold_wait(void *arg, lk_attempt *attempt, int64_t until_us)
{
    struct pg_hold *self = arg;
    const lk_env *env = self->context->env;
    bool first = attempt->waiter == NULL;
    lk_status status = first ? enlist(self, attempt) : LK_OK;
    if (status != LK_OK)
        return status;
    int64_t left_us = until_us - env->now_us(env->ctx);
    if (first && left_us > FIRST_LOOK_US)
        left_us = FIRST_LOOK_US;
    lk_pg_await(attempt->waiter, lk_monotonic_us() + left_us);
    return LK_OK;
}

/* Still in the queue: the server takes it off it, and frees what it was granted meanwhile. */
void lk_pg_hold_wait_end(void *arg, lk_attempt *attempt)
{
    struct pg_hold *self = arg;
    if (attempt->waiter != NULL)
        lk_pg_drop(&self->pool, attempt->waiter);
    attempt->waiter = NULL;
}

/* -- holding ---------------------------------------------------------------------------------- */

bool lk_pg_hold_alive(void *arg, const lk_hold *hold)
{
    struct pg_hold *self = arg;
    return lk_pg_watch_alive(self->watch, hold->private_.slot);
}

/* NULL: its connection has ended, or it has been released. */
static lk_pg_conn *connection_of(struct pg_hold *self, const lk_hold *hold)
{
    lk_pg_conn *conn = lk_pg_watch_find(self->watch, hold->private_.slot);
    return conn != NULL && !lk_pg_has_ended(conn) ? conn : NULL;
}

lk_status lk_pg_hold_release(void *arg, lk_hold *hold)
{
    struct pg_hold *self = arg;
    lk_pg_conn *held_by = lk_pg_watch_find(self->watch, hold->private_.slot);
    lk_pg_conn *conn = connection_of(self, hold);
    int64_t was_held = 1;
    lk_status status = conn != NULL ? ask(conn, LK_PG_FREE, hold->key, &was_held) : LK_LOST;
    if (held_by != NULL)
        lk_pg_watch_remove(self->watch, hold->private_.slot);
    if (status == LK_OK && was_held == 1) {
        lk_pg_give(&self->pool, conn);
        return LK_OK;
    }
    if (held_by != NULL)
        lk_pg_drop(&self->pool, held_by); /* which frees it, if anything was to be freed */
    return status == LK_OK || status == LK_LOST ? LK_LOST : LK_UNKNOWN;
}

lk_status lk_pg_hold_confirm(void *arg, const lk_hold *hold)
{
    lk_pg_conn *conn = connection_of(arg, hold);
    int64_t held = 0;
    if (conn == NULL)
        return LK_LOST;
    lk_status status = ask(conn, LK_PG_CONFIRM, hold->key, &held);
    return status == LK_OK && held == 0 ? LK_LOST : status;
}

/* -- from outside ----------------------------------------------------------------------------- */

lk_status lk_pg_hold_raise_fence(void *self, const char *key, uint64_t seen)
{
    if (seen > LK_SQL_FENCE_MAX)
        return LK_INVALID;
    return ask_any(self, LK_PG_RAISE, (lk_sql_arg[]){{.text = key}, {.number = (int64_t)seen}},
                   NULL, NULL);
}

lk_status lk_pg_hold_ping(void *self)
{
    return ask_any(self, LK_PG_PING, NULL, NULL, NULL);
}

static int take_info(void *arg, const lk_sql_row *row)
{
    lk_lock_info *info = arg;
    info->holders = (uint32_t)row->number[0];
    info->waiters = (uint32_t)row->number[1];
    info->mode = row->number[2] == 1 ? LK_SHARED : LK_EXCLUSIVE;
    return 1;
}

lk_status lk_pg_hold_inspect(void *self, const char *key, lk_lock_info *ret)
{
    return ask_any(self, LK_PG_INSPECT, (lk_sql_arg[]){{.text = key}}, take_info, ret);
}

lk_status lk_pg_hold_force_release(void *self, const char *key)
{
    int64_t answer = 0;
    lk_status status =
        ask_any(self, LK_PG_FORCE, (lk_sql_arg[]){{.text = key}}, take_number, &answer);
    if (status != LK_OK || answer == 1)
        return status;
    return answer == 0 ? LK_LOST : LK_UNKNOWN;
}

/* -- opening ---------------------------------------------------------------------------------- */

lk_status lk_pg_hold_open(const lk_context *context, const lk_sql_set *set, void **ret_self,
                          lk_error *error)
{
    const char *address = context->endpoints != NULL ? context->endpoints : "";
    if (strncmp(address, "postgres", 8) != 0)
        return lk_fail(error, LK_INVALID,
                       "an advisory lock wants postgres://USER@HOST:PORT/DATABASE as its endpoint; "
                       "in a SQLite file sql-unique does");
    struct pg_hold *self = calloc(1, sizeof *self);
    if (self == NULL)
        return lk_fail(error, LK_NO_MEMORY, "out of memory for PostgreSQL connections");
    self->context = context;
    self->set = set;
    lk_status status = lk_pg_pool_open(&self->pool, context, set, true, error);
    if (status != LK_OK)
        goto no_pool;
    status = lk_pg_pool_open(&self->numbers, context, set, false, error);
    if (status != LK_OK)
        goto no_numbers;
    self->numbers.target.pool_max = 1;
    status = lk_pg_watch_open(context, &self->watch);
    if (status != LK_OK) {
        lk_fail(error, status, "no thread to watch PostgreSQL connections");
        goto no_watch;
    }
    *ret_self = self;
    return LK_OK;
no_watch:
    lk_pg_pool_close(&self->numbers);
no_numbers:
    lk_pg_pool_close(&self->pool);
no_pool:
    free(self);
    return status;
}

void lk_pg_hold_close(void *arg)
{
    struct pg_hold *self = arg;
    lk_pg_watch_close(self->watch);
    lk_pg_pool_close(&self->numbers);
    lk_pg_pool_close(&self->pool);
    free(self);
}
