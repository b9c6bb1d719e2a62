#include "prune_keys.h"
#include "point.h"
#include "upkeep.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    BITE_PAUSE_US = 100000, /* 640 keys a second */
    PRUNE_PAUSE_US = 50000, /* after a bite with something to prune: 30 us of a core for each key */
    REST_US_MIN = 100000,   /* after a sweep: an eighth of the retention */
    REST_US_MAX = 3600000000
};

struct prune_keys {
    struct section_base base;
    char after[DB_KEY_MAX + 1]; /* the sweep is here */
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool stopping, started;
};

struct bite {
    const char *after, *last;
    int64_t before_us;
};

static db_status prune(db_tx *tx, void *arg)
{
    const struct bite *bite = arg;
    return db_tx_prune_bite(tx, bite->after, bite->last, bite->before_us);
}

static int64_t rest_us(const struct prune_keys *task)
{
    const int64_t us = task->base.config->key_retention_s * 1000000 / 8;
    return us < REST_US_MIN ? REST_US_MIN : us > REST_US_MAX ? REST_US_MAX : us;
}

/* Returns the pause until the next bite. If the store is away, the sweep begins again. */
static int64_t take_bite(struct prune_keys *task, db_reader *reader)
{
    db_bite bite;
    struct bite job = {.after = task->after,
                       .last = bite.last,
                       .before_us = wall_us() - task->base.config->key_retention_s * 1000000};
    db_status status = db_read_bite(reader, task->after, job.before_us, &bite);
    if (status == DB_OK && bite.old > 0 &&
        (status = db_run(task->base.db, prune, &job, NULL)) == DB_OK)
        counter_add(&task->base.counters->pruned, (uint64_t)bite.old);
    const bool ended = status != DB_OK || bite.n < DB_BITE;
    memccpy(task->after, ended ? "" : bite.last, '\0', sizeof task->after);
    return ended ? rest_us(task) : bite.old > 0 ? PRUNE_PAUSE_US : BITE_PAUSE_US;
}

/* Returns whether to go on. */
static bool wait_until_us(struct prune_keys *task, int64_t until_us)
{
    pthread_mutex_lock(&task->mutex);
    while (!task->stopping && cond_wait_until(&task->changed, &task->mutex, until_us))
        continue;
    const bool go_on = !task->stopping;
    pthread_mutex_unlock(&task->mutex);
    return go_on;
}

static void *run_thread(void *arg)
{
    struct prune_keys *task = arg;
    db_reader *reader = NULL;
    int64_t pause_us = rest_us(task);
    while (wait_until_us(task, now_us() + pause_us)) {
        pause_us = rest_us(task);
        if (reader != NULL || db_reader_open(task->base.db, &reader, NULL) == DB_OK)
            pause_us = take_bite(task, reader);
    }
    if (reader != NULL)
        db_reader_close(reader);
    return NULL;
}

struct prune_keys *prune_keys_open(const struct section_base *base)
{
    struct prune_keys *task = calloc(1, sizeof *task);
    if (!task)
        return NULL;
    task->base = *base;
    pthread_mutex_init(&task->mutex, NULL);
    pthread_cond_init(&task->changed, NULL);
    task->started = base->config->key_retention_s > 0 &&
                    pthread_create(&task->thread, NULL, run_thread, task) == 0;
    if (task->started || base->config->key_retention_s == 0)
        return task;
    prune_keys_close(task);
    return NULL;
}

void prune_keys_close(struct prune_keys *task)
{
    if (!task)
        return;
    pthread_mutex_lock(&task->mutex);
    task->stopping = true;
    pthread_cond_signal(&task->changed);
    pthread_mutex_unlock(&task->mutex);
    if (task->started)
        pthread_join(task->thread, NULL);
    pthread_cond_destroy(&task->changed);
    pthread_mutex_destroy(&task->mutex);
    free(task);
}
