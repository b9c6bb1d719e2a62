/* The connections of the advisory locks: number, lifetime, endpoints. */
#include "lock_hooks.h"
#include "lock_world.h"
#include "process.h"
#include "sandbox_proxy.h"
#include "tests.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "lock:item:1"

enum { LONG_MS = 20000, GRACE_MS = 3000, COMMAND_MS = 500, IDLE_MS = 5000 };

/* Closed connections end on the server a little later. */
static bool connections_are(void *wanted)
{
    return world_sql(
               "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'lockkit %'",
               NULL) == *(int64_t *)wanted;
}

static void expect_connections(int64_t n, int64_t wait_ms)
{
    assert_true(wait_until(connections_are, &n, wait_ms));
}

GROUP_FIXTURE(world_open, world_close);

TEST_THAT(connections_are_bounded_and_waited_for)
{
    char url[WORLD_ENDPOINTS_MAX];
    lk_client *client;
    lk_hold holds[3];
    snprintf(url, sizeof url, "%s?pool=2", world_postgres->url);
    lk_options options = {.command_timeout_ms = COMMAND_MS};
    assert_int_equal(lk_open("pg-advisory", url, &options, &client, NULL), LK_OK);
    assert_int_equal(world_acquire(client, "lock:item:1", 0, 0, &holds[0]), LK_OK);
    assert_int_equal(world_acquire(client, "lock:item:2", 0, 0, &holds[1]), LK_OK);
    int64_t start_ms = test_now_ms();
    assert_int_equal(world_acquire(client, "lock:item:3", 0, COMMAND_MS, &holds[2]), LK_TIMEOUT);
    assert_in_range(test_now_ms() - start_ms, COMMAND_MS, 2 * COMMAND_MS + GRACE_MS);
    expect_connections(2, GRACE_MS);
    struct asker asker = {.client = client, .key = "lock:item:3", .wait_ms = LONG_MS};
    asker_start(&asker);
    assert_int_equal(lk_release(&holds[0]), LK_OK);
    assert_int_equal(asker_join(&asker), LK_OK);
    holds[2] = asker.hold;
    expect_connections(2, GRACE_MS);
    assert_int_equal(lk_release(&holds[1]), LK_OK);
    assert_int_equal(lk_release(&holds[2]), LK_OK);
    lk_close(client);
}

struct passer {
    pthread_t thread;
    lk_client *client;
    lk_status status;
};

static void *pass(void *arg)
{
    struct passer *passer = arg;
    lk_hold hold;
    passer->status = world_acquire(passer->client, KEY, 0, LONG_MS, &hold);
    if (passer->status == LK_OK)
        passer->status = lk_release(&hold);
    return NULL;
}

/* Other programs use all but a few of the server's connections. */
TEST_THAT(server_without_a_free_connection_serves_those_it_has)
{
    enum { CONTENDERS = 6, ROUNDS = 5, LEFT = 3 };
    static const char *const tight[] = {"-c", "max_connections=10", "-c",
                                        "superuser_reserved_connections=0", NULL};
    PGconn *others[10 - LEFT];
    struct sandbox_server *postgres = sandbox_postgres(world_sandbox, tight);
    assert_non_null(postgres);
    lk_client *client;
    assert_int_equal(lk_open("pg-advisory", postgres->url, NULL, &client, NULL), LK_OK);
    for (int i = 0; i < 10 - LEFT; i++) {
        others[i] = PQconnectdb(postgres->url);
        assert_int_equal(PQstatus(others[i]), CONNECTION_OK);
    }
    for (int round = 0; round < ROUNDS; round++) {
        struct passer passers[CONTENDERS];
        for (int i = 0; i < CONTENDERS; i++) {
            passers[i].client = client;
            assert_int_equal(pthread_create(&passers[i].thread, NULL, pass, &passers[i]), 0);
        }
        for (int i = 0; i < CONTENDERS; i++) {
            pthread_join(passers[i].thread, NULL);
            assert_int_equal(passers[i].status, LK_OK);
        }
    }
    for (int i = 0; i < 10 - LEFT; i++)
        PQfinish(others[i]);
    lk_close(client);
    sandbox_signal(postgres, SIGTERM);
}

/* The key is free and connections are available, so waiting would not help. */
TEST_THAT(refused_login_is_not_a_lock_held_by_another)
{
    char url[WORLD_ENDPOINTS_MAX];
    lk_client *client;
    lk_hold hold, other;
    char role[160];
    snprintf(role, sizeof role, "CREATE ROLE app LOGIN SUPERUSER PASSWORD '%s'",
             getenv("PGPASSWORD"));
    assert_int_equal(world_sql(role, NULL), 0);
    snprintf(url, sizeof url, "postgres://app@127.0.0.1:%d/postgres", world_postgres->port);
    assert_int_equal(lk_open("pg-advisory", url, NULL, &client, NULL), LK_OK);
    assert_int_equal(world_acquire(client, "lock:item:1", 0, 0, &hold), LK_OK);
    assert_int_equal(world_sql("ALTER ROLE app NOLOGIN", NULL), 0);
    assert_int_equal(world_acquire(client, "lock:item:2", 0, GRACE_MS, &other), LK_UNAVAILABLE);
    assert_int_equal(lk_confirm(&hold), LK_OK);
    assert_int_equal(world_sql("ALTER ROLE app LOGIN", NULL), 0);
    assert_int_equal(world_acquire(client, "lock:item:2", 0, 0, &other), LK_OK);
    assert_int_equal(lk_release(&other), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(client);
}

/* An idle client closes its spare connections, but keeps that of a lock. */
TEST_THAT(idle_connection_is_given_up_and_a_hold_is_not)
{
    lk_hold hold, other;
    lk_client *client = world_client("pg-advisory", NULL);
    assert_int_equal(world_acquire(client, "lock:item:1", 0, 0, &hold), LK_OK);
    assert_int_equal(world_acquire(client, "lock:item:2", 0, 0, &other), LK_OK);
    assert_int_equal(lk_release(&other), LK_OK);
    expect_connections(2, GRACE_MS);
    expect_connections(1, 4 * IDLE_MS);
    assert_int_equal(lk_check(&hold, NULL), LK_OK);
    assert_int_equal(lk_confirm(&hold), LK_OK);
    assert_int_equal(world_acquire(client, "lock:item:2", 0, 0, &other), LK_OK);
    assert_int_equal(lk_release(&other), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(client);
}

static void *raise_fence(void *arg)
{
    struct passer *passer = arg;
    passer->status = lk_raise_fence(passer->client, KEY, 2);
    return NULL;
}

static bool somebody_waits_for_a_row(void *arg)
{
    (void)arg;
    return world_sql("SELECT count(*) FROM pg_stat_activity"
                     " WHERE application_name LIKE 'lockkit %' AND wait_event_type = 'Lock'",
                     NULL) > 0;
}

/* A waiter timed out quickly; the next statement on its connection may still wait longer. */
TEST_THAT(waiters_patience_does_not_stay_with_its_connection)
{
    static const char *const levels[] = {"pg-advisory", "pg-advisory-xact"};
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        lk_hold held, refused;
        lk_options options = {.command_timeout_ms = LONG_MS};
        lk_client *holder = world_client(levels[i], NULL);
        struct passer raiser = {.client = world_client(levels[i], &options)};
        assert_int_equal(lk_raise_fence(holder, KEY, 1), LK_OK); /* creates its row */
        assert_int_equal(lk_ping(raiser.client), LK_OK);         /* is connected */
        assert_int_equal(world_acquire(holder, KEY, 0, 0, &held), LK_OK);
        assert_int_equal(world_acquire(raiser.client, KEY, 0, 10, &refused), LK_TIMEOUT);
        assert_int_equal(lk_release(&held), LK_OK);

        PGconn *other = PQconnectdb(world_postgres->url);
        PQclear(PQexec(other, "BEGIN"));
        PQclear(PQexec(other, "SELECT 1 FROM lockkit.locks WHERE key = '" KEY "' FOR UPDATE"));
        assert_int_equal(PQtransactionStatus(other), PQTRANS_INTRANS);
        assert_int_equal(pthread_create(&raiser.thread, NULL, raise_fence, &raiser), 0);
        bool waited = wait_until(somebody_waits_for_a_row, NULL, LONG_MS / 2);
        PQfinish(other);
        pthread_join(raiser.thread, NULL);
        assert_true(waited);
        assert_int_equal(raiser.status, LK_OK);
        lk_close(raiser.client);
        lk_close(holder);
    }
}

/* A client for which the four round trips, until the server has let it in, take longer than a
 * command may. It has begun to connect. */
static lk_client *slow_client(struct proxy *proxy, const char *guard, const char *database)
{
    char url[WORLD_ENDPOINTS_MAX];
    const lk_options options = {.command_timeout_ms = COMMAND_MS};
    lk_client *client;
    lk_hold hold;
    proxy_delay(proxy, COMMAND_MS / 5);
    snprintf(url, sizeof url, "postgres://postgres@127.0.0.1:%d/%s", proxy_port(proxy), database);
    assert_int_equal(lk_open(guard, url, &options, &client, NULL), LK_OK);
    assert_int_equal(world_acquire(client, KEY, 0, 0, &hold), LK_UNAVAILABLE);
    return client;
}

static void expect_served_and_close(lk_client *client)
{
    lk_hold hold;
    lk_status status = LK_UNAVAILABLE;
    int64_t until_ms = test_now_ms() + LONG_MS;
    while (status != LK_OK && test_now_ms() < until_ms)
        status = world_acquire(client, KEY, 0, 0, &hold);
    assert_int_equal(status, LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(client);
}

TEST_THAT(connection_that_a_busy_server_makes_slowly_is_made_by_several_callers)
{
    static const char *const guards[] = {"pg-advisory", "pg-advisory-xact", "sql-unique"};
    struct proxy *proxy = proxy_open(world_postgres->port);
    assert_non_null(proxy);
    for (size_t i = 0; i < sizeof guards / sizeof guards[0]; i++)
        expect_served_and_close(slow_client(proxy, guards[i], "postgres"));
    assert_int_equal(world_sql("CREATE DATABASE without_tables", NULL), 0);
    expect_served_and_close(slow_client(proxy, "sql-unique", "without_tables"));
    proxy_close(proxy);
}

/* The server's end of a half-made connection is gone: the next caller makes a new one. */
TEST_THAT(connection_that_is_cut_before_it_is_made_is_made_anew)
{
    struct proxy *proxy = proxy_open(world_postgres->port);
    assert_non_null(proxy);
    lk_client *client = slow_client(proxy, "pg-advisory", "postgres");
    proxy_cut(proxy);
    proxy_delay(proxy, 0);
    expect_served_and_close(client);
    proxy_close(proxy);
}

TEST_THAT(connection_that_is_half_made_ends_with_its_client)
{
    const int before = process_count_fds();
    struct proxy *proxy = proxy_open(world_postgres->port);
    assert_non_null(proxy);
    lk_close(slow_client(proxy, "pg-advisory", "postgres"));
    proxy_close(proxy);
    assert_int_equal(process_count_fds(), before);
}

TEST_THAT(endpoints_are_refused_without_their_password)
{
    static const char *const wrong[] = {"postgres://u:secret@h/d?pool=0",
                                        "postgres://u:secret@h/d?pool=x",
                                        "postgres://u:secret@h/d?pool=5000",
                                        "postgres://u:secret@h/d?nonsense=1",
                                        "postgres://u:secret@[::1/d",
                                        "sqlite:secret.db",
                                        "redis://:secret@h",
                                        "postgres:secret",
                                        NULL};
    for (size_t i = 0; wrong[i] != NULL; i++) {
        lk_client *client;
        lk_error error;
        assert_int_equal(lk_open("pg-advisory", wrong[i], NULL, &client, &error), LK_INVALID);
        assert_null(strstr(error.message, "secret"));
    }
}

int main(void)
{
    world = &family_postgres;
    return tests_run();
}
