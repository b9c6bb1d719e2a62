#include "repeated.h"
#include "point.h"

/* Returns whether to go on. */
static bool wait_for(struct repeated *repeated)
{
    const int64_t until_us = now_us() + repeated->pause_us;
    pthread_mutex_lock(&repeated->mutex);
    while (!repeated->stopping && cond_wait_until(&repeated->changed, &repeated->mutex, until_us))
        continue;
    const bool go_on = !repeated->stopping;
    pthread_mutex_unlock(&repeated->mutex);
    return go_on;
}

static void *run_thread(void *arg)
{
    struct repeated *repeated = arg;
    while (wait_for(repeated))
        repeated->pause_us = repeated->run(repeated->arg);
    return NULL;
}

bool repeated_start(struct repeated *repeated, int64_t pause_us, int64_t (*run)(void *arg),
                    void *arg)
{
    *repeated = (struct repeated){.run = run, .arg = arg, .pause_us = pause_us};
    pthread_mutex_init(&repeated->mutex, NULL);
    pthread_cond_init(&repeated->changed, NULL);
    repeated->started = pthread_create(&repeated->thread, NULL, run_thread, repeated) == 0;
    if (!repeated->started) {
        pthread_cond_destroy(&repeated->changed);
        pthread_mutex_destroy(&repeated->mutex);
    }
    return repeated->started;
}

bool repeated_is_stopping(struct repeated *repeated)
{
    pthread_mutex_lock(&repeated->mutex);
    const bool stopping = repeated->stopping;
    pthread_mutex_unlock(&repeated->mutex);
    return stopping;
}

void repeated_stop(struct repeated *repeated)
{
    if (!repeated->started)
        return;
    pthread_mutex_lock(&repeated->mutex);
    repeated->stopping = true;
    pthread_cond_signal(&repeated->changed);
    pthread_mutex_unlock(&repeated->mutex);
    pthread_join(repeated->thread, NULL);
    pthread_cond_destroy(&repeated->changed);
    pthread_mutex_destroy(&repeated->mutex);
    repeated->started = false;
}
