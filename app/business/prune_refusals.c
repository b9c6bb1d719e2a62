#include "prune_refusals.h"
#include "point.h"
#include "repeated.h"
#include "upkeep.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    BITE_PAUSE_US = 1000, /* 40,000 refusals a second: faster than they come */
    COUNT_PAUSE_US_MIN = 1000000,
    COUNT_PAUSES = 100 /* of the time that counting took */
};

struct prune_refusals {
    struct section_base base;
    db_reader *reader;  /* opened at the first count */
    db_refusals beyond; /* n: not yet deleted */
    int64_t pause_us;   /* until the next count */
    bool told;          /* that the index is missing */
    struct repeated thread;
};

struct bite {
    int64_t before_us, n;
};

static db_status prune(db_tx *tx, void *arg)
{
    struct bite *bite = arg;
    return db_tx_prune_refusals(tx, bite->before_us, &bite->n);
}

static int64_t take_bite(struct prune_refusals *task)
{
    struct bite bite = {.before_us = task->beyond.before_us};
    if (db_run(task->base.db, prune, &bite, NULL) != DB_OK) {
        task->beyond.n = 0; /* another time */
        return COUNT_PAUSE_US_MIN;
    }
    counter_add(&task->base.counters->pruned, (uint64_t)bite.n);
    task->beyond.n -= DB_BITE;
    return task->beyond.n > 0 ? BITE_PAUSE_US : task->pause_us;
}

static void tell_without_index(struct prune_refusals *task)
{
    if (!task->told)
        fprintf(stderr, "seckilld: refusals beyond --refusals-max stay until they are old: the "
                        "store has no index of them; \"seckilld migrate\" makes it\n");
    task->told = true;
}

/* Returns the pause until the next bite or count. */
static int64_t count_or_prune(void *arg)
{
    struct prune_refusals *task = arg;
    if (task->beyond.n > 0)
        return take_bite(task);
    if (task->reader == NULL && db_reader_open(task->base.db, &task->reader, NULL) != DB_OK)
        return COUNT_PAUSE_US_MIN;
    const int64_t begin_us = now_us();
    const db_status status =
        db_read_refusals(task->reader, task->base.config->refusals_max, &task->beyond);
    if (status == DB_NOT_FOUND)
        tell_without_index(task);
    if (status != DB_OK) {
        task->beyond.n = 0;
        return COUNT_PAUSE_US_MIN;
    }
    const int64_t pause_us = (now_us() - begin_us) * COUNT_PAUSES;
    task->pause_us = pause_us > COUNT_PAUSE_US_MIN ? pause_us : COUNT_PAUSE_US_MIN;
    if (task->beyond.n == DB_REFUSALS_MAX) /* there may be more */
        task->pause_us = BITE_PAUSE_US;
    return task->beyond.n > 0 ? BITE_PAUSE_US : task->pause_us;
}

struct prune_refusals *prune_refusals_open(const struct section_base *base)
{
    struct prune_refusals *task = calloc(1, sizeof *task);
    if (!task)
        return NULL;
    task->base = *base;
    if (repeated_start(&task->thread, COUNT_PAUSE_US_MIN, count_or_prune, task))
        return task;
    free(task);
    return NULL;
}

void prune_refusals_close(struct prune_refusals *task)
{
    if (!task)
        return;
    repeated_stop(&task->thread);
    if (task->reader != NULL)
        db_reader_close(task->reader);
    free(task);
}
