/* The connections of the memcached guard: endpoints, servers that are no memcached, many threads.
 */
#include "impostor.h"
#include "lateness.h"
#include "lock_world.h"
#include "own_keys.h"
#include "login.h"
#include "process.h"
#include "tests.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEY "lock:item:1"

enum { LEASE_MS = 30000, LONG_MS = 20000, GRACE_MS = 2000, TIMEOUT_MS = 200 };

static lk_client *client;

static int open_world(void **state)
{
    world = &family_memcached;
    return world_open(state);
}

static int set_up(void **state)
{
    (void)state;
    world->wipe();
    client = world_client("memcached", &world_patient);
    return client == NULL ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    lk_close(client);
    return 0;
}

/* -- endpoints and strangers ------------------------------------------------------------------- */

GROUP_FIXTURE(open_world, world_close);
TEST_FIXTURE(set_up, tear_down);

TEST_THAT(endpoints_that_are_not_one_server_are_refused)
{
    static const char *const endpoints[] = {"",
                                            "a:11211,b:11211",
                                            ":11211",
                                            "a:",
                                            "a:0",
                                            "a:65536",
                                            "a:1x",
                                            "a:+1",
                                            "a: 1",
                                            "a:-1",
                                            "[::1",
                                            "[::1]x",
                                            "unix://relative"};
    for (size_t i = 0; i < sizeof endpoints / sizeof endpoints[0]; i++) {
        lk_client *none = NULL;
        lk_error error = {.message = ""};
        assert_int_equal(lk_open("memcached", endpoints[i], NULL, &none, &error), LK_INVALID);
        assert_null(none);
        assert_true(strlen(error.message) > 0);
    }
    assert_int_equal(lk_open("memcached", NULL, NULL, &(lk_client *){NULL}, NULL), LK_INVALID);
}

static void expect_impostors_are_told(void)
{
    for (int manner = IMPOSTOR_GARBAGE; manner <= IMPOSTOR_HANGS_UP; manner++) {
        lk_client *deceived;
        char endpoint[32];
        int port = sandbox_free_port();
        lk_hold hold;
        struct impostor *impostor = impostor_open(port, (enum impostor_manner)manner);
        assert_non_null(impostor);
        snprintf(endpoint, sizeof endpoint, "127.0.0.1:%d", port);
        assert_int_equal(lk_open("memcached", endpoint,
                                 &(lk_options){.command_timeout_ms = TIMEOUT_MS}, &deceived, NULL),
                         LK_OK);
        int64_t start_ms = test_now_ms();
        lk_status status = world_acquire(deceived, KEY, LEASE_MS, 0, &hold),
                  ping = lk_ping(deceived);
        int64_t took_ms = test_now_ms() - start_ms;
        lk_close(deceived);
        impostor_close(impostor);
        assert_true(status == LK_PROTOCOL || status == LK_UNKNOWN || status == LK_UNAVAILABLE);
        assert_true(ping == LK_PROTOCOL || ping == LK_UNKNOWN || ping == LK_UNAVAILABLE);
        assert_true(took_at_most(took_ms, 6 * TIMEOUT_MS + GRACE_MS));
    }
}

TEST_THAT(what_is_not_memcached_is_told_in_time)
{
    char login[2 * LK_LOGIN_MAX];
    snprintf(login, sizeof login, "%s", getenv(LK_MEMCACHED_LOGIN));
    expect_impostors_are_told(); /* in answer to the login */
    unsetenv(LK_MEMCACHED_LOGIN);
    expect_impostors_are_told(); /* in answer to a lock's command */
    assert_int_equal(setenv(LK_MEMCACHED_LOGIN, login, 1), 0);
}

/* -- many threads ------------------------------------------------------------------------------ */

enum { CROWD = 256 };

struct worker {
    pthread_t thread;
    lk_status status;
    int64_t took_ms;
};

TEST_THAT(answers_reach_their_askers_among_64_threads)
{
    own_keys_test(client, LEASE_MS, LONG_MS);
    assert_int_equal(world->leftovers(), 0);
}

static void *ask_a_stopped_server(void *arg)
{
    struct worker *worker = arg;
    int64_t start_ms = test_now_ms();
    lk_hold none;
    worker->status = world_acquire(client, KEY, LEASE_MS, 0, &none);
    worker->took_ms = test_now_ms() - start_ms;
    return NULL;
}

/* More threads than connections: no thread waits for the timeouts of all others. */
TEST_THAT(crowd_before_a_stopped_server_is_turned_away_in_time)
{
    struct worker workers[CROWD];
    lk_close(client);
    client = world_client("memcached", &(lk_options){.command_timeout_ms = TIMEOUT_MS});
    assert_int_not_equal(sandbox_signal(world_memcached, SIGSTOP), -1);
    for (int i = 0; i < CROWD; i++)
        pthread_create(&workers[i].thread, NULL, ask_a_stopped_server, &workers[i]);
    for (int i = 0; i < CROWD; i++)
        pthread_join(workers[i].thread, NULL);
    sandbox_signal(world_memcached, SIGCONT);
    for (int i = 0; i < CROWD; i++) {
        assert_true(workers[i].status == LK_UNKNOWN || workers[i].status == LK_UNAVAILABLE);
        /* a try and its undoing, each after a wait for a connection; the last undoing */
        assert_true(took_at_most(workers[i].took_ms, 6 * TIMEOUT_MS + GRACE_MS));
    }
    assert_int_equal(lk_ping(client), LK_OK);
}
