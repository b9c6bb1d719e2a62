#include "lock_hooks.h"
#include "lock_world.h"
#include "process.h"

#include <assert.h>
#include <string.h>

static void at_point(void *ctx, const char *point, const char *key)
{
    struct hooked *hooked = ctx;
    (void)key;
    bool is_try = strcmp(point, LK_POINT_TRY) == 0;
    if (is_try)
        atomic_store(&hooked->trying, true);
    if (strcmp(point, LK_POINT_WAIT) == 0) {
        atomic_store(&hooked->trying, false);
        atomic_fetch_add(&hooked->refusals, 1);
    }
    const char *called_at = atomic_load(&hooked->point);
    if (called_at != NULL && strcmp(point, called_at) == 0)
        hooked->call(hooked->arg);
    if (is_try && atomic_load(&hooked->shut)) {
        atomic_store(&hooked->trying, false);
        atomic_store(&hooked->at_gate, true);
        while (atomic_load(&hooked->shut))
            lk_env_system()->sleep_us(NULL, 1000);
        atomic_store(&hooked->at_gate, false);
        atomic_store(&hooked->trying, true);
    }
}

static bool is_clear(void *flag)
{
    return !atomic_load((atomic_bool *)flag);
}

bool shut_gate(struct hooked *hooked, int64_t patience_ms)
{
    atomic_store(&hooked->shut, true);
    return atomic_load(&hooked->at_gate) || wait_until(is_clear, &hooked->trying, patience_ms);
}

static int64_t wall_us(void *ctx)
{
    struct hooked *hooked = ctx;
    return lk_env_system()->wall_us(NULL) + atomic_load(&hooked->ahead_us);
}

const lk_env *hook(struct hooked *hooked)
{
    *hooked = (struct hooked){.env = *lk_env_system()};
    hooked->env.point = at_point;
    hooked->env.wall_us = wall_us;
    hooked->env.ctx = hooked;
    return &hooked->env;
}

static void *ask(void *arg)
{
    struct asker *asker = arg;
    int64_t start_ms = test_now_ms();
    lk_request request = {.key = asker->key,
                          .mode = asker->mode,
                          .permits = asker->permits,
                          .lease_ms = asker->lease_ms,
                          .wait_ms = asker->wait_ms};
    asker->status = lk_acquire(asker->client, &request, &asker->hold);
    asker->took_ms = test_now_ms() - start_ms;
    atomic_store(&asker->ended, true);
    return NULL;
}

void asker_start(struct asker *asker)
{
    int failed = pthread_create(&asker->thread, NULL, ask, asker);
    assert(failed == 0);
}

lk_status asker_join(struct asker *asker)
{
    pthread_join(asker->thread, NULL);
    return asker->status;
}

lk_status asker_end(struct asker *asker)
{
    lk_status status = asker_join(asker);
    if (status == LK_OK)
        status = lk_release(&asker->hold);
    lk_close(asker->client);
    return status;
}

bool asker_ended(struct asker *asker)
{
    return atomic_load(&asker->ended);
}

bool is_set(void *flag)
{
    return atomic_load((atomic_bool *)flag);
}

bool refused_twice(void *hooked)
{
    return atomic_load(&((struct hooked *)hooked)->refusals) >= 2;
}
