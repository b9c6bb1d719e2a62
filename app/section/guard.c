#include "guard.h"
#include "away_log.h"
#include "provider.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOCK_FILE_SUFFIX "-locks"

struct guards {
    const struct config *config;
    const struct seams *seams;
    char redis_node[CONFIG_TEXT_MAX]; /* the first of --redis */
    char lock_db[CONFIG_TEXT_MAX + sizeof LOCK_FILE_SUFFIX];
    pthread_mutex_t opening;
    size_t n;
    struct guard *chosen; /* the default */
    struct guard list[GUARDS_MAX];
};

static const lk_provider_info none_info = {
    .name = "none",
    .algorithm = "read, decide, write the new value; nothing keeps two requests apart",
    .guarantee = "none",
    .weakness = "loses updates and oversells as soon as two requests overlap",
    .source = "the lost update anomaly: Berenson et al., A Critique of ANSI SQL Isolation Levels, "
              "1995, P4",
};

/* No two changes of one value overlap, in any instance. */
enum { IN_STORE_CAPS = LK_CAP_EXCLUSIVE | LK_CAP_DISTRIBUTED };

static const struct {
    enum guard_kind kind;
    lk_provider_info info;
} in_store[] = {
    {GUARD_ROW,
     {.name = "sql-row",
      .caps = IN_STORE_CAPS,
      .algorithm = "SELECT ... FOR UPDATE, decide and write in one write transaction "
                   "(SQLite: BEGIN IMMEDIATE)",
      .guarantee = "exclusive between all clients of the database; freed with the transaction",
      .weakness = "the decision is made with the database's write lock held",
      .source = "https://www.postgresql.org/docs/15/explicit-locking.html#LOCKING-ROWS"}},
    {GUARD_ATOMIC,
     {.name = "sql-atomic",
      .caps = IN_STORE_CAPS,
      .algorithm = "UPDATE ... SET stock = stock - n WHERE stock >= n; the database decides",
      .guarantee = "no lost update, nothing below zero",
      .weakness = "only for decisions that one statement can make",
      .source = "https://www.sqlite.org/lang_update.html"}},
    {GUARD_VERSION,
     {.name = "sql-version",
      .caps = IN_STORE_CAPS,
      .algorithm = "read, decide, UPDATE ... WHERE version = the one read; else once more",
      .guarantee = "no lost update",
      .weakness = "under contention most attempts are wasted, and some give up",
      .source = "Kung, Robinson: On Optimistic Methods for Concurrency Control, 1981"}},
};

static struct guard *add(struct guards *guards, enum guard_kind kind, const lk_provider_info *info)
{
    assert(guards->n < GUARDS_MAX);
    struct guard *guard = &guards->list[guards->n++];
    guard->kind = kind;
    guard->info = info;
    guard->guards = guards;
    guard->wait_us.scale = &metric_seconds;
    guard->hold_us.scale = &metric_seconds;
    return guard;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* PostgreSQL keeps the locks beside the tables of the store. A SQLite store has its file for
 * itself. */
static void choose_lock_db(const struct config *config, char *ret, size_t size)
{
    bool file = begins(config->db, "sqlite:");
    if (config->lock_db[0])
        snprintf(ret, size, "%s", config->lock_db);
    else
        snprintf(ret, size, "%s%s", config->db, file ? LOCK_FILE_SUFFIX : "");
}

/* redlock uses all of --redis. Guards on one Redis use its first URL. */
static const char *endpoints_of(const struct guards *guards, const lk_provider_info *info)
{
    const struct config *config = guards->config;
    if (begins(info->name, "redis-"))
        return guards->redis_node;
    if (strcmp(info->name, "redlock") == 0)
        return config->redis;
    if (begins(info->name, "sql-") || begins(info->name, "pg-"))
        return guards->lock_db;
    if (begins(info->name, "zk-"))
        return config->zookeeper;
    if (strcmp(info->name, "memcached") == 0)
        return config->memcached;
    return NULL;
}

static bool is_in_store(const char *name)
{
    for (size_t i = 0; i < sizeof in_store / sizeof in_store[0]; i++)
        if (strcmp(in_store[i].info.name, name) == 0)
            return true;
    return false;
}

bool guard_is_known(const char *name)
{
    if (strcmp(name, none_info.name) == 0 || is_in_store(name) || lk_provider_find(name))
        return true;
    fprintf(stderr, "seckilld: unknown guard \"%s\"; known are: %s", name, none_info.name);
    const lk_provider_info *info;
    for (size_t i = 0; (info = lk_provider_at(i)) != NULL; i++)
        fprintf(stderr, " %s", info->name);
    for (size_t i = 0; i < sizeof in_store / sizeof in_store[0]; i++)
        fprintf(stderr, " %s", in_store[i].info.name);
    fprintf(stderr, "\n");
    return false;
}

int guards_open(const struct config *config, const struct seams *seams, struct guards **ret)
{
    if (!guard_is_known(config->guard))
        return -1;

    struct guards *guards = calloc(1, sizeof *guards);
    if (!guards) {
        fprintf(stderr, "seckilld: no memory for the guards\n");
        return -1;
    }
    guards->config = config;
    guards->seams = seams;
    memcpy(guards->redis_node, config->redis, lk_redis_url_span(config->redis));
    choose_lock_db(config, guards->lock_db, sizeof guards->lock_db);
    pthread_mutex_init(&guards->opening, NULL);
    add(guards, GUARD_NONE, &none_info);
    const lk_provider_info *info;
    for (size_t i = 0; (info = lk_provider_at(i)) != NULL; i++)
        add(guards, GUARD_LOCK, info)->endpoints = endpoints_of(guards, info);
    for (size_t i = 0; i < sizeof in_store / sizeof in_store[0]; i++)
        add(guards, in_store[i].kind, &in_store[i].info);

    lk_error error;
    guards->chosen = guard_find(guards, config->guard);
    if (guards->chosen->kind == GUARD_LOCK && !guard_client(guards->chosen, &error)) {
        fprintf(stderr, "seckilld: guard %s: %s\n", config->guard, error.message);
        guards_close(guards);
        return -1;
    }
    *ret = guards;
    return 0;
}

void guards_close(struct guards *guards)
{
    if (!guards)
        return;
    bool abandoned = false;
    for (size_t i = 0; i < guards->n; i++) {
        struct guard *guard = &guards->list[i];
        abandoned = abandoned || atomic_load(&guard->abandoned);
        if (!atomic_load(&guard->abandoned))
            lk_close(guard->client);
    }
    if (abandoned) /* an open client still reports lost locks to its guard */
        return;
    pthread_mutex_destroy(&guards->opening);
    free(guards);
}

struct guard *guard_find(struct guards *guards, const char *name)
{
    if (name[0] == '\0')
        return guards->chosen;
    for (size_t i = 0; i < guards->n; i++) {
        if (strcmp(guards->list[i].info->name, name) == 0)
            return &guards->list[i];
    }
    return NULL;
}

struct guard *guard_default(struct guards *guards)
{
    return guards->chosen;
}

struct guard *guard_at(struct guards *guards, size_t i)
{
    return i < guards->n ? &guards->list[i] : NULL;
}

const struct seams *guard_seams(const struct guard *guard)
{
    return guard->guards->seams;
}

static lk_status open_client(const struct guard *guard, const lk_options *options, lk_client **ret,
                             lk_error *error)
{
    for (const lk_provider *const *own = guard_seams(guard)->providers; *own; own++) {
        if (strcmp((*own)->info.name, guard->info->name) == 0)
            return lk_open_provider(*own, guard->endpoints, options, ret, error);
    }
    return lk_open(guard->info->name, guard->endpoints, options, ret, error);
}

lk_client *guard_client(struct guard *guard, lk_error *error)
{
    assert(guard->kind == GUARD_LOCK);
    lk_client *client = atomic_load(&guard->client);
    if (client)
        return client;
    const struct config *config = guard->guards->config;
    const lk_options options = {
        .lease_ms = config->lease_ms,
        .watchdog_off = !config->watchdog,
        .max_hold_ms = config->max_hold_ms,
        .command_timeout_ms = GUARD_COMMAND_TIMEOUT_MS,
        .spin_us = -1, /* the processor has other requests to serve */
        .replicas = begins(guard->info->name, "redis-") ? (int32_t)config->redis_replicas : 0,
        .local_queue = config->lock_queue && !guard_seams(guard)->one_by_one,
        .on_pending = away_log_pending,
        .on_pending_arg = (void *)(uintptr_t)guard->info->name,
        .env = guard_seams(guard)->env,
    };
    pthread_mutex_lock(&guard->guards->opening);
    client = atomic_load(&guard->client);
    if (!client && open_client(guard, &options, &client, error) == LK_OK)
        atomic_store(&guard->client, client);
    pthread_mutex_unlock(&guard->guards->opening);
    return client;
}

bool guard_is_quick_with_many(const struct guard *guard)
{
    const lk_client *client = atomic_load(&guard->client);
    return guard->kind == GUARD_LOCK ? client && lk_tries_at_once(client)
                                     : guard->kind != GUARD_NONE;
}

struct guard_lease guard_lease(const struct guard *guard)
{
    const struct config *config = guard->guards->config;
    struct guard_lease lease = {.lease_ms = 0};
    if (guard_seams(guard)->lease)
        lease = guard_seams(guard)->lease();
    if (lease.lease_ms == 0 && !config->watchdog)
        lease.lease_ms = config->lease_ms;
    return lease;
}

bool guard_reads_in_transaction(const struct guard *guard)
{
    return guard->kind == GUARD_ROW || guard->kind == GUARD_ATOMIC;
}

bool guard_claims_safe(const struct guard *guard)
{
    return guard_claims_safe_in_one_process(guard) && (guard->info->caps & LK_CAP_DISTRIBUTED);
}

bool guard_claims_safe_in_one_process(const struct guard *guard)
{
    return (guard->info->caps & LK_CAP_EXCLUSIVE) != 0;
}
