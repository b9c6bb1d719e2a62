/* Opening and closing a client, its options, and questions that are not about one lock. */
#include "client.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LEASE_MS_DEFAULT = 30000,
    RETRY_MIN_MS_DEFAULT = 1,
    RETRY_MAX_MS_DEFAULT = 16,
    RETRY_MS_MAX = 60000,
    COMMAND_TIMEOUT_MS_DEFAULT = 1000,
    COMMAND_TIMEOUT_MS_MAX = 60000,
    REPLICAS_MAX = 100,
    REPLICAS_MS_DEFAULT = 100,
    REPLICAS_MS_MAX = 60000,
    SPIN_US_DEFAULT = 50,
    LOCAL_HANDOVERS_MAX = 1000000000
};

/* 0 means the default; anything else must lie in the range. */
static lk_status settle(int64_t *value, int64_t fallback, int64_t min, int64_t max,
                        const char *name, lk_error *error)
{
    if (*value == 0)
        *value = fallback;
    if (*value >= min && *value <= max)
        return LK_OK;
    return lk_fail(error, LK_INVALID, "option %s is %lld, must be %lld to %lld", name,
                   (long long)*value, (long long)min, (long long)max);
}

static lk_status settle_replicas(const lk_provider *provider, lk_options *o, lk_error *error)
{
    if (o->replicas < 0 || o->replicas > REPLICAS_MAX)
        return lk_fail(error, LK_INVALID, "option replicas is %d, must be 0 to %d", o->replicas,
                       REPLICAS_MAX);
    if (o->replicas > 0 && !provider->replicates)
        return lk_fail(error, LK_INVALID, "option replicas: guard %s has no replicas to wait for",
                       provider->info.name);
    return settle(&o->replicas_ms, REPLICAS_MS_DEFAULT, 1, REPLICAS_MS_MAX, "replicas_ms", error);
}

static lk_status check_local(const lk_options *o, lk_error *error)
{
    if (o->local_handovers < 0 || o->local_handovers > LOCAL_HANDOVERS_MAX)
        return lk_fail(error, LK_INVALID, "option local_handovers is %d, must be 0 to %d",
                       o->local_handovers, LOCAL_HANDOVERS_MAX);
    if (o->local_handovers > 0 && !o->local_queue)
        return lk_fail(error, LK_INVALID, "option local_handovers needs local_queue");
    return LK_OK;
}

static lk_status settle_options(const lk_provider *provider, lk_options *o, lk_error *error)
{
    if (settle(&o->lease_ms, LEASE_MS_DEFAULT, LK_LEASE_MS_MIN, LK_LEASE_MS_MAX, "lease_ms",
               error) != LK_OK ||
        settle(&o->max_hold_ms, 0, 0, INT64_MAX / 1000000, "max_hold_ms", error) != LK_OK ||
        settle(&o->retry_min_ms, RETRY_MIN_MS_DEFAULT, 1, RETRY_MS_MAX, "retry_min_ms", error) !=
            LK_OK)
        return LK_INVALID;
    int64_t retry_max_ms =
        o->retry_min_ms > RETRY_MAX_MS_DEFAULT ? o->retry_min_ms : RETRY_MAX_MS_DEFAULT;
    if (settle(&o->retry_max_ms, retry_max_ms, o->retry_min_ms, RETRY_MS_MAX, "retry_max_ms",
               error) != LK_OK ||
        settle(&o->command_timeout_ms, COMMAND_TIMEOUT_MS_DEFAULT, 1, COMMAND_TIMEOUT_MS_MAX,
               "command_timeout_ms", error) != LK_OK ||
        settle(&o->spin_us, SPIN_US_DEFAULT, -1, LK_SPIN_US_MAX, "spin_us", error) != LK_OK ||
        settle_replicas(provider, o, error) != LK_OK || check_local(o, error) != LK_OK)
        return LK_INVALID;
    if (!o->env)
        o->env = lk_env_system();
    if (!o->env->now_us || !o->env->wall_us || !o->env->sleep_us || !o->env->random ||
        !o->env->point)
        return lk_fail(error, LK_INVALID, "option env lacks a function: all five are required");
    return LK_OK;
}

static void name_client(char *id, const lk_env *env)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t bits = 0;
    for (int i = 0; i < 32; i++, bits >>= 4) {
        if (i % 16 == 0)
            bits = env->random(env->ctx);
        id[i] = digits[bits & 15];
    }
    id[32] = '\0';
}

static void free_client(lk_client *client)
{
    watchdog_close(&client->watchdog);
    local_queue_close(client->queue);
    janitor_free(&client->janitor);
    pthread_mutex_destroy(&client->note_lock);
    free(client->endpoints);
    free(client);
}

lk_status lk_open_provider(const lk_provider *provider, const char *endpoints,
                           const lk_options *options, lk_client **ret, lk_error *error)
{
    lk_options settled = options ? *options : (lk_options){0};
    lk_status status = settle_options(provider, &settled, error);
    if (status != LK_OK)
        return status;
    bool queues = settled.local_queue && local_queue_suits(&provider->info);
    lk_client *client = calloc(1, sizeof *client);
    char *copy = endpoints ? strdup(endpoints) : NULL;
    struct local_queue *queue = queues ? local_queue_open(settled.spin_us) : NULL;
    if (!client || (endpoints && !copy) || (queues && !queue)) {
        local_queue_close(queue);
        free(copy);
        free(client);
        return lk_fail(error, LK_NO_MEMORY, "no memory for a client of %s", provider->info.name);
    }
    pthread_mutex_init(&client->note_lock, NULL);
    watchdog_open(&client->watchdog);
    janitor_open(&client->janitor);
    client->provider = provider;
    client->endpoints = copy;
    client->queue = queue;
    client->options = settled;
    client->env = *settled.env;
    client->context = (lk_context){.client = client,
                                   .env = settled.env,
                                   .options = &client->options,
                                   .endpoints = copy,
                                   .commands = &client->stats.commands};
    name_client(client->context.client_id, settled.env);
    status = provider->open(&client->context, &client->self, error);
    if (status == LK_OK)
        *ret = client;
    else
        free_client(client);
    return status;
}

void lk_close(lk_client *client)
{
    if (!client)
        return;
    assert(atomic_load(&client->n_holds) == 0); /* release first, and make no call */
    janitor_close(client);
    client->provider->close(client->self); /* may call lk_session_ended() until it returns */
    free_client(client);
}

lk_status lk_raise_fence(lk_client *client, const char *key, uint64_t seen)
{
    if (!lk_key_valid(key))
        return LK_INVALID;
    if (!(client->provider->info.caps & LK_CAP_FENCE) || !client->provider->raise_fence)
        return LK_UNSUPPORTED;
    return client->provider->raise_fence(client->self, key, seen);
}

lk_status lk_ping(lk_client *client)
{
    return client->provider->ping ? client->provider->ping(client->self) : LK_OK;
}

lk_status lk_note(const lk_context *context, lk_status status, const char *format, ...)
{
    lk_client *client = context->client;
    va_list args;
    va_start(args, format);
    pthread_mutex_lock(&client->note_lock);
    vsnprintf(client->note, sizeof client->note, format, args);
    pthread_mutex_unlock(&client->note_lock);
    va_end(args);
    return status;
}

void lk_last_error(lk_client *client, char *ret, size_t size)
{
    ret[0] = '\0';
    if (client->provider->last_error) {
        client->provider->last_error(client->self, ret, size);
        return;
    }
    pthread_mutex_lock(&client->note_lock);
    snprintf(ret, size, "%s", client->note);
    pthread_mutex_unlock(&client->note_lock);
}

const lk_provider_info *lk_client_provider(const lk_client *client)
{
    return &client->provider->info;
}

void lk_client_stats(const lk_client *client, lk_stats *ret)
{
#define COPY_STAT(name) ret->name = atomic_load_explicit(&client->stats.name, memory_order_relaxed);
    CLIENT_STAT_MAP(COPY_STAT)
#undef COPY_STAT
}
