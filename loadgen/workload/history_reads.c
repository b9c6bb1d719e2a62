/* One thread reads the run's resources in turn for its history. */
#include "history_reads.h"
#include "steady.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { PAUSE_MS = 2 };

struct history_reads {
    struct run *run;
    pthread_t thread;
    atomic_bool stop;
};

static void read_one(const struct history_reads *reads, uint64_t n)
{
    const struct run *run = reads->run;
    const struct options *options = run->options;
    char path[REMOTE_PATH_MAX], key[RUN_KEY_MAX], *answer;
    run->workload->read(run, n, path);
    snprintf(key, sizeof key, "read-%s-%llu", run->id, (unsigned long long)n);
    history_invoke(run->history, key, path, NULL);
    int status = load_fetch_until(&reads->stop, &options->targets[n % (uint64_t)options->n_targets],
                                  "GET", path, "", NULL, options->timeout_ms, &answer);
    history_complete(run->history, key,
                     &(struct load_answer){.end = status > 0 ? LOAD_ANSWERED : LOAD_BROKEN,
                                           .status = status,
                                           .body = answer == NULL ? "" : answer});
    free(answer);
}

static void *work(void *arg)
{
    struct history_reads *reads = arg;
    for (uint64_t n = 0; !atomic_load(&reads->stop); n++) {
        read_one(reads, n);
        steady_sleep_ms(PAUSE_MS);
    }
    return NULL;
}

int history_reads_start(struct run *run, struct history_reads **ret)
{
    struct history_reads *reads = NULL;
    *ret = NULL;
    if (run->history == NULL)
        return 0;
    reads = calloc(1, sizeof *reads);
    if (reads != NULL)
        reads->run = run;
    if (reads == NULL || pthread_create(&reads->thread, NULL, work, reads) != 0) {
        free(reads);
        snprintf(run->message, sizeof run->message, "no thread for the reads of the history");
        return -1;
    }
    *ret = reads;
    return 0;
}

void history_reads_stop(struct history_reads *reads)
{
    if (reads == NULL)
        return;
    atomic_store(&reads->stop, true);
    pthread_join(reads->thread, NULL);
    free(reads);
}
