#include "janitor.h"
#include "backoff.h"
#include "client.h"
#include "monotonic.h"
#include "thread.h"

#include <stdlib.h>

enum { US_PER_MS = 1000 };

struct pending_release {
    struct pending_release *next;
    lk_hold hold;
    int64_t since_us;
    int64_t until_us; /* the lease has ended by then, whatever the server was told */
};

/* -- the list: the lock is held --------------------------------------------------------------- */

static void append(struct janitor *janitor, struct pending_release *pending)
{
    pending->next = NULL;
    *janitor->last = pending;
    janitor->last = &pending->next;
}

static struct pending_release *take(struct janitor *janitor)
{
    struct pending_release *pending = janitor->first;
    if (pending) {
        janitor->first = pending->next;
        if (!janitor->first)
            janitor->last = &janitor->first;
    }
    return pending;
}

static void delay_next(struct janitor *janitor, int64_t now_us)
{
    janitor->due_us = now_us + US_PER_MS * lk_backoff(JANITOR_PAUSE_MS_MIN, JANITOR_PAUSE_MS_MAX,
                                                      janitor->pauses++);
}

static int64_t next_due_us(const struct janitor *janitor)
{
    return janitor->first ? janitor->due_us : INT64_MAX;
}

/* -- one pending release ---------------------------------------------------------------------- */

static void tell(lk_client *client, const lk_hold *hold, lk_pending what, int64_t since_us)
{
    const lk_options *options = &client->options;
    if (options->on_pending)
        options->on_pending(options->on_pending_arg, hold->key, what,
                            (client_now_us(client) - since_us) / US_PER_MS);
}

/* True: the server has confirmed it, or its lease has ended. */
static bool repeat(lk_client *client, struct pending_release *pending)
{
    if (client_now_us(client) >= pending->until_us) {
        tell(client, &pending->hold, LK_PENDING_GIVEN_UP, pending->since_us);
        return true;
    }
    client_point(client, LK_POINT_CLEANUP, pending->hold.key);
    lk_status status = client->provider->release(client->self, &pending->hold);
    if (!client_is_freed(status))
        return false;
    client_count(&client->stats.pending_done);
    tell(client, &pending->hold, LK_PENDING_DONE, pending->since_us);
    return true;
}

/* The lock is held, but not meanwhile. */
static bool repeat_unlocked(lk_client *client, struct pending_release *pending)
{
    struct janitor *janitor = &client->janitor;
    pthread_mutex_unlock(&janitor->lock);
    bool done = repeat(client, pending);
    if (done)
        free(pending);
    pthread_mutex_lock(&janitor->lock);
    janitor->n_pending -= done;
    return done;
}

int64_t janitor_step(lk_client *client)
{
    struct janitor *janitor = &client->janitor;
    pthread_mutex_lock(&janitor->lock);
    int64_t now_us = client_now_us(client);
    struct pending_release *pending = now_us >= janitor->due_us ? take(janitor) : NULL;
    if (pending && repeat_unlocked(client, pending)) {
        janitor->pauses = 0;
    } else if (pending) {
        append(janitor, pending); /* others may live on a server that answers */
        delay_next(janitor, client_now_us(client));
    }
    int64_t next_us = next_due_us(janitor);
    pthread_mutex_unlock(&janitor->lock);
    return next_us;
}

static void *run(void *arg)
{
    lk_client *client = arg;
    struct janitor *janitor = &client->janitor;
    for (;;) {
        janitor_step(client);
        pthread_mutex_lock(&janitor->lock);
        if (!janitor->stop)
            lk_wait_for(&janitor->changed, &janitor->lock,
                        next_due_us(janitor) - client_now_us(client));
        bool stop = janitor->stop;
        pthread_mutex_unlock(&janitor->lock);
        if (stop)
            return NULL;
    }
}

/* -- from the core ---------------------------------------------------------------------------- */

static struct pending_release *new_pending(const lk_client *client, const lk_hold *hold)
{
    struct pending_release *pending = malloc(sizeof *pending);
    if (!pending)
        return NULL;
    pending->hold = *hold;
    pending->since_us = client_now_us(client);
    pending->until_us = hold_asked_until_us(hold, pending->since_us);
    if (pending->until_us != INT64_MAX)
        pending->until_us += client->options.command_timeout_ms * US_PER_MS;
    return pending;
}

static void keep(lk_client *client, const lk_hold *hold)
{
    struct janitor *janitor = &client->janitor;
    struct pending_release *pending = new_pending(client, hold);
    client_count(&client->stats.pending);
    tell(client, hold, LK_PENDING_STARTED, client_now_us(client));
    pthread_mutex_lock(&janitor->lock);
    if (!janitor->started)
        janitor->started = janitor->manual || lk_thread_start(&janitor->thread, run, client);
    bool added = pending && janitor->started && janitor->n_pending < JANITOR_PENDING_MAX;
    if (added) {
        append(janitor, pending);
        if (janitor->n_pending++ == 0) {
            janitor->pauses = 0;
            delay_next(janitor, pending->since_us);
        }
        pthread_cond_signal(&janitor->changed);
    }
    pthread_mutex_unlock(&janitor->lock);
    if (added)
        return;
    free(pending);
    tell(client, hold, LK_PENDING_GIVEN_UP, client_now_us(client));
}

void janitor_add(lk_client *client, const lk_hold *hold)
{
    uint32_t caps = client->provider->info.caps;
    bool stands_alone = (caps & LK_CAP_DISTRIBUTED) && !(caps & LK_CAP_SESSION);
    if (!stands_alone)
        return;
    if (caps & LK_CAP_OWNER)
        keep(client, hold);
    else
        tell(client, hold, LK_PENDING_GIVEN_UP, client_now_us(client));
}

/* -- opening and closing ---------------------------------------------------------------------- */

void janitor_open(struct janitor *janitor)
{
    *janitor = (struct janitor){.last = &janitor->first};
    pthread_mutex_init(&janitor->lock, NULL);
    pthread_cond_init(&janitor->changed, NULL);
}

void janitor_close(lk_client *client)
{
    struct janitor *janitor = &client->janitor;
    pthread_mutex_lock(&janitor->lock);
    janitor->stop = true;
    pthread_cond_signal(&janitor->changed);
    pthread_mutex_unlock(&janitor->lock);
    if (janitor->started && !janitor->manual)
        pthread_join(janitor->thread, NULL);
    pthread_mutex_lock(&janitor->lock);
    bool answers = true;
    for (struct pending_release *pending; (pending = take(janitor)) != NULL;) {
        answers = answers && repeat_unlocked(client, pending);
        if (answers)
            continue;
        tell(client, &pending->hold, LK_PENDING_GIVEN_UP, pending->since_us);
        free(pending);
    }
    pthread_mutex_unlock(&janitor->lock);
}

void janitor_free(struct janitor *janitor)
{
    pthread_cond_destroy(&janitor->changed);
    pthread_mutex_destroy(&janitor->lock);
}
