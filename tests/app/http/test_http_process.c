/* The real binary as a process: its first line, its signals, its exit statuses. */
#include "daemon.h"
#include "process.h"

#include <arpa/inet.h>
#include <sys/socket.h>

static void put_item(int port, const char *guard)
{
    char body[128], text[512];
    int n = snprintf(body, sizeof(body), "{\"stock\":5,\"guard\":\"%s\"}", guard);
    snprintf(text, sizeof(text),
             "PUT /v1/items/1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
             "If-None-Match: *\r\nContent-Length: %d\r\n\r\n%s",
             n, body);
    int fd = raw_connect(port);
    struct raw_reply reply;
    raw_send_text(fd, text);
    assert_int_equal(raw_read(fd, 0, RAW_WAIT_MS, &reply), 201);
    raw_free(&reply);
    close(fd);
}

static void send_order(int fd)
{
    raw_send_text(fd,
                  "POST /v1/items/1/orders HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: k\r\n"
                  "Content-Type: application/json\r\nContent-Length: 16\r\n\r\n"
                  "{\"user_id\":\"u1\"}");
}

/* A lock server that accepts connections and never answers. */
static int silent_server(char *option, size_t size)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    snprintf(option, size, "--redis=redis://127.0.0.1:%d", ntohs(address.sin_port));
    return fd;
}

GROUP_FIXTURE(make_folder, remove_folder);

TEST_THAT(a_signal_drains_and_ends_with_0)
{
    static const int signals[] = {SIGTERM, SIGINT};
    for (int i = 0; i < 2; i++) {
        struct daemon daemon;
        run_until_ready(&daemon, (const char *const[]){NULL});
        int idle = raw_connect(daemon.port);
        put_item(daemon.port, "mutex");
        kill(daemon.pid, signals[i]);
        assert_true(raw_closed(idle, RAW_WAIT_MS));
        assert_int_equal(status_of(&daemon), 0);
        close(idle);
    }
}

TEST_THAT(what_was_accepted_is_answered_before_the_end)
{
    char redis[64];
    struct daemon daemon;
    int server = silent_server(redis, sizeof(redis));
    run_until_ready(&daemon, (const char *const[]){redis, NULL});
    put_item(daemon.port, "redis-token");
    int fd = raw_connect(daemon.port);
    send_order(fd);
    int asked = accept(server, NULL, NULL); /* the service waits for its lock */
    kill(daemon.pid, SIGTERM);
    struct raw_reply reply;
    assert_int_equal(raw_read(fd, 0, RAW_WAIT_MS, &reply), 503);
    assert_non_null(strstr(reply.body, "unavailable"));
    raw_free(&reply);
    assert_int_equal(status_of(&daemon), 0);
    close(asked);
    close(fd);
    close(server);
}

TEST_THAT(a_second_signal_ends_at_once)
{
    char redis[64];
    struct daemon daemon;
    int server = silent_server(redis, sizeof(redis));
    run_until_ready(&daemon, (const char *const[]){redis, NULL});
    put_item(daemon.port, "redis-token");
    int fd = raw_connect(daemon.port);
    send_order(fd);
    int asked = accept(server, NULL, NULL);
    kill(daemon.pid, SIGTERM);
    await_line(&daemon, "event=drain");
    kill(daemon.pid, SIGTERM);
    assert_int_equal(status_of(&daemon), 128 + SIGTERM);
    close(asked);
    close(fd);
    close(server);
}

static int ask_ready(int fd)
{
    struct raw_reply reply;
    raw_send_text(fd, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    int status = raw_read(fd, 0, RAW_WAIT_MS, &reply);
    raw_free(&reply);
    return status;
}

/* Balancers ask /readyz, on connections of their own. Until they have turned away, all is served.
 */
TEST_THAT(a_delayed_drain_is_not_ready_and_serves)
{
    struct daemon daemon;
    run_until_ready(&daemon, (const char *const[]){"--drain-delay-ms=600000", NULL});
    int before = raw_connect(daemon.port);
    assert_int_equal(ask_ready(before), 200);
    kill(daemon.pid, SIGTERM);
    await_line(&daemon, "event=drain");
    int64_t until_ms = test_now_ms() + RAW_WAIT_MS;
    while (ask_ready(before) != 503 && test_now_ms() < until_ms)
        continue;
    int later = raw_connect(daemon.port);
    assert_int_equal(ask_ready(later), 503);
    put_item(daemon.port, "mutex");
    kill(daemon.pid, SIGTERM); /* the delay is cut short, too */
    assert_int_equal(status_of(&daemon), 128 + SIGTERM);
    close(before);
    close(later);
}

TEST_THAT(a_taken_address_is_said)
{
    struct daemon first, second;
    char listen[64];
    run_until_ready(&first, (const char *const[]){NULL});
    snprintf(listen, sizeof(listen), "--listen=127.0.0.1:%d", first.port);
    run(&second, 0, (const char *const[]){listen, NULL});
    await_line(&second, "cannot listen on 127.0.0.1");
    assert_int_equal(status_of(&second), 1);
    kill(first.pid, SIGTERM);
    assert_int_equal(status_of(&first), 0);
}

TEST_THAT(too_few_files_are_said)
{
    struct daemon daemon;
    run(&daemon, 256, (const char *const[]){"--connections=5000", NULL});
    await_line(&daemon, "5000 connections need");
    assert_int_equal(status_of(&daemon), 1);
}

static int order(int port)
{
    struct raw_reply reply;
    int fd = raw_connect(port);
    send_order(fd);
    int status = raw_read(fd, 0, RAW_WAIT_MS, &reply);
    raw_free(&reply);
    close(fd);
    return status;
}

/* By default SIGXFSZ ends a process that writes beyond its limit (ulimit -f). */
TEST_THAT(a_file_that_may_not_grow_does_not_end_the_service)
{
    struct daemon daemon;
    run_until_ready(&daemon, (const char *const[]){NULL});
    put_item(daemon.port, "mutex");
    assert_int_equal(prlimit(daemon.pid, RLIMIT_FSIZE, &(struct rlimit){1, RLIM_INFINITY}, NULL),
                     0);
    assert_int_equal(order(daemon.port), 503);
    assert_int_equal(
        prlimit(daemon.pid, RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}, NULL), 0);
    assert_int_equal(order(daemon.port), 201);
    kill(daemon.pid, SIGTERM);
    assert_int_equal(status_of(&daemon), 0);
}
