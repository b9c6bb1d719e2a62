#include "own_keys.h"
#include "lock_world.h"
#include "tests.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { THREADS = 64, ROUNDS = 30 };

struct worker {
    pthread_t thread;
    lk_client *client;
    int64_t lease_ms, wait_ms;
    int number;
    const char *wrong;
};

static void *work(void *arg)
{
    struct worker *worker = arg;
    char key[32];
    snprintf(key, sizeof key, "lock:item:%d", worker->number);
    for (int i = 0; i < ROUNDS && worker->wrong == NULL; i++) {
        lk_hold mine;
        lk_lock_info info;
        if (world_acquire(worker->client, key, worker->lease_ms, worker->wait_ms, &mine) != LK_OK)
            worker->wrong = "not granted";
        else if (lk_inspect(worker->client, key, &info) != LK_OK)
            worker->wrong = "not inspected";
        else if (strcmp(info.token, mine.token) != 0)
            worker->wrong = "another's answer";
        else if (lk_release(&mine) != LK_OK)
            worker->wrong = "not released";
    }
    return NULL;
}

void own_keys_test(lk_client *client, int64_t lease_ms, int64_t wait_ms)
{
    struct worker workers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){
            .client = client, .lease_ms = lease_ms, .wait_ms = wait_ms, .number = i};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    for (int i = 0; i < THREADS; i++)
        if (workers[i].wrong != NULL)
            fail_msg("thread %d: %s", i, workers[i].wrong);
}
