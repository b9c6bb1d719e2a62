/* A cluster gets a new address again and again while threads use it: more addresses than a client
 * can store. */
#include "redis_command.h"
#include "sandbox_process.h"
#include "sandbox_proxy.h"
#include "process.h"
#include "redis.h"
#include "tests.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum {
    THREADS = 4,
    ROLLOUTS = LK_REDIS_NODES_MAX + 40,
    PATIENCE_MS = 20000,
    TIMEOUT_MS = 1000,
    HELD_MS = 60000 /* the longest there is */
};

static struct sandbox *sandbox;
static struct sandbox_server *node;
static char url[64];

/* One master with all slots. */
static int open_node(void **state)
{
    (void)state;
    char bus[8];
    if (sandbox_open(&sandbox) != 0)
        return -1;
    for (int attempt = 0; node == NULL && attempt < SANDBOX_PORT_TRIES_MAX; attempt++) {
        snprintf(bus, sizeof bus, "%d", sandbox_free_port());
        const char *const extra[] = {"--cluster-enabled", "yes", "--cluster-port", bus, NULL};
        node = sandbox_redis(sandbox, extra);
    }
    snprintf(url, sizeof url, "redis+cluster://127.0.0.1:%d", node != NULL ? node->port : 0);
    return node != NULL && redis_do(node, "CLUSTER ADDSLOTSRANGE 0 16383") == 1 ? 0 : -1;
}

static int close_node(void **state)
{
    (void)state;
    sandbox_close(sandbox);
    return 0;
}

struct user {
    pthread_t thread;
    lk_client *client;
    char key[16];
    _Atomic int64_t served;
    int64_t wanted; /* value of served to wait for */
    atomic_bool stop;
};

static void *use(void *arg)
{
    struct user *user = arg;
    while (!atomic_load(&user->stop)) {
        lk_hold hold;
        if (lk_try_acquire(user->client, user->key, &hold) == LK_OK && lk_release(&hold) == LK_OK)
            atomic_fetch_add(&user->served, 1);
    }
    return NULL;
}

static bool is_served(void *arg)
{
    struct user *user = arg;
    return atomic_load(&user->served) >= user->wanted;
}

/* True: each thread is served through the new address. */
static bool roll_out(struct user *users, struct proxy **proxy)
{
    struct proxy *old = *proxy;
    *proxy = proxy_open(node->port);
    if (*proxy == NULL ||
        redis_do(node, "CONFIG SET cluster-announce-port %d", proxy_port(*proxy)) != 1)
        return false;
    if (old != NULL)
        proxy_close(old);
    for (int i = 0; i < THREADS; i++) {
        users[i].wanted = atomic_load(&users[i].served) + 2; /* one call may use the old address */
        if (!wait_until(is_served, &users[i], PATIENCE_MS))
            return false;
    }
    return true;
}

GROUP_FIXTURE(open_node, close_node);

TEST_THAT(locks_survive_more_addresses_than_there_is_room_for)
{
    static struct user users[THREADS];
    struct proxy *proxy = NULL;
    lk_client *client;
    int rollouts = 0;
    const lk_options options = {.command_timeout_ms = TIMEOUT_MS};
    assert_int_equal(lk_open("redis-token", url, &options, &client, NULL), LK_OK);
    for (int i = 0; i < THREADS; i++) {
        users[i].client = client;
        snprintf(users[i].key, sizeof users[i].key, "lock:item:%d", i);
        assert_int_equal(pthread_create(&users[i].thread, NULL, use, &users[i]), 0);
    }
    while (rollouts < ROLLOUTS && roll_out(users, &proxy))
        rollouts++;
    char why[LK_MESSAGE_MAX];
    lk_last_error(client, why, sizeof why);
    for (int i = 0; i < THREADS; i++)
        atomic_store(&users[i].stop, true);
    for (int i = 0; i < THREADS; i++)
        pthread_join(users[i].thread, NULL);
    if (rollouts < ROLLOUTS)
        fail_msg("dead after %d rollouts: %s", rollouts, why);
    assert_int_equal(lk_ping(client), LK_OK);
    lk_close(client);
    proxy_close(proxy);
}

/* -- an entry that is in use ----------------------------------------------------------------------
 */

static bool is_held(void *proxy)
{
    return proxy_held(proxy) == 1;
}

static bool answers(void *client)
{
    return lk_ping(client) == LK_OK;
}

/* The cluster announces this port, and the client has found it. */
static void announce(lk_client *client, int port)
{
    assert_int_equal(redis_do(node, "CONFIG SET cluster-announce-port %d", port), 1);
    assert_true(wait_until(answers, client, PATIENCE_MS));
}

/* The cluster moves to a new address. The last one is closed. */
static void move_on(lk_client *client, struct proxy **proxy)
{
    struct proxy *old = *proxy;
    *proxy = proxy_open(node->port);
    assert_non_null(*proxy);
    announce(client, proxy_port(*proxy));
    if (old != NULL)
        proxy_close(old);
}

/* A command is in flight to an address while entries are reused for new ones. Its entry would be
 * the next. The entries are filled before, so that the command's answer comes long before its
 * timeout. */
TEST_THAT(entry_that_a_call_uses_is_not_reused)
{
    enum { CALLS = 5, REUSED = 8 };
    const lk_options options = {.command_timeout_ms = HELD_MS};
    struct proxy *first = proxy_open(node->port), *proxy = NULL;
    lk_client *client;
    assert_non_null(first);
    assert_int_equal(redis_do(node, "CONFIG SET cluster-announce-port %d", proxy_port(first)), 1);
    assert_int_equal(lk_open("redis-token", url, &options, &client, NULL), LK_OK);
    assert_true(wait_until(answers, client, PATIENCE_MS));
    for (int i = 1; i < LK_REDIS_NODES_MAX; i++)
        move_on(client, &proxy);
    for (int call = 0; call < CALLS; call++) {
        static struct user users[CALLS];
        struct user *user = &users[call];
        announce(client, proxy_port(first));
        user->client = client;
        snprintf(user->key, sizeof user->key, "lock:held:%d", call);
        proxy_hold(first, user->key, 1);
        assert_int_equal(pthread_create(&user->thread, NULL, use, user), 0);
        assert_true(wait_until(is_held, first, PATIENCE_MS));
        atomic_store(&user->stop, true);
        for (int i = 0; i < REUSED; i++)
            move_on(client, &proxy);
        proxy_let_go(first);
        pthread_join(user->thread, NULL);
        assert_int_equal(user->served, 1);
    }
    lk_close(client);
    proxy_close(proxy);
    proxy_close(first);
}
