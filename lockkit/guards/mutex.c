/*
 * mutex: what a program of one process would do.
 *
 * Algorithm: a table of queues. The holds of a key stand in order of arrival; the first owns the
 *            lock, release hands it to the next and wakes that one alone.
 * Guarantee: one holder among the threads of this client, first come first served.
 * Weakness:  knows nothing of other processes: two instances of a service hold the «same» lock at
 *            once. No lease: a thread that never releases blocks all others for ever.
 * Source:    the usual named mutex; hand-over in order of arrival as in the queue locks of
 *            Mellor-Crummey and Scott, ACM TOCS 9/1, 1991.
 *
 * The queues are threaded through the callers' holds, which may not move while in use: taking and
 * freeing a lock allocates nothing. Buckets are shared by keys, in one chain in order of arrival.
 */
#include "key_hash.h"
#include "monotonic.h"
#include "providers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 1024 };

struct bucket {
    pthread_mutex_t lock;
    lk_hold *first, *last;
};

/* On the stack of wait(); its hold's private_.slot points here meanwhile. */
struct sleeper {
    pthread_cond_t woken;
};

struct table {
    const lk_env *env;
    struct bucket buckets[BUCKETS];
};

static struct bucket *bucket_of(struct table *table, const char *key)
{
    return &table->buckets[lk_key_hash(key) % BUCKETS];
}

static lk_hold *owner_of(const struct bucket *bucket, const char *key)
{
    lk_hold *hold = bucket->first;
    while (hold && strcmp(hold->key, key) != 0)
        hold = hold->private_.next;
    return hold;
}

static void enqueue(struct bucket *bucket, lk_hold *hold)
{
    hold->private_.prev = bucket->last;
    hold->private_.next = NULL;
    *(bucket->last ? &bucket->last->private_.next : &bucket->first) = hold;
    bucket->last = hold;
}

/* If it owned the lock, its successor is the first of the key now, and learns it. */
static void dequeue(struct bucket *bucket, lk_hold *hold)
{
    lk_hold *before = hold->private_.prev, *after = hold->private_.next;
    *(before ? &before->private_.next : &bucket->first) = after;
    *(after ? &after->private_.prev : &bucket->last) = before;
    hold->private_.prev = hold->private_.next = NULL;
    lk_hold *owner = owner_of(bucket, hold->key);
    if (owner && owner->private_.slot != 0)
        pthread_cond_signal(&((struct sleeper *)(uintptr_t)owner->private_.slot)->woken);
}

/* attempt->waiter: the hold while it stands in the queue without owning the lock. */
static lk_status mutex_try_acquire(void *self, lk_attempt *attempt)
{
    lk_hold *hold = attempt->hold;
    struct bucket *bucket = bucket_of(self, hold->key);
    pthread_mutex_lock(&bucket->lock);
    if (!attempt->waiter)
        enqueue(bucket, hold);
    lk_status status = owner_of(bucket, hold->key) == hold ? LK_OK : LK_BUSY;
    if (status == LK_BUSY && attempt->last && !attempt->waiter)
        dequeue(bucket, hold);
    else
        attempt->waiter = status == LK_OK ? NULL : hold;
    pthread_mutex_unlock(&bucket->lock);
    return status;
}

static lk_status mutex_wait(void *self, lk_attempt *attempt, int64_t until_us)
{
    struct table *table = self;
    lk_hold *hold = attempt->hold;
    struct bucket *bucket = bucket_of(table, hold->key);
    int64_t left_us = until_us - table->env->now_us(table->env->ctx);
    int64_t end_us = lk_monotonic_us() + (left_us > 0 ? left_us : 0);
    struct sleeper sleeper = {.woken = PTHREAD_COND_INITIALIZER};
    pthread_mutex_lock(&bucket->lock);
    hold->private_.slot = (uintptr_t)&sleeper;
    while (owner_of(bucket, hold->key) != hold &&
           lk_wait_until(&sleeper.woken, &bucket->lock, end_us))
        continue;
    hold->private_.slot = 0;
    pthread_mutex_unlock(&bucket->lock);
    pthread_cond_destroy(&sleeper.woken);
    return LK_OK;
}

/* The lock may have been handed to us just as we gave up: leaving the queue passes it on. */
static void mutex_wait_end(void *self, lk_attempt *attempt)
{
    if (!attempt->waiter)
        return;
    struct bucket *bucket = bucket_of(self, attempt->hold->key);
    pthread_mutex_lock(&bucket->lock);
    dequeue(bucket, attempt->hold);
    pthread_mutex_unlock(&bucket->lock);
    attempt->waiter = NULL;
}

static lk_status mutex_release(void *self, lk_hold *hold)
{
    struct bucket *bucket = bucket_of(self, hold->key);
    pthread_mutex_lock(&bucket->lock);
    bool ours = owner_of(bucket, hold->key) == hold;
    if (ours)
        dequeue(bucket, hold);
    pthread_mutex_unlock(&bucket->lock);
    return ours ? LK_OK : LK_LOST;
}

/* -- for tools -------------------------------------------------------------------------------- */

static lk_status mutex_confirm(void *self, const lk_hold *hold)
{
    struct bucket *bucket = bucket_of(self, hold->key);
    pthread_mutex_lock(&bucket->lock);
    bool ours = owner_of(bucket, hold->key) == hold;
    pthread_mutex_unlock(&bucket->lock);
    return ours ? LK_OK : LK_LOST;
}

/* The first of a key is its holder, the others wait. */
static void describe(const lk_hold *owner, lk_lock_info *info)
{
    info->holders = 1;
    memcpy(info->token, owner->token, sizeof info->token);
    for (const lk_hold *hold = owner->private_.next; hold; hold = hold->private_.next)
        info->waiters += strcmp(hold->key, owner->key) == 0;
}

static lk_status mutex_inspect(void *self, const char *key, lk_lock_info *ret)
{
    struct bucket *bucket = bucket_of(self, key);
    pthread_mutex_lock(&bucket->lock);
    const lk_hold *owner = owner_of(bucket, key);
    if (owner)
        describe(owner, ret);
    pthread_mutex_unlock(&bucket->lock);
    return LK_OK;
}

static lk_status mutex_list(void *self, const char *prefix,
                            int (*each)(void *arg, const lk_lock_info *info), void *arg)
{
    struct table *table = self;
    int stop = 0;
    for (size_t i = 0; i < BUCKETS && !stop; i++) {
        struct bucket *bucket = &table->buckets[i];
        pthread_mutex_lock(&bucket->lock);
        for (const lk_hold *hold = bucket->first; hold && !stop; hold = hold->private_.next) {
            if (strncmp(hold->key, prefix, strlen(prefix)) != 0 ||
                owner_of(bucket, hold->key) != hold)
                continue;
            lk_lock_info info = {.left_ms = INT64_MAX};
            memcpy(info.key, hold->key, sizeof info.key);
            describe(hold, &info);
            stop = each(arg, &info);
        }
        pthread_mutex_unlock(&bucket->lock);
    }
    return LK_OK;
}

static lk_status mutex_open(const lk_context *context, void **ret_self, lk_error *error)
{
    struct table *table = calloc(1, sizeof *table);
    if (!table)
        return lk_fail(error, LK_NO_MEMORY, "no memory for the table of mutexes");
    table->env = context->env;
    for (size_t i = 0; i < BUCKETS; i++)
        pthread_mutex_init(&table->buckets[i].lock, NULL);
    *ret_self = table;
    return LK_OK;
}

static void mutex_close(void *self)
{
    struct table *table = self;
    for (size_t i = 0; i < BUCKETS; i++)
        pthread_mutex_destroy(&table->buckets[i].lock);
    free(table);
}

const lk_provider lk_mutex = {
    .info = {.name = "mutex",
             .caps = LK_CAP_EXCLUSIVE | LK_CAP_OWNER | LK_CAP_FAIR | LK_CAP_WAKES,
             .algorithm = "named mutex in this process, waiters queue on condition variables",
             .guarantee = "one holder among the threads of this process, first come first served",
             .weakness = "other processes are not excluded; never freed if its holder hangs",
             .source = "Mellor-Crummey and Scott, queue locks, ACM TOCS 9/1, 1991"},
    .open = mutex_open,
    .close = mutex_close,
    .try_acquire = mutex_try_acquire,
    .wait = mutex_wait,
    .wait_end = mutex_wait_end,
    .release = mutex_release,
    .confirm = mutex_confirm,
    .inspect = mutex_inspect,
    .list = mutex_list,
};
