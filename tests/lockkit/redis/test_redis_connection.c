/* The shared connection, with a real Redis and with servers that are no Redis. */
#include "sandbox.h"
#include "impostor.h"
#include "lateness.h"
#include "process.h"
#include "redis_link.h"
#include "redis.h"
#include "tests.h"

#include <pthread.h>
#include <stdatomic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { THREADS = 64, SLACK_MS = 5000, LONG_MS = 20000 };

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

/* -- many callers -------------------------------------------------------------------------------
 */

struct caller {
    pthread_t thread;
    struct link *link;
    int number;
    int64_t times;
    int64_t crossed, failed; /* answers to other commands; statuses other than OK */
    lk_status last;
    int64_t took_ms;
    bool too_long;    /* requests answers that do not fit */
    uint64_t written; /* value of link->commands after its first command */
};

static void *call_often(void *arg)
{
    struct caller *caller = arg;
    int64_t start_ms = test_now_ms();
    for (int64_t i = 0; i < caller->times; i++) {
        char text[LK_REDIS_TEXT_MAX + 1];
        snprintf(text, sizeof text, "caller %d call %d%*s", caller->number, (int)i,
                 caller->too_long ? LK_REDIS_TEXT_MAX : 0, "");
        caller->crossed += !link_echoes(caller->link, text, &caller->last);
        caller->failed += caller->last != LK_OK;
    }
    caller->took_ms = test_now_ms() - start_ms;
    return NULL;
}

static void call_together(struct caller *callers, struct link *link, int64_t times)
{
    for (int i = 0; i < THREADS; i++) {
        callers[i] = (struct caller){.link = link, .number = i, .times = times};
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call_often, &callers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(callers[i].thread, NULL);
}

/* A counter of INFO stats. The query uses a separate connection and one read. */
static int64_t server_counts(const char *name)
{
    redisContext *context = redis_connect(server->port);
    redisReply *reply = redisCommand(context, "INFO stats");
    const char *at = strstr(reply->str, name);
    assert_non_null(at);
    int64_t count = atoll(at + strlen(name));
    freeReplyObject(reply);
    redisFree(context);
    return count;
}

GROUP_FIXTURE(open_server, close_server);

TEST_THAT(callers_share_a_connection_and_writes_and_get_their_own_answers)
{
    struct link link;
    struct caller callers[THREADS];
    int64_t times = test_size(200, 20000);
    assert_true(link_open(&link, server->url));
    int64_t connections = server_counts("total_connections_received:");
    int64_t reads = server_counts("total_reads_processed:");
    call_together(callers, &link, times);
    assert_int_equal(server_counts("total_connections_received:") - connections, 3);
    assert_true(server_counts("total_reads_processed:") - reads < THREADS * times / 2);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(callers[i].crossed, 0);
        assert_int_equal(callers[i].failed, 0);
    }
    assert_int_equal(link.commands, THREADS * times);
    link_close(&link);
}

/* -- a server that is away, or no Redis ----------------------------------------------------------
 */

TEST_THAT(stopped_server_leaves_what_was_sent_unknown_and_the_rest_undone)
{
    struct link link;
    struct caller callers[THREADS];
    assert_true(link_open(&link, server->url));
    assert_int_equal(lk_redis_ping(link.redis), LK_OK);
    uint64_t sent = link.commands;
    assert_int_equal(sandbox_signal(server, SIGSTOP), 0);
    call_together(callers, &link, 1);
    sent = link.commands - sent;
    assert_int_equal(sandbox_signal(server, SIGCONT), 0);
    uint64_t unknown = 0, unavailable = 0;
    for (int i = 0; i < THREADS; i++) {
        unknown += callers[i].last == LK_UNKNOWN;
        unavailable += callers[i].last == LK_UNAVAILABLE;
        assert_true(took_at_most(callers[i].took_ms, 2 * LINK_TIMEOUT_MS + SLACK_MS));
    }
    assert_int_equal(unknown + unavailable, THREADS);
    assert_int_equal(unknown, sent);
    assert_true(unavailable > 0);
    link_close(&link);
}

static bool has_written(void *caller)
{
    struct caller *next = caller;
    return atomic_load(&next->link->commands) >= next->written;
}

/* A Redis without a password: a command is written as soon as the connection is there. It listens
 * only in its folder, which is closed to other users. */
static struct sandbox_server *open_unlocked(char ret_url[LINK_URL_MAX])
{
    struct sandbox_server *redis = sandbox_redis(sandbox, NULL);
    assert_non_null(redis);
    assert_int_equal(redis_do(redis, "CONFIG SET port 0 requirepass %s", ""), 1);
    snprintf(ret_url, LINK_URL_MAX, "unix://%s", redis->socket);
    return redis;
}

/* The late answer arrives after the next command was sent. */
TEST_THAT(late_answer_never_answers_another_command)
{
    struct link link;
    lk_status status;
    char url[LINK_URL_MAX];
    struct sandbox_server *unlocked = open_unlocked(url);
    assert_true(link_open_stranger(&link, url));
    for (int i = 0; i < 5; i++) {
        assert_true(link_echoes(&link, "early", &status));
        assert_int_equal(status, LK_OK);
        assert_int_equal(sandbox_signal(unlocked, SIGSTOP), 0);
        assert_true(link_echoes(&link, "late", &status));
        assert_int_equal(status, LK_UNKNOWN);
        struct caller next = {.link = &link, .times = 1, .written = link.commands + 1};
        assert_int_equal(pthread_create(&next.thread, NULL, call_often, &next), 0);
        assert_true(wait_until(has_written, &next, LINK_TIMEOUT_MS));
        assert_int_equal(sandbox_signal(unlocked, SIGCONT), 0);
        pthread_join(next.thread, NULL);
        assert_int_equal(next.crossed, 0);
    }
    link_close(&link);
    sandbox_signal(unlocked, SIGTERM);
}

/* The server is stopped. Each caller's command is written before the next caller starts. */
static void write_each(struct caller *callers, int n, struct link *link, bool first_too_long)
{
    for (int i = 0; i < n; i++) {
        callers[i] = (struct caller){.link = link,
                                     .number = i,
                                     .times = 1,
                                     .too_long = first_too_long && i == 0,
                                     .written = link->commands + 1};
        assert_int_equal(pthread_create(&callers[i].thread, NULL, call_often, &callers[i]), 0);
        assert_true(wait_until(has_written, &callers[i], LONG_MS));
    }
}

static void join_each(struct caller *callers, int n)
{
    for (int i = 0; i < n; i++)
        pthread_join(callers[i].thread, NULL);
}

/* Sends two commands on a new link; the second is written before the first is answered. */
static void answer_two(struct link *link, struct caller callers[2], bool first_too_long)
{
    assert_true(link_open_for(link, server->url, LONG_MS));
    assert_int_equal(lk_redis_ping(link->redis), LK_OK);
    assert_int_equal(sandbox_signal(server, SIGSTOP), 0);
    write_each(callers, 2, link, first_too_long);
    assert_int_equal(sandbox_signal(server, SIGCONT), 0);
    join_each(callers, 2);
}

/* The server then has its next command as soon as it has answered the first. */
TEST_THAT(as_many_as_are_under_way_are_sent_ahead_of_the_answers)
{
    struct link link;
    struct caller callers[2];
    answer_two(&link, callers, false);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(callers[i].last, LK_OK);
        assert_int_equal(callers[i].crossed, 0);
    }
    assert_int_equal(lk_redis_ping(link.redis), LK_OK);
    link_close(&link);
}

TEST_THAT(what_was_sent_ahead_is_unknown_when_the_connection_breaks)
{
    struct link link;
    struct caller callers[2];
    lk_status status;
    assert_true(link_open_for(&link, server->url, LONG_MS));
    assert_int_equal(lk_redis_ping(link.redis), LK_OK);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(sandbox_signal(server, SIGSTOP), 0);
        write_each(callers, 2, &link, false);
        assert_true(WIFSIGNALED(sandbox_signal(server, SIGKILL)));
        join_each(callers, 2);
        assert_int_equal(callers[0].last, LK_UNKNOWN);
        assert_int_equal(callers[1].last, LK_UNKNOWN);
        assert_int_equal(sandbox_restart(server), 0);
        assert_true(link_echoes(&link, "back", &status));
        assert_int_equal(status, LK_OK);
    }
    link_close(&link);
}

/* Its answer has arrived but is not read after an answer that was not understood. */
TEST_THAT(what_was_sent_ahead_is_unknown_behind_an_answer_that_does_not_fit)
{
    struct link link;
    struct caller callers[2];
    answer_two(&link, callers, true);
    assert_int_equal(callers[0].last, LK_PROTOCOL);
    assert_int_equal(callers[1].last, LK_UNKNOWN);
    assert_int_equal(lk_redis_ping(link.redis), LK_OK);
    link_close(&link);
}

static atomic_int broken_pipes;

static void count_broken_pipe(int signal)
{
    (void)signal;
    atomic_fetch_add(&broken_pipes, 1);
}

/* A program that does not handle SIGPIPE must not die because of lockkit. */
TEST_THAT(writing_to_a_closed_socket_raises_no_signal)
{
    char url[SANDBOX_TEXT_MAX + 8];
    lk_redis_url parsed;
    lk_redis_connection connection;
    char ping[] = "PING\r\n";
    struct iovec iov = {.iov_base = ping, .iov_len = sizeof ping - 1};
    snprintf(url, sizeof url, "unix://%s", server->socket);
    assert_int_equal(lk_redis_url_parse(url, &parsed, NULL), LK_OK);
    lk_redis_connection_init(&connection);
    int64_t deadline_us = lk_monotonic_us() + LINK_TIMEOUT_MS * 1000;
    assert_int_equal(lk_redis_connection_open(&connection, &parsed, deadline_us), LK_OK);
    assert_true(WIFSIGNALED(sandbox_signal(server, SIGKILL)));
    void (*before)(int) = signal(SIGPIPE, count_broken_pipe);
    assert_int_equal(lk_redis_connection_write(&connection, &iov, 1, deadline_us), LK_UNAVAILABLE);
    signal(SIGPIPE, before);
    assert_int_equal(broken_pipes, 0);
    lk_redis_connection_close(&connection);
    assert_int_equal(sandbox_restart(server), 0);
}

TEST_THAT(dead_server_is_told_at_once_and_found_again_when_it_is_back)
{
    struct link link;
    struct caller callers[THREADS];
    assert_true(link_open(&link, server->url));
    assert_int_equal(lk_redis_ping(link.redis), LK_OK);
    assert_true(WIFSIGNALED(sandbox_signal(server, SIGKILL)));
    call_together(callers, &link, 3);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(callers[i].failed, 3);
        assert_int_equal(callers[i].last, LK_UNAVAILABLE);
        assert_true(took_at_most(callers[i].took_ms, LINK_TIMEOUT_MS + SLACK_MS));
    }
    char message[LK_MESSAGE_MAX];
    lk_redis_last_error(link.redis, message, sizeof message);
    assert_non_null(strstr(message, "refused"));
    assert_int_equal(sandbox_restart(server), 0);
    assert_int_equal(lk_redis_ping(link.redis), LK_OK);
    link_close(&link);
}

/* The client notices the dead connection before it writes to it. */
TEST_THAT(server_restarted_while_idle_costs_no_unknown_outcome)
{
    struct link link;
    assert_true(link_open(&link, server->url));
    assert_int_equal(lk_redis_ping(link.redis), LK_OK);
    assert_true(WIFSIGNALED(sandbox_signal(server, SIGKILL)));
    assert_int_equal(sandbox_restart(server), 0);
    assert_int_equal(lk_redis_ping(link.redis), LK_OK);
    link_close(&link);
}

static lk_status ask_impostor(enum impostor_manner manner)
{
    struct link link;
    int port = sandbox_free_port();
    char url[64];
    struct impostor *impostor = impostor_open(port, manner);
    assert_non_null(impostor);
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", port);
    assert_true(link_open_stranger(&link, url));
    int64_t start_ms = test_now_ms();
    lk_redis_reply reply;
    lk_status status = lk_redis_command(link.redis, &reply, "SET", "k", "v", "NX");
    status = lk_redis_expect(link.redis, &reply, REDIS_REPLY_STATUS, status);
    assert_true(ended_within(start_ms, LINK_TIMEOUT_MS + SLACK_MS));
    char message[LK_MESSAGE_MAX];
    lk_redis_last_error(link.redis, message, sizeof message);
    assert_true(strlen(message) > 0);
    link_close(&link);
    assert_true(impostor_close(impostor) > 0);
    return status;
}

TEST_THAT(whatever_answers_in_place_of_redis_has_a_status_in_time)
{
    assert_int_equal(ask_impostor(IMPOSTOR_GARBAGE), LK_PROTOCOL);
    assert_int_equal(ask_impostor(IMPOSTOR_BAD_TYPE), LK_PROTOCOL);
    assert_int_equal(ask_impostor(IMPOSTOR_ENDLESS), LK_PROTOCOL);
    assert_int_equal(ask_impostor(IMPOSTOR_HUGE), LK_UNKNOWN);
    assert_int_equal(ask_impostor(IMPOSTOR_SILENT), LK_UNKNOWN);
    assert_int_equal(ask_impostor(IMPOSTOR_HANGS_UP), LK_UNKNOWN);
}

TEST_THAT(many_callers_of_a_silent_server_wait_one_timeout_together)
{
    struct link link;
    struct caller callers[THREADS];
    int port = sandbox_free_port();
    struct impostor *impostor = impostor_open(port, IMPOSTOR_SILENT);
    assert_non_null(impostor);
    assert_true(link_open_port(&link, port));
    call_together(callers, &link, 1);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(callers[i].failed, 1);
        assert_true(took_at_most(callers[i].took_ms, 2 * LINK_TIMEOUT_MS + SLACK_MS));
    }
    link_close(&link);
    impostor_close(impostor);
}
