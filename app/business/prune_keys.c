#include "prune_keys.h"
#include "point.h"
#include "repeated.h"
#include "upkeep.h"

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
    db_reader *reader;          /* opened at the first bite */
    char after[DB_KEY_MAX + 1]; /* the sweep is here */
    struct repeated thread;
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
static int64_t take_bite(void *arg)
{
    struct prune_keys *task = arg;
    db_bite bite;
    if (task->reader == NULL && db_reader_open(task->base.db, &task->reader, NULL) != DB_OK)
        return rest_us(task);
    struct bite job = {.after = task->after,
                       .last = bite.last,
                       .before_us = wall_us() - task->base.config->key_retention_s * 1000000};
    db_status status = db_read_bite(task->reader, task->after, job.before_us, &bite);
    if (status == DB_OK && bite.old > 0 &&
        (status = db_run(task->base.db, prune, &job, NULL)) == DB_OK)
        counter_add(&task->base.counters->pruned, (uint64_t)bite.old);
    const bool ended = status != DB_OK || bite.n < DB_BITE;
    memccpy(task->after, ended ? "" : bite.last, '\0', sizeof task->after);
    return ended ? rest_us(task) : bite.old > 0 ? PRUNE_PAUSE_US : BITE_PAUSE_US;
}

struct prune_keys *prune_keys_open(const struct section_base *base)
{
    struct prune_keys *task = calloc(1, sizeof *task);
    if (!task)
        return NULL;
    task->base = *base;
    if (base->config->key_retention_s == 0 ||
        repeated_start(&task->thread, rest_us(task), take_bite, task))
        return task;
    free(task);
    return NULL;
}

void prune_keys_close(struct prune_keys *task)
{
    if (!task)
        return;
    repeated_stop(&task->thread);
    if (task->reader != NULL)
        db_reader_close(task->reader);
    free(task);
}
