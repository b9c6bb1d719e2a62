/* The sandbox's memcached: it answers, comes back empty at its port, and no other program at that
 * port is taken for it. */
#include "sandbox_process.h"
#include "process.h"
#include "tests.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

enum { ANSWER_MS = 2000 };

static struct sandbox *sandbox;

static int open_sandbox(void **state)
{
    (void)state;
    return sandbox_open(&sandbox);
}

static int close_sandbox(void **state)
{
    (void)state;
    sandbox_close(sandbox);
    return 0;
}

static bool asked(const struct sandbox_server *server, const char *question, const char *wanted)
{
    char all[SANDBOX_MEMCACHED_LOGIN_MAX + 64], answer[64];
    sandbox_memcached_login(all);
    strcat(all, question);
    snprintf(answer, sizeof answer, SANDBOX_MEMCACHED_LOGGED_IN "%s", wanted);
    return sandbox_answers(NULL, server->port, all, answer, ANSWER_MS);
}

GROUP_FIXTURE(open_sandbox, close_sandbox);

TEST_THAT(killed_server_comes_back_empty_at_its_port)
{
    char url[64];
    struct sandbox_server *server = sandbox_memcached(sandbox, NULL);
    assert_non_null(server);
    snprintf(url, sizeof url, "127.0.0.1:%d", server->port);
    assert_string_equal(server->url, url);
    assert_true(asked(server, "set k 0 0 1\r\nv\r\n", "STORED"));
    assert_true(asked(server, "get k\r\n", "VALUE k 0 1"));
    int port = server->port;
    assert_true(WIFSIGNALED(sandbox_signal(server, SIGKILL)));
    assert_int_equal(sandbox_restart(server), 0);
    assert_int_equal(server->port, port);
    assert_true(asked(server, "get k\r\n", "END"));
}

TEST_THAT(further_arguments_reach_the_server)
{
    struct sandbox_server *server =
        sandbox_memcached(sandbox, (const char *const[]){"-m", "3", NULL});
    assert_non_null(server);
    assert_true(asked(server, "stats settings\r\n", "STAT maxbytes 3145728"));
}

TEST_THAT(another_program_at_the_port_is_not_taken_for_it)
{
    struct sandbox_server *first = sandbox_memcached(sandbox, NULL);
    struct sandbox_server *second = sandbox_memcached(sandbox, NULL);
    assert_non_null(first);
    assert_non_null(second);
    assert_true(second->ready(second));
    second->port = first->port; /* where a memcached answers, but not this one */
    assert_false(second->ready(second));
}
