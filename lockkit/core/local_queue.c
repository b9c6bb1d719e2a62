#include "local_queue.h"
#include "client.h"
#include "key_hash.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { BUCKETS = 256, SIMULATED_LOOK_US = 1000 };

/* The queues of all keys with this hash. */
struct bucket {
    pthread_mutex_t lock;
    struct local_waiter *firsts; /* the first of each */
};

struct local_queue {
    lk_spin spin; /* of the first of each queue */
    struct bucket buckets[BUCKETS];
};

static struct bucket *bucket_of(struct local_queue *queue, const char *key)
{
    return &queue->buckets[lk_key_hash(key) % BUCKETS];
}

/* -- the queues: the bucket's lock is held ----------------------------------------------------- */

/* Where the queue of key is linked; the end of the list if there is none. */
static struct local_waiter **find_first(struct bucket *bucket, const char *key)
{
    struct local_waiter **at = &bucket->firsts;
    while (*at && strcmp((*at)->hold->key, key) != 0)
        at = &(*at)->next_first;
    return at;
}

/* First and woken, or alone. */
static bool may_ask(const struct local_waiter *waiter)
{
    return waiter->woken && !waiter->before; /* uncovered: only the first is woken */
}

static void append(struct bucket *bucket, struct local_waiter *waiter)
{
    struct local_waiter **at = find_first(bucket, waiter->hold->key), *first = *at;
    waiter->in_queue = true;
    if (!first) {
        waiter->last = waiter;
        waiter->n = 1;
        waiter->woken = true; /* nobody asks yet */
        *at = waiter;
        return;
    }
    waiter->before = first->last;
    first->last->behind = waiter;
    first->last = waiter;
    first->n++;
}

static void take_out(struct bucket *bucket, struct local_waiter *waiter)
{
    struct local_waiter **at = find_first(bucket, waiter->hold->key), *first = *at;
    struct local_waiter *before = waiter->before, *behind = waiter->behind;
    first->n--;
    if (behind)
        behind->before = before;
    else
        first->last = before;
    if (before) {
        before->behind = behind;
    } else if (behind) {
        behind->last = first->last;
        behind->n = first->n;
        behind->next_first = first->next_first;
        *at = behind;
    } else {
        *at = first->next_first;
    }
    waiter->before = NULL;
    waiter->in_queue = false;
}

/* True: the waiter sleeps. Call lk_event_wake() once the lock of the bucket is free. */
static bool signal_waiter(struct local_waiter *waiter)
{
    waiter->woken = true;
    return lk_event_signal(&waiter->event);
}

/* The new first waiter spins instead of sleeping, if holds are short. */
static bool wake_early(const struct local_queue *queue, struct local_waiter *waiter)
{
    return waiter && lk_spin_pays(&queue->spin) && lk_event_signal(&waiter->event);
}

/* -- sleeping --------------------------------------------------------------------------------- */

/* The injected clock may be a test's. It gives only the length of the wait. */
static void sleep_at_most(lk_client *client, struct bucket *bucket, struct local_waiter *waiter,
                          int64_t us)
{
    if (client->watchdog.manual) { /* simulated: the thread that could wake us is this thread */
        pthread_mutex_unlock(&bucket->lock);
        client->env.sleep_us(client->env.ctx, us < SIMULATED_LOOK_US ? us : SIMULATED_LOOK_US);
        pthread_mutex_lock(&bucket->lock);
        return;
    }
    bool spins = waiter->asleep && !waiter->before;
    pthread_mutex_unlock(&bucket->lock);
    lk_event_wait(&waiter->event, spins ? &client->queue->spin : NULL, us);
    pthread_mutex_lock(&bucket->lock);
}

static void sleep_until(lk_client *client, struct bucket *bucket, struct local_waiter *waiter,
                        int64_t until_us)
{
    int64_t left_us;
    while (!may_ask(waiter) && (left_us = until_us - client_now_us(client)) > 0)
        sleep_at_most(client, bucket, waiter, left_us);
}

/* After a sleep. True: handed a hold. */
static bool after_sleep(lk_client *client, struct bucket *bucket, struct local_waiter *waiter,
                        int64_t until_us)
{
    waiter->asleep = waiter->woken = false;
    if (waiter->in_queue &&
        waiter->pause_us > 0) { /* else it was handed a hold, or the queue broke up */
        int64_t end_us = client_now_us(client) + waiter->pause_us;
        waiter->pause_us = 0;
        sleep_until(client, bucket, waiter, end_us < until_us ? end_us : until_us);
        waiter->woken = false;
    }
    return waiter->handed;
}

bool local_queue_join(lk_client *client, struct local_waiter *waiter, lk_hold *hold,
                      int64_t until_us)
{
    struct bucket *bucket = bucket_of(client->queue, hold->key);
    *waiter = (struct local_waiter){.hold = hold, .asleep = true};
    pthread_mutex_lock(&bucket->lock);
    append(bucket, waiter);
    while (!may_ask(waiter)) {
        int64_t now_us = client_now_us(client), n = (*find_first(bucket, hold->key))->n;
        int64_t look_us = now_us + n * client->options.retry_max_ms * 1000;
        if (now_us >= until_us)
            break;
        sleep_until(client, bucket, waiter, look_us < until_us ? look_us : until_us);
        if (!waiter->before)
            break;
    }
    bool handed = after_sleep(client, bucket, waiter, until_us);
    pthread_mutex_unlock(&bucket->lock);
    return handed;
}

bool local_queue_sleep(lk_client *client, struct local_waiter *waiter, int64_t us)
{
    struct bucket *bucket = bucket_of(client->queue, waiter->hold->key);
    int64_t until_us = client_now_us(client) + us;
    pthread_mutex_lock(&bucket->lock);
    waiter->asleep = true;
    sleep_until(client, bucket, waiter, until_us);
    bool handed = after_sleep(client, bucket, waiter, until_us);
    pthread_mutex_unlock(&bucket->lock);
    return handed;
}

/* -- leaving ---------------------------------------------------------------------------------- */

void local_queue_leave(lk_client *client, struct local_waiter *waiter, bool wake)
{
    struct bucket *bucket = bucket_of(client->queue, waiter->hold->key);
    pthread_mutex_lock(&bucket->lock);
    struct local_waiter *next = waiter->before ? NULL : waiter->behind;
    bool sleeps = false;
    if (waiter->in_queue) {
        take_out(bucket, waiter);
        sleeps = wake && next && signal_waiter(next);
    }
    pthread_mutex_unlock(&bucket->lock);
    if (sleeps)
        lk_event_wake(&next->event);
}

void local_queue_break_up(lk_client *client, struct local_waiter *waiter)
{
    struct bucket *bucket = bucket_of(client->queue, waiter->hold->key);
    pthread_mutex_lock(&bucket->lock);
    struct local_waiter **at = find_first(bucket, waiter->hold->key), *next = *at;
    if (next)
        *at = next->next_first;
    while (next) {
        struct local_waiter *one = next;
        next = one->behind;
        one->before = NULL;
        one->in_queue = false;
        if (signal_waiter(one)) /* with the lock held: the loop reads on */
            lk_event_wake(&one->event);
    }
    pthread_mutex_unlock(&bucket->lock);
}

/* -- releasing -------------------------------------------------------------------------------- */

static bool lasts_for(const lk_hold *hold, const lk_hold *next, int64_t now_us)
{
    return hold_valid_until_us(hold) - now_us >= next->lease_ms * 1000 / 2;
}

static void hand_to(const lk_hold *hold, struct local_waiter *waiter, int64_t now_us)
{
    lk_hold *next = waiter->hold;
    memcpy(next->token, hold->token, sizeof next->token);
    next->fence = hold->fence;
    next->acquired_us = now_us;
    next->private_.slot = hold->private_.slot;
    next->private_.handovers = hold->private_.handovers + 1;
    next->private_.asked_until_us = hold_asked_until_us(hold, now_us);
    hold_set_valid_until(next, hold_valid_until_us(hold));
    waiter->handed = true;
}

bool local_queue_hand_over(lk_client *client, const lk_hold *hold)
{
    if (!hold->private_.queues || hold->private_.handovers >= client->options.local_handovers ||
        !(client->provider->info.caps & LK_CAP_LEASE))
        return false;
    struct bucket *bucket = bucket_of(client->queue, hold->key);
    pthread_mutex_lock(&bucket->lock);
    int64_t now_us = client_now_us(client);
    struct local_waiter *first = *find_first(bucket, hold->key);
    bool hands = first && first->asleep && lasts_for(hold, first->hold, now_us);
    struct local_waiter *second = hands ? first->behind : NULL;
    bool first_sleeps = false, second_sleeps = false;
    if (hands) {
        hand_to(hold, first, now_us);
        take_out(bucket, first);
        first_sleeps = signal_waiter(first);
        second_sleeps = wake_early(client->queue, second);
        client_count(&client->stats.handovers);
    }
    pthread_mutex_unlock(&bucket->lock);
    if (first_sleeps)
        lk_event_wake(&first->event);
    if (second_sleeps)
        lk_event_wake(&second->event);
    return hands;
}

void local_queue_wake(lk_client *client, const lk_hold *hold)
{
    struct bucket *bucket = bucket_of(client->queue, hold->key);
    bool had_enough = client->options.local_handovers > 0 &&
                      hold->private_.handovers >= client->options.local_handovers;
    pthread_mutex_lock(&bucket->lock);
    struct local_waiter *first = *find_first(bucket, hold->key);
    if (first && had_enough) /* longer than a poller of another process sleeps */
        first->pause_us = client->options.retry_max_ms * 1000;
    bool sleeps = first && signal_waiter(first);
    pthread_mutex_unlock(&bucket->lock);
    if (sleeps)
        lk_event_wake(&first->event);
}

int64_t local_queue_sleepers(lk_client *client, const char *key)
{
    struct bucket *bucket = bucket_of(client->queue, key);
    int64_t n = 0;
    pthread_mutex_lock(&bucket->lock);
    for (const struct local_waiter *one = *find_first(bucket, key); one; one = one->behind)
        n += one->asleep;
    pthread_mutex_unlock(&bucket->lock);
    return n;
}

/* -- opening and closing ---------------------------------------------------------------------- */

bool local_queue_suits(const lk_provider_info *info)
{
    return (info->caps & LK_CAP_OWNER) && !(info->caps & LK_CAP_FAIR);
}

struct local_queue *local_queue_open(int64_t spin_us)
{
    struct local_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return NULL;
    queue->spin.most_us = spin_us;
    for (size_t i = 0; i < BUCKETS; i++)
        pthread_mutex_init(&queue->buckets[i].lock, NULL);
    return queue;
}

void local_queue_close(struct local_queue *queue)
{
    if (!queue)
        return;
    for (size_t i = 0; i < BUCKETS; i++) {
        assert(!queue->buckets[i].firsts);
        pthread_mutex_destroy(&queue->buckets[i].lock);
    }
    free(queue);
}
