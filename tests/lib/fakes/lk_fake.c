#include "lk_fake.h"
#include "watchdog.h"

#include <assert.h>
#include <string.h>

/* -- the world -----------------------------------------------------------------------------------
 */

int64_t fake_now_us(struct fake *fake)
{
    return fake->real_time ? lk_env_system()->now_us(NULL) : fake->now_us;
}

void fake_sleep_us(struct fake *fake, int64_t us)
{
    if (fake->sleep_us)
        fake->sleep_us(fake, us);
    else if (fake->real_time)
        lk_env_system()->sleep_us(NULL, us);
    else
        fake->now_us += us;
}

/* splitmix64, Vigna, https://prng.di.unimi.it/splitmix64.c */
uint64_t fake_random(struct fake *fake)
{
    pthread_mutex_lock(&fake->lock);
    uint64_t z = fake->random_state += 0x9e3779b97f4a7c15;
    pthread_mutex_unlock(&fake->lock);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static int64_t env_now_us(void *ctx)
{
    return fake_now_us(ctx);
}

static void env_sleep_us(void *ctx, int64_t us)
{
    struct fake *fake = ctx;
    assert(us > 0);
    pthread_mutex_lock(&fake->lock);
    if (fake->n_sleeps < FAKE_SLEEPS_MAX)
        fake->sleeps_us[fake->n_sleeps++] = us;
    pthread_mutex_unlock(&fake->lock);
    fake_sleep_us(fake, us);
}

static uint64_t env_random(void *ctx)
{
    return fake_random(ctx);
}

static void env_point(void *ctx, const char *point, const char *key)
{
    (void)ctx;
    (void)point;
    (void)key;
}

void fake_init(struct fake *fake, uint64_t seed)
{
    *fake = (struct fake){.env = {.now_us = env_now_us,
                                  .wall_us = env_now_us,
                                  .sleep_us = env_sleep_us,
                                  .random = env_random,
                                  .point = env_point,
                                  .ctx = fake},
                          .now_us = 1000000,
                          .random_state = seed,
                          .timeout_us = 50000,
                          .session_ms = 300,
                          .look_us = 100,
                          .lock = PTHREAD_MUTEX_INITIALIZER};
}

lk_client *fake_open(struct fake *fake, const lk_provider *provider, const lk_options *options)
{
    lk_options with_env = options ? *options : (lk_options){0};
    with_env.env = &fake->env;
    if (with_env.command_timeout_ms == 0)
        with_env.command_timeout_ms = fake->timeout_us / 1000;
    lk_client *client;
    lk_status status = lk_open_provider(provider, NULL, &with_env, &client, NULL);
    assert(status == LK_OK);
    client->watchdog.manual = !fake->real_time;
    client->janitor.manual = !fake->real_time;
    return client;
}

/* -- the server: its lock is held
 * ------------------------------------------------------------------
 */

static struct fake_lock *find(struct fake *fake, const char *key)
{
    for (size_t i = 0;; i++) {
        assert(i < FAKE_KEYS_MAX);
        struct fake_lock *lock = &fake->locks[i];
        if (lock->key[0] == '\0')
            memcpy(lock->key, key, strlen(key) + 1);
        if (strcmp(lock->key, key) != 0)
            continue;
        if (lock->until_us <= fake_now_us(fake))
            lock->token[0] = '\0';
        return lock;
    }
}

static bool set_if_free(struct fake *fake, const char *key, const char *token, int64_t lease_ms)
{
    struct fake_lock *lock = find(fake, key);
    if (lock->token[0] != '\0')
        return false;
    memcpy(lock->token, token, strlen(token) + 1);
    lock->until_us = lease_ms ? fake_now_us(fake) + lease_ms * 1000 : INT64_MAX;
    lock->fence++;
    return true;
}

/* Executes late requests that are due. */
static void deliver_late(struct fake *fake)
{
    for (size_t i = 0; i < fake->n_late;) {
        struct fake_late *late = &fake->late[i];
        if (late->at_us > fake_now_us(fake)) {
            i++;
            continue;
        }
        set_if_free(fake, late->key, late->token, late->lease_ms);
        *late = fake->late[--fake->n_late];
    }
}

static struct fake_lock *enter(struct fake *fake, const char *key)
{
    pthread_mutex_lock(&fake->lock);
    deliver_late(fake);
    return find(fake, key);
}

void fake_take(struct fake *fake, const char *key, const char *token, int64_t lease_ms)
{
    struct fake_lock *lock = enter(fake, key);
    lock->token[0] = '\0';
    set_if_free(fake, key, token, lease_ms);
    pthread_mutex_unlock(&fake->lock);
}

void fake_free(struct fake *fake, const char *key)
{
    enter(fake, key)->token[0] = '\0';
    pthread_mutex_unlock(&fake->lock);
}

bool fake_held(struct fake *fake, const char *key, const char *token)
{
    const struct fake_lock *lock = enter(fake, key);
    bool held = token ? strcmp(lock->token, token) == 0 : lock->token[0] != '\0';
    pthread_mutex_unlock(&fake->lock);
    return held;
}

/* -- a command's way there and back --------------------------------------------------------------
 */

static enum fake_fault send_call(struct fake *fake, enum fake_call call)
{
    pthread_mutex_lock(&fake->lock);
    uint64_t n = fake->n_calls++;
    fake->calls[call]++;
    pthread_mutex_unlock(&fake->lock);
    enum fake_fault fault = fake->fault ? fake->fault(fake, call, n) : FAKE_NONE;
    if (fault != FAKE_AWAY && fake->latency_us > 1)
        fake_sleep_us(fake, fake->latency_us / 2);
    return fault;
}

static bool arrives(enum fake_fault fault)
{
    return fault == FAKE_NONE || fault == FAKE_REPLY_LOST || fault == FAKE_GARBAGE;
}

static lk_status answer(struct fake *fake, enum fake_fault fault, lk_status status)
{
    if (fault == FAKE_AWAY)
        return LK_UNAVAILABLE;
    if (fault == FAKE_GARBAGE)
        return LK_PROTOCOL;
    if (fault != FAKE_NONE) {
        fake_sleep_us(fake, fake->timeout_us - fake->latency_us / 2); /* half has passed already */
        return LK_UNKNOWN;
    }
    if (fake->latency_us > 1)
        fake_sleep_us(fake, fake->latency_us / 2);
    return status;
}

/* -- the provider --------------------------------------------------------------------------------
 */

static lk_status fake_try(void *self, lk_attempt *attempt)
{
    struct fake *fake = self;
    lk_hold *hold = attempt->hold;
    enum fake_fault fault = send_call(fake, FAKE_TRY);
    lk_status status = LK_BUSY;
    struct fake_lock *lock = enter(fake, hold->key);
    if (arrives(fault)) {
        if (set_if_free(fake, hold->key, hold->token, hold->lease_ms)) {
            status = LK_OK;
            hold->fence = lock->fence;
        } else if (fake->tell_expiry) {
            attempt->retry_us = lock->until_us;
        }
    } else if (fault == FAKE_REQUEST_LATE && fake->n_late < FAKE_LATE_MAX) {
        struct fake_late *late = &fake->late[fake->n_late++];
        late->at_us = fake_now_us(fake) + fake->timeout_us + fake->late_us;
        late->lease_ms = hold->lease_ms;
        memcpy(late->key, hold->key, sizeof late->key);
        memcpy(late->token, hold->token, sizeof late->token);
    }
    pthread_mutex_unlock(&fake->lock);
    return answer(fake, fault, status);
}

static lk_status fake_renew(void *self, lk_hold *hold, int64_t lease_ms)
{
    struct fake *fake = self;
    enum fake_fault fault = send_call(fake, FAKE_RENEW);
    struct fake_lock *lock = enter(fake, hold->key);
    lk_status status = strcmp(lock->token, hold->token) == 0 ? LK_OK : LK_LOST;
    fake->last_renew_us = fake_now_us(fake);
    if (arrives(fault) && status == LK_OK)
        lock->until_us = fake_now_us(fake) + lease_ms * 1000;
    pthread_mutex_unlock(&fake->lock);
    return answer(fake, fault, status);
}

static lk_status fake_release(void *self, lk_hold *hold)
{
    struct fake *fake = self;
    enum fake_fault fault = send_call(fake, FAKE_RELEASE);
    struct fake_lock *lock = enter(fake, hold->key);
    lk_status status = strcmp(lock->token, hold->token) == 0 ? LK_OK : LK_LOST;
    if (arrives(fault) && status == LK_OK)
        lock->token[0] = '\0';
    pthread_mutex_unlock(&fake->lock);
    return answer(fake, fault, status);
}

static void fake_try_each(void *self, lk_attempt *const *attempts, size_t n, lk_status *statuses)
{
    for (size_t i = 0; i < n; i++) {
        assert(attempts[i]->last);
        statuses[i] = fake_try(self, attempts[i]);
    }
}

static void fake_release_each(void *self, lk_hold *const *holds, size_t n, lk_status *statuses)
{
    for (size_t i = 0; i < n; i++)
        statuses[i] = fake_release(self, holds[i]);
}

/* Subscribes and returns; then blocks until the key is free, or to until_us. */
static lk_status fake_wait(void *self, lk_attempt *attempt, int64_t until_us)
{
    struct fake *fake = self;
    if (send_call(fake, FAKE_WAIT) != FAKE_NONE)
        return LK_UNAVAILABLE;
    if (!attempt->waiter) {
        attempt->waiter = fake;
        return LK_OK;
    }
    while (fake_now_us(fake) < until_us && fake_held(fake, attempt->hold->key, NULL))
        fake_sleep_us(fake, fake->look_us);
    return LK_OK;
}

static void fake_wait_end(void *self, lk_attempt *attempt)
{
    send_call(self, FAKE_WAIT_END);
    attempt->waiter = NULL;
}

/* -- sessions ------------------------------------------------------------------------------------
 */

static lk_status fake_session_try(void *self, lk_attempt *attempt)
{
    struct fake *fake = self;
    attempt->hold->lease_ms = fake->session_ms;
    attempt->hold->private_.slot = atomic_load(&fake->session);
    return fake_try(self, attempt);
}

static bool fake_session_alive(void *self, const lk_hold *hold)
{
    struct fake *fake = self;
    return hold->private_.slot == atomic_load(&fake->session);
}

void fake_end_session(struct fake *fake)
{
    atomic_fetch_add(&fake->session, 1);
    lk_session_ended(fake->context);
}

static lk_status fake_provider_open(const lk_context *context, void **ret_self, lk_error *error)
{
    (void)error;
    struct fake *fake = context->env->ctx;
    fake->context = context;
    *ret_self = fake;
    return LK_OK;
}

static void fake_provider_close(void *self)
{
    (void)self;
}

#define FAKE_CAPS                                                                                  \
    (LK_CAP_EXCLUSIVE | LK_CAP_DISTRIBUTED | LK_CAP_LEASE | LK_CAP_ATOMIC_LEASE | LK_CAP_OWNER |   \
     LK_CAP_RENEW | LK_CAP_FENCE | LK_CAP_SERVER_CLOCK)

const lk_provider fake_provider = {
    .info = {.name = "fake", .caps = FAKE_CAPS},
    .open = fake_provider_open,
    .close = fake_provider_close,
    .try_acquire = fake_try,
    .renew = fake_renew,
    .release = fake_release,
};

const lk_provider fake_each_provider = {
    .info = {.name = "fake-each", .caps = FAKE_CAPS},
    .open = fake_provider_open,
    .close = fake_provider_close,
    .try_acquire = fake_try,
    .try_each = fake_try_each,
    .renew = fake_renew,
    .release = fake_release,
    .release_each = fake_release_each,
};

const lk_provider fake_waiting_provider = {
    .info = {.name = "fake-waiting", .caps = FAKE_CAPS | LK_CAP_WAKES},
    .open = fake_provider_open,
    .close = fake_provider_close,
    .try_acquire = fake_try,
    .wait = fake_wait,
    .wait_end = fake_wait_end,
    .renew = fake_renew,
    .release = fake_release,
};

const lk_provider fake_session_provider = {
    .info = {.name = "fake-session",
             .caps = LK_CAP_EXCLUSIVE | LK_CAP_DISTRIBUTED | LK_CAP_OWNER | LK_CAP_FENCE |
                     LK_CAP_SESSION},
    .open = fake_provider_open,
    .close = fake_provider_close,
    .try_acquire = fake_session_try,
    .renew = fake_renew,
    .alive = fake_session_alive,
    .release = fake_release,
};

void fake_fixture_open(struct fake_fixture *f, const lk_provider *provider,
                       const lk_options *options)
{
    fake_init(&f->fake, 7);
    f->client = fake_open(&f->fake, provider, options);
}

void fake_run_watchdog(struct fake *fake, lk_client *client, int64_t until_us)
{
    for (;;) {
        int64_t due_us = watchdog_step(client);
        if (due_us > until_us)
            break;
        if (due_us > fake->now_us)
            fake->now_us = due_us;
    }
    fake->now_us = until_us;
}
