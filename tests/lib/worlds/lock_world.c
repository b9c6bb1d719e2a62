#include "lock_world.h"
#include "process.h"
#include "tests.h"

#include <signal.h>
#include <stdio.h>

enum { WARM_MS = 30000, WARM_WITHIN_MS = 60000 };

const struct lock_family *const lock_families[] = {
    &family_redis,   &family_sentinel,  &family_cluster,
    &family_redlock, &family_memcached, &family_zookeeper,
    &family_sqlite,  &family_postgres,  NULL,
};

struct sandbox *world_sandbox;
const struct lock_family *world = &family_redis;

int world_open(void **state)
{
    (void)state;
    if (sandbox_open(&world_sandbox) != 0)
        return -1;
    return world->start(world_sandbox) ? 0 : -1;
}

int world_close(void **state)
{
    (void)state;
    sandbox_close(world_sandbox);
    return 0;
}

int world_empty(void **state)
{
    (void)state;
    world->wipe();
    return 0;
}

lk_client *world_client_at(const char *guard, int proxy_port, const lk_options *options)
{
    char endpoints[WORLD_ENDPOINTS_MAX];
    lk_client *client;
    lk_error error;
    world->endpoints(endpoints, sizeof endpoints, proxy_port);
    if (lk_open(guard, endpoints, options, &client, &error) == LK_OK)
        return client;
    fprintf(stderr, "cannot open %s at %s: %s\n", guard, endpoints, error.message);
    return NULL;
}

const lk_options world_patient = {.command_timeout_ms = WORLD_COMMAND_MS};

lk_client *world_client(const char *guard, const lk_options *options)
{
    return world_client_at(guard, 0, options);
}

lk_status world_acquire(lk_client *client, const char *key, int64_t lease_ms, int64_t wait_ms,
                        lk_hold *hold)
{
    lk_request request = {.key = key, .lease_ms = lease_ms, .wait_ms = wait_ms};
    return lk_acquire(client, &request, hold);
}

lk_client *world_warm(lk_client *client)
{
    lk_hold hold;
    assert_non_null(client);
    /* On a busy machine connecting may take longer than the client's timeout. */
    int64_t until_ms = test_now_ms() + WARM_WITHIN_MS;
    lk_status status;
    do
        status = world_acquire(client, "lock:warm", WARM_MS, WARM_MS, &hold);
    while (status != LK_OK && test_now_ms() < until_ms);
    assert_int_equal(status, LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    return client;
}

lk_stats world_stats(const lk_client *client)
{
    lk_stats stats;
    lk_client_stats(client, &stats);
    return stats;
}

bool world_is_free(void *key)
{
    return !world->exists(key);
}

bool world_frees(const char *key, int64_t wait_ms)
{
    return wait_until(world_is_free, (void *)key, wait_ms);
}

/* A postmaster's children work for it and outlive it by some milliseconds. The server is stopped
 * while its children are listed, so that none is missed. */
static void signal_all(int signal)
{
    struct sandbox_server *server;
    for (size_t i = 0; (server = world->server(i)) != NULL; i++) {
        if (signal != SIGCONT)
            assert_int_equal(sandbox_signal(server, SIGSTOP), 0);
        process_signal_children(server->pid, signal);
        assert_int_not_equal(sandbox_signal(server, signal), -1);
    }
}

void world_freeze(bool on)
{
    signal_all(on ? SIGSTOP : SIGCONT);
}

void world_kill(void)
{
    signal_all(SIGKILL);
}

void world_restart(void)
{
    struct sandbox_server *server;
    for (size_t i = 0; (server = world->server(i)) != NULL; i++)
        assert_int_equal(sandbox_restart(server), 0);
}
