/* The login of the environment is added to each session with ZooKeeper, and its nodes are its own.
 * An ensemble that refuses is named, with what to do, and without the password. */
#include "lock_world.h"
#include "login.h"
#include "login_rig.h"
#include "tests.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zookeeper/zookeeper.h>

#define GUARD "zk-ephemeral"

/* A server that starts may accept a connection and never answer it. The client library gives it up
 * after two thirds of the session, which is 30 s here. */
enum { COMMAND_MS = 60000 };

static char right[2 * LK_LOGIN_MAX];

static int open_world(void **state)
{
    world = &family_zookeeper;
    if (world_open(state) != 0)
        return -1;
    snprintf(right, sizeof right, "%s", getenv(LK_ZOOKEEPER_LOGIN));
    return 0;
}

static int log_in_again(void **state)
{
    (void)state;
    world->wipe();
    return setenv(LK_ZOOKEEPER_LOGIN, right, 1);
}

static lk_client *open_client(const char *url)
{
    return login_client(GUARD, url, COMMAND_MS);
}

GROUP_FIXTURE(open_world, world_close);
TEST_FIXTURE(NULL, log_in_again);

TEST_THAT(another_login_neither_takes_nor_frees_a_lock)
{
    lk_client *client = open_client(world_zookeeper.url);
    lk_hold hold;
    assert_int_equal(lk_try_acquire(client, LOGIN_KEY, &hold), LK_OK);
    setenv(LK_ZOOKEEPER_LOGIN, "sandbox:" LOGIN_WRONG, 1);
    lk_client *stranger = open_client(world_zookeeper.url);
    lk_hold none;
    assert_int_equal(lk_try_acquire(stranger, LOGIN_KEY, &none), LK_UNAVAILABLE);
    assert_int_equal(lk_force_release(stranger, LOGIN_KEY), LK_UNAVAILABLE);
    lk_close(stranger);
    assert_int_equal(lk_confirm(&hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(client);
}

TEST_THAT(each_connection_logs_in)
{
    lk_client *client = open_client(world_zookeeper.url);
    lk_hold hold;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(lk_try_acquire(client, LOGIN_KEY, &hold), LK_OK);
        assert_int_equal(lk_release(&hold), LK_OK);
        assert_int_not_equal(sandbox_signal(world_zookeeper.server[0], SIGKILL), -1);
        assert_int_equal(sandbox_restart(world_zookeeper.server[0]), 0);
        assert_int_equal(sandbox_zookeeper_agree(&world_zookeeper), 0);
    }
    assert_int_equal(lk_try_acquire(client, LOGIN_KEY, &hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(client);
}

TEST_THAT(an_ensemble_that_refuses_is_named_with_what_to_do)
{
    static const char *const logins[] = {"", "sandbox:" LOGIN_WRONG};
    char message[LK_MESSAGE_MAX];
    for (size_t i = 0; i < sizeof logins / sizeof logins[0]; i++) {
        setenv(LK_ZOOKEEPER_LOGIN, logins[i], 1);
        assert_int_equal(login_try(GUARD, world_zookeeper.url, COMMAND_MS, message),
                         LK_UNAVAILABLE);
        login_says(message, world_zookeeper.url);
        login_says(message, "access refused");
        login_says(message, LK_ZOOKEEPER_LOGIN);
        assert_null(strstr(message, LOGIN_WRONG));
    }
}

TEST_THAT(a_wrong_form_is_refused_at_open)
{
    static const char *const forms[] = {LOGIN_WRONG, "me:", ":" LOGIN_WRONG,
                                        "me:" LOGIN_WRONG "\n"};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        login_has_wrong_form(GUARD, world_zookeeper.url, LK_ZOOKEEPER_LOGIN, forms[i],
                             "\"user:password\"");
}

/* A folder that is open to all, in a tree that is not. */
TEST_THAT(without_the_variable_nodes_are_open)
{
    char url[WORLD_ENDPOINTS_MAX], message[LK_MESSAGE_MAX];
    assert_true(world_zk_create("/open", ZOO_PERSISTENT, NULL, 0));
    snprintf(url, sizeof url, "%s/open", world_zookeeper.url);
    unsetenv(LK_ZOOKEEPER_LOGIN);
    assert_int_equal(login_try(GUARD, url, COMMAND_MS, message), LK_OK);
    setenv(LK_ZOOKEEPER_LOGIN, "another:" LOGIN_WRONG, 1);
    /* In the folders that the first has made. */
    assert_int_equal(login_try(GUARD, url, COMMAND_MS, message), LK_OK);
}
