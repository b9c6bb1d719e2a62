#include "tries.h"
#include "lockkit.h"

#include <pthread.h>
#include <string.h>

static struct {
    pthread_mutex_t lock;
    const char *key;
    pthread_t by[TRIES_THREADS_MAX];
    int n, threads;
} tries = {.lock = PTHREAD_MUTEX_INITIALIZER, .key = ""};

void tries_begin(const char *key)
{
    pthread_mutex_lock(&tries.lock);
    tries.key = key;
    tries.n = tries.threads = 0;
    pthread_mutex_unlock(&tries.lock);
}

void tries_note(void *ctx, const char *point, const char *key)
{
    (void)ctx;
    if (strcmp(point, LK_POINT_TRY) != 0)
        return;
    pthread_mutex_lock(&tries.lock);
    if (strcmp(key, tries.key) == 0) {
        int i = 0;
        while (i < tries.threads && !pthread_equal(tries.by[i], pthread_self()))
            i++;
        if (i == tries.threads && i < TRIES_THREADS_MAX)
            tries.by[tries.threads++] = pthread_self();
        tries.n++;
    }
    pthread_mutex_unlock(&tries.lock);
}

static int read_locked(const int *number)
{
    pthread_mutex_lock(&tries.lock);
    const int value = *number;
    pthread_mutex_unlock(&tries.lock);
    return value;
}

int tries_made(void)
{
    return read_locked(&tries.n);
}

int tries_threads(void)
{
    return read_locked(&tries.threads);
}

bool tries_reached(void *n)
{
    return tries_made() >= *(int *)n;
}

bool tries_threads_reached(void *n)
{
    return tries_threads() >= *(int *)n;
}
