/* Meaning of Redis' answers; login; scripts by hash. */
#include "redis_command.h"
#include "sandbox.h"
#include "sandbox_proxy.h"
#include "process.h"
#include "redis.h"
#include "redis_link.h"
#include "tests.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { SOON_MS = 5000 };

static struct sandbox *sandbox;
static struct sandbox_server *server;

static int open_server(void **state)
{
    (void)state;
    if (sandbox_open(&sandbox) != 0)
        return -1;
    server = sandbox_redis(sandbox, NULL);
    return server != NULL ? 0 : -1;
}

static int close_server(void **state)
{
    (void)state;
    sandbox_close(sandbox);
    return 0;
}

/* -- answers ------------------------------------------------------------------------------------
 */

GROUP_FIXTURE(open_server, close_server);

TEST_THAT(answer_that_does_not_fit_is_refused_not_cut)
{
    struct link link;
    char text[2 * LK_REDIS_TEXT_MAX];
    lk_redis_reply reply;
    lk_status status;
    assert_true(link_open(&link, server->url));
    memset(text, 'x', sizeof text);
    text[LK_REDIS_TEXT_MAX - 1] = '\0';
    assert_true(link_echoes(&link, text, &status));
    assert_int_equal(status, LK_OK);
    text[LK_REDIS_TEXT_MAX - 1] = 'x';
    text[LK_REDIS_TEXT_MAX] = '\0';
    assert_true(link_echoes(&link, text, &status));
    assert_int_equal(status, LK_PROTOCOL);
    assert_int_equal(lk_redis_command(link.redis, &reply, "COMMAND"), LK_PROTOCOL);
    assert_int_equal(lk_redis_ping(link.redis), LK_OK);
    link_close(&link);
}

TEST_THAT(errors_that_say_not_now_are_told_from_nonsense)
{
    static const struct {
        const char *error;
        lk_status status;
    } rows[] = {
        {"LOADING Redis is loading the dataset in memory", LK_UNAVAILABLE},
        {"READONLY You can't write against a read only replica.", LK_UNAVAILABLE},
        {"NOREPLICAS Not enough good replicas to write.", LK_UNAVAILABLE},
        {"OOM command not allowed when used memory > 'maxmemory'.", LK_UNAVAILABLE},
        {"MISCONF Redis is configured to save RDB snapshots", LK_UNAVAILABLE},
        {"BUSY Redis is busy running a script.", LK_UNAVAILABLE},
        {"NOAUTH Authentication required.", LK_UNAVAILABLE},
        {"CLUSTERDOWN Hash slot not served", LK_UNAVAILABLE},
        {"MOVED 3999 127.0.0.1:6381", LK_UNAVAILABLE},
        {"WRONGTYPE Operation against a key", LK_BUSY},
        {"ERR Error running script: @user_script:1: WRONGTYPE Operation", LK_BUSY},
        {"BUSYGROUP Consumer Group name already exists", LK_PROTOCOL},
        {"ERR unknown command", LK_PROTOCOL},
    };
    struct link link;
    assert_true(link_open(&link, server->url));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        lk_redis_reply reply;
        lk_status status = lk_redis_command(
            link.redis, &reply, "EVAL", "return redis.error_reply(ARGV[1])", "0", rows[i].error);
        assert_int_equal(status, LK_OK);
        assert_int_equal(lk_redis_expect(link.redis, &reply, 0, status), rows[i].status);
        char message[LK_MESSAGE_MAX];
        lk_redis_last_error(link.redis, message, sizeof message);
        assert_non_null(strstr(message, rows[i].error));
    }
    link_close(&link);
}

TEST_THAT(full_server_and_replica_are_unavailable)
{
    struct link link;
    lk_redis_reply reply;
    assert_true(link_open(&link, server->url));
    redis_do(server, "CONFIG SET maxmemory 1");
    lk_status status = lk_redis_command(link.redis, &reply, "SET", "k", "v");
    assert_int_equal(lk_redis_expect(link.redis, &reply, 0, status), LK_UNAVAILABLE);
    redis_do(server, "CONFIG SET maxmemory 0");
    redis_do(server, "REPLICAOF 127.0.0.1 1");
    status = lk_redis_command(link.redis, &reply, "SET", "k", "v");
    assert_int_equal(lk_redis_expect(link.redis, &reply, 0, status), LK_UNAVAILABLE);
    redis_do(server, "REPLICAOF NO ONE");
    status = lk_redis_command(link.redis, &reply, "SET", "k", "v");
    assert_int_equal(lk_redis_expect(link.redis, &reply, REDIS_REPLY_STATUS, status), LK_OK);
    link_close(&link);
}

static bool last_error_has(struct link *link, const char *text)
{
    char message[LK_MESSAGE_MAX];
    lk_redis_last_error(link->redis, message, sizeof message);
    return strstr(message, text) != NULL;
}

static bool pings(void *link)
{
    return lk_redis_ping(((struct link *)link)->redis) == LK_OK;
}

static void is_refused_until_another_leaves(struct link *other, const char *url)
{
    struct link link;
    assert_true(link_open(&link, url));
    for (int i = 0; i < 5; i++) { /* on a new connection, and on one that Redis has closed */
        lk_redis_reply replies[2];
        lk_redis_query query[2] = {{.n = 2, .words = {"INCR", "k"}, .reply = &replies[0]},
                                   {.n = 2, .words = {"INCR", "k"}, .reply = &replies[1]}};
        lk_redis_run_each(link.redis, (lk_redis_query *[]){&query[0], &query[1]}, 2);
        assert_int_equal(query[0].status, LK_UNAVAILABLE);
        assert_int_equal(query[1].status, LK_UNAVAILABLE);
        assert_true(last_error_has(&link, "max number of clients"));
    }
    link_close(other);
    assert_true(wait_until(pings, &link, SOON_MS));
    lk_redis_reply reply;
    assert_int_equal(lk_redis_command(link.redis, &reply, "GET", "k"), LK_OK);
    assert_int_equal(reply.root.type, REDIS_REPLY_NIL);
    link_close(&link);
}

TEST_THAT(server_that_is_full_is_unavailable_and_the_reason_is_told)
{
    struct link other;
    char url[SANDBOX_TEXT_MAX + 8];
    struct sandbox_server *full =
        sandbox_redis(sandbox, (const char *const[]){"--maxclients", "1", NULL});
    assert_non_null(full);
    snprintf(url, sizeof url, "unix://%s", full->socket);
    const char *urls[] = {full->url, url};
    for (int i = 0; i < 2; i++) {
        assert_true(link_open(&other, full->url));
        assert_true(wait_until(pings, &other, SOON_MS));
        is_refused_until_another_leaves(&other, urls[i]);
    }
    sandbox_signal(full, SIGTERM);
}

TEST_THAT(reason_survives_where_nothing_could_be_written)
{
    struct link other;
    char text[SANDBOX_TEXT_MAX + 8], ping[] = "PING\r\n";
    lk_redis_url url;
    lk_redis_connection connection;
    struct iovec iov = {.iov_base = ping, .iov_len = sizeof ping - 1};
    struct sandbox_server *full =
        sandbox_redis(sandbox, (const char *const[]){"--maxclients", "1", NULL});
    assert_non_null(full);
    assert_true(link_open(&other, full->url));
    assert_true(wait_until(pings, &other, SOON_MS));
    snprintf(text, sizeof text, "unix://%s", full->socket);
    assert_int_equal(lk_redis_url_parse(text, &url, NULL), LK_OK);
    lk_redis_connection_init(&connection);
    int64_t deadline_us = lk_monotonic_us() + SOON_MS * 1000;
    assert_int_equal(lk_redis_connection_open(&connection, &url, deadline_us), LK_OK);
    struct pollfd closed = {.fd = connection.fd, .events = POLLRDHUP};
    assert_int_equal(poll(&closed, 1, SOON_MS), 1);
    assert_int_equal(lk_redis_connection_write(&connection, &iov, 1, deadline_us), LK_UNAVAILABLE);
    assert_non_null(strstr(connection.message, "max number of clients"));
    lk_redis_connection_close(&connection);
    link_close(&other);
    sandbox_signal(full, SIGTERM);
}

/* Redis answers so to remote clients; here a script returns the answer. */
TEST_THAT(protected_mode_is_unavailable)
{
    struct link link;
    lk_redis_reply reply;
    assert_true(link_open(&link, server->url));
    assert_int_equal(lk_redis_command(link.redis, &reply, "EVAL",
                                      "return redis.error_reply(ARGV[1])", "0",
                                      "DENIED Redis is running in protected mode"),
                     LK_UNAVAILABLE);
    assert_true(last_error_has(&link, "protected mode"));
    assert_int_equal(lk_redis_ping(link.redis), LK_OK);
    link_close(&link);
}

TEST_THAT(lost_answer_is_unknown_and_done)
{
    struct link link;
    lk_redis_reply reply;
    struct proxy *proxy = proxy_open(server->port);
    assert_non_null(proxy);
    assert_true(link_open_port(&link, proxy_port(proxy)));
    redis_do(server, "DEL lost");
    assert_int_equal(lk_redis_ping(link.redis), LK_OK);
    proxy_lose_answer(proxy, "INCR", 1, PROXY_CUT);
    assert_int_equal(lk_redis_command(link.redis, &reply, "INCR", "lost"), LK_UNKNOWN);
    assert_int_equal(proxy_lost(proxy), 1);
    assert_int_equal(lk_redis_command(link.redis, &reply, "INCR", "lost"), LK_OK);
    assert_int_equal(reply.root.integer, 2);
    link_close(&link);
    proxy_close(proxy);
}

/* -- logging in, scripts -------------------------------------------------------------------------
 */

TEST_THAT(password_and_database_are_used_on_connect)
{
    struct link link;
    char url[128];
    lk_redis_reply reply;
    struct sandbox_server *closed = sandbox_redis(sandbox, NULL);
    assert_non_null(closed);
    redis_do(closed, "ACL SETUSER u on >p@ss ~* &* +@all");
    redis_do(closed, "CONFIG SET requirepass secret");
    snprintf(url, sizeof url, "redis://:secret@127.0.0.1:%d/3", closed->port);
    assert_true(link_open(&link, url));
    assert_int_equal(lk_redis_command(link.redis, &reply, "SET", "k", "in 3"), LK_OK);
    assert_int_equal(lk_redis_command(link.redis, &reply, "SELECT", "0"), LK_OK);
    assert_int_equal(lk_redis_command(link.redis, &reply, "GET", "k"), LK_OK);
    assert_int_equal(reply.root.type, REDIS_REPLY_NIL);
    link_close(&link);

    snprintf(url, sizeof url, "redis://u:p%%40ss@127.0.0.1:%d", closed->port);
    assert_true(link_open(&link, url));
    assert_int_equal(lk_redis_ping(link.redis), LK_OK);
    link_close(&link);

    snprintf(url, sizeof url, "redis://:wrong@127.0.0.1:%d", closed->port);
    assert_true(link_open(&link, url));
    assert_int_equal(lk_redis_ping(link.redis), LK_UNAVAILABLE);
    char message[LK_MESSAGE_MAX];
    lk_redis_last_error(link.redis, message, sizeof message);
    assert_non_null(strstr(message, "WRONGPASS"));
    assert_null(strstr(message, "wrong"));
    link_close(&link);
    sandbox_signal(closed, SIGTERM);
}

TEST_THAT(unix_socket_works_as_tcp_does)
{
    struct link link;
    char url[SANDBOX_TEXT_MAX + 8];
    lk_status status;
    snprintf(url, sizeof url, "unix://%s", server->socket);
    assert_true(link_open(&link, url));
    assert_true(link_echoes(&link, "over there", &status));
    assert_int_equal(status, LK_OK);
    link_close(&link);
    assert_true(link_open(&link, "unix:///nowhere/to/be/found"));
    assert_int_equal(lk_redis_ping(link.redis), LK_UNAVAILABLE);
    link_close(&link);
}

TEST_THAT(script_is_sent_by_hash_and_in_full_when_forgotten)
{
    struct link link;
    lk_redis_script script;
    lk_redis_reply reply;
    assert_true(link_open(&link, server->url));
    lk_redis_script_init(&script, "return tonumber(ARGV[1]) + #KEYS[1]");
    for (int i = 0; i < 6; i++) {
        if (i == 3)
            redis_do(server, "SCRIPT FLUSH");
        uint64_t before = link.commands;
        assert_int_equal(
            lk_redis_eval(link.redis, &script, &reply, REDIS_REPLY_INTEGER, 1, "four", "38"),
            LK_OK);
        assert_int_equal(reply.root.integer, 42);
        /* the first call loads the hash; the call after the flush sends the script again */
        assert_int_equal(link.commands - before, i == 0 || i == 3 ? 2 : 1);
    }
    assert_int_equal(lk_redis_eval(link.redis, &script, &reply, REDIS_REPLY_STRING, 1, "k", "1"),
                     LK_PROTOCOL);
    link_close(&link);
}
