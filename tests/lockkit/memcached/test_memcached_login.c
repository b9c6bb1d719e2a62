/* The login of the environment is used on each connection to a memcached. A server that refuses it
 * is named, with what to do, and without the password. */
#include "login.h"
#include "login_rig.h"
#include "sandbox_process.h"
#include "tests.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD "memcached"

enum { COMMAND_MS = 5000, ANSWER_MS = 2000 };

static struct sandbox *sandbox;
static struct sandbox_server *locked;
static char right[2 * LK_LOGIN_MAX];

static int open_server(void **state)
{
    (void)state;
    if (sandbox_open(&sandbox) != 0)
        return -1;
    snprintf(right, sizeof right, SANDBOX_USER ":%s", sandbox_password());
    locked = sandbox_memcached(sandbox, NULL);
    return locked != NULL ? 0 : -1;
}

static int close_server(void **state)
{
    (void)state;
    sandbox_close(sandbox);
    return 0;
}

static int log_in_again(void **state)
{
    (void)state;
    return setenv(LK_MEMCACHED_LOGIN, right, 1);
}

static lk_client *open_client(const char *url)
{
    return login_client(GUARD, url, COMMAND_MS);
}

static lk_status try_once(const char *url, char message[LK_MESSAGE_MAX])
{
    return login_try(GUARD, url, COMMAND_MS, message);
}

GROUP_FIXTURE(open_server, close_server);
TEST_FIXTURE(NULL, log_in_again);

TEST_THAT_WITH(the_environment_s_login_is_used, NULL, NULL)
{
    char message[LK_MESSAGE_MAX];
    if (try_once(locked->url, message) != LK_OK)
        fail_msg("%s", message);
}

TEST_THAT_WITH(each_new_connection_logs_in, NULL, NULL)
{
    lk_client *client = open_client(locked->url);
    for (int i = 0; i < 3; i++) {
        lk_hold hold;
        assert_int_equal(lk_try_acquire(client, LOGIN_KEY, &hold), LK_OK);
        assert_int_equal(lk_release(&hold), LK_OK);
        assert_int_not_equal(sandbox_signal(locked, SIGKILL), -1);
        assert_int_equal(sandbox_restart(locked), 0);
    }
    lk_close(client);
}

TEST_THAT(without_a_login_it_is_said_where_to_give_it)
{
    char message[LK_MESSAGE_MAX];
    unsetenv(LK_MEMCACHED_LOGIN);
    assert_int_equal(try_once(locked->url, message), LK_UNAVAILABLE);
    login_says(message, locked->url);
    login_says(message, "CLIENT_ERROR unauthenticated");
    login_says(message, LK_MEMCACHED_LOGIN);
}

TEST_THAT(a_wrong_password_is_told_with_the_server_and_without_itself)
{
    char message[LK_MESSAGE_MAX];
    setenv(LK_MEMCACHED_LOGIN, SANDBOX_USER ":" LOGIN_WRONG, 1);
    assert_int_equal(try_once(locked->url, message), LK_UNAVAILABLE);
    login_says(message, locked->url);
    login_says(message, "refuses the login: CLIENT_ERROR authentication failure");
    login_says(message, LK_MEMCACHED_LOGIN);
    assert_null(strstr(message, LOGIN_WRONG));
}

TEST_THAT(a_wrong_form_is_refused_at_open)
{
    static const char *const forms[] = {LOGIN_WRONG,        "me:",
                                        ":" LOGIN_WRONG,    "me:" LOGIN_WRONG " ",
                                        "m e:" LOGIN_WRONG, "me:" LOGIN_WRONG "\r\nflush_all"};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        login_has_wrong_form(GUARD, locked->url, LK_MEMCACHED_LOGIN, forms[i], "\"user:password\"");
}

static bool says_its_version(struct sandbox_server *server)
{
    return sandbox_answers(server->socket, 0, "version\r\n", "VERSION", ANSWER_MS);
}

/* It listens only in its folder, which is closed to other users. */
static struct sandbox_server *open_unlocked(void)
{
    static const char *const args[] = {"memcached", "-u", "root", "-s"};
    struct sandbox_server *server = sandbox_add(sandbox, "memcached", says_its_version);
    assert_non_null(server);
    snprintf(server->socket, sizeof server->socket, "%s/unlocked", sandbox_dir(sandbox));
    for (size_t i = 0; i < sizeof args / sizeof args[0]; i++)
        sandbox_arg(server, "%s", args[i]);
    sandbox_arg(server, "%s", server->socket);
    snprintf(server->url, sizeof server->url, "unix://%.200s", server->socket);
    assert_int_equal(sandbox_start(server), 0);
    return server;
}

TEST_THAT(a_server_without_logins_serves_and_keeps_none)
{
    char message[LK_MESSAGE_MAX];
    struct sandbox_server *unlocked = open_unlocked();
    lk_status logged_in = try_once(unlocked->url, message);
    bool kept = !sandbox_answers(unlocked->socket, 0, "get lockkit_login\r\n", "END", ANSWER_MS);
    unsetenv(LK_MEMCACHED_LOGIN);
    lk_status not_logged_in = try_once(unlocked->url, message);
    sandbox_signal(unlocked, SIGTERM);
    assert_int_equal(logged_in, LK_OK);
    assert_int_equal(not_logged_in, LK_OK);
    assert_false(kept);
}
