/* One connection at a time, driven by hand: what is sent again silently, and what must not be. */
#include "connection.h"
#include "tests.h"
#include "toy_server.h"
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/un.h>
#include <unistd.h>

enum { WAIT_MS = 10000 };

static const char get[] = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

struct fixture {
    struct target_address address;
    struct connection_io io;
    struct connection connection;
};

static struct fixture *open_fixture(const char *url)
{
    char message[256];
    struct load_target target;
    struct fixture *fixture = calloc(1, sizeof *fixture);
    assert_non_null(fixture);
    assert_int_equal(load_target_parse(url, &target, message, sizeof message), 0);
    target_address(&target, &fixture->address);
    fixture->io.addresses = &fixture->address;
    fixture->io.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    connection_init(&fixture->connection, 0);
    return fixture;
}

static void close_fixture(struct fixture *fixture)
{
    connection_close(&fixture->connection);
    close(fixture->io.epoll_fd);
    free(fixture);
}

/* Waits until something happens that is not nothing. */
static enum connection_event next_event(struct fixture *fixture)
{
    enum connection_event event = CONNECTION_NOTHING;
    while (event == CONNECTION_NOTHING) {
        struct epoll_event ready;
        assert_int_equal(epoll_wait(fixture->io.epoll_fd, &ready, 1, WAIT_MS), 1);
        assert_ptr_equal(ready.data.ptr, &fixture->connection);
        event = connection_ready(&fixture->connection, &fixture->io, ready.events);
    }
    return event;
}

static void await_poll(int fd, short events)
{
    struct pollfd poller = {.fd = fd, .events = events};
    do
        assert_int_equal(poll(&poller, 1, WAIT_MS), 1);
    while ((poller.revents & events) == 0);
}

static enum connection_event send_get(struct fixture *fixture)
{
    return connection_send(&fixture->connection, &fixture->io, get, strlen(get));
}

TEST_THAT(idle_connection_costs_at_most_512_bytes)
{
    assert_true(sizeof(struct connection) <= 512);
}

TEST_THAT(closed_connection_opens_itself_to_send)
{
    struct toy_server *server = toy_start(&(struct toy_options){0});
    assert_non_null(server);
    struct fixture *fixture = open_fixture(toy_url(server));
    assert_int_equal(send_get(fixture), CONNECTION_NOTHING);
    assert_int_equal(next_event(fixture), CONNECTION_SENT);
    assert_int_equal(next_event(fixture), CONNECTION_ANSWER);
    assert_string_equal(connection_body(&fixture->connection, &fixture->io), "ok");
    connection_release(&fixture->connection);
    assert_int_equal(fixture->connection.state, CONNECTION_IDLE);
    assert_int_equal(send_get(fixture), CONNECTION_SENT);
    assert_int_equal(next_event(fixture), CONNECTION_ANSWER);
    assert_int_equal(fixture->io.connects, 1);
    close_fixture(fixture);
    toy_stop(server);
}

static void reset_after_answer(void *ctx, const struct toy_request *request,
                               struct toy_reply *reply)
{
    (void)ctx;
    toy_ok(reply, "ok");
    reply->then = request->number == 0 ? TOY_RESET : TOY_KEEP;
}

/* Opens, sends, takes the answer; then waits until the server's reset has arrived, unnoticed. */
static struct fixture *used_and_reset(struct toy_server **ret_server)
{
    *ret_server = toy_start(&(struct toy_options){.answer = reset_after_answer});
    assert_non_null(*ret_server);
    struct fixture *fixture = open_fixture(toy_url(*ret_server));
    send_get(fixture);
    assert_int_equal(next_event(fixture), CONNECTION_SENT);
    int fd = fixture->connection.fd;
    await_poll(fd, POLLIN);
    struct connection *connection = &fixture->connection;
    /* The answer alone, as if the reset came just after it was read. */
    assert_int_equal(connection_ready(connection, &fixture->io, EPOLLIN), CONNECTION_ANSWER);
    connection_release(connection);
    assert_int_equal(connection->state, CONNECTION_IDLE);
    await_poll(fd, POLLHUP);
    return fixture;
}

TEST_THAT(used_connection_lost_before_the_first_byte_is_reopened)
{
    struct toy_server *server;
    struct fixture *fixture = used_and_reset(&server);
    assert_int_equal(send_get(fixture), CONNECTION_NOTHING);
    assert_int_equal(next_event(fixture), CONNECTION_SENT);
    assert_int_equal(next_event(fixture), CONNECTION_ANSWER);
    assert_int_equal(fixture->io.connects, 2);
    assert_int_equal(atomic_load(&toy_counts(server)->requests), 2);
    close_fixture(fixture);
    toy_stop(server);
}

TEST_THAT(idle_connection_that_the_server_closes_is_gone)
{
    struct toy_server *server;
    struct fixture *fixture = used_and_reset(&server);
    assert_int_equal(next_event(fixture), CONNECTION_GONE);
    assert_int_equal(fixture->connection.state, CONNECTION_CLOSED);
    close_fixture(fixture);
    toy_stop(server);
}

static void close_after_answer(void *ctx, const struct toy_request *request,
                               struct toy_reply *reply)
{
    (void)ctx;
    (void)request;
    toy_ok(reply, "ok");
    reply->then = TOY_CLOSE;
}

/* The request left; whether it arrived cannot be known. Sending it again could do it twice. */
TEST_THAT(connection_lost_after_the_first_byte_is_broken)
{
    struct toy_server *server = toy_start(&(struct toy_options){.answer = close_after_answer});
    assert_non_null(server);
    struct fixture *fixture = open_fixture(toy_url(server));
    struct connection *connection = &fixture->connection;
    send_get(fixture);
    assert_int_equal(next_event(fixture), CONNECTION_SENT);
    await_poll(connection->fd, POLLIN);
    assert_int_equal(connection_ready(connection, &fixture->io, EPOLLIN), CONNECTION_ANSWER);
    connection_release(connection);
    await_poll(connection->fd, POLLRDHUP);
    assert_int_equal(send_get(fixture), CONNECTION_SENT); /* the kernel took it */
    assert_int_equal(next_event(fixture), CONNECTION_BROKEN);
    assert_int_equal(fixture->io.connects, 1);
    close_fixture(fixture);
    toy_stop(server);
}

/* A listening unix socket that nobody accepts from, so that its backlog is full soon. */
static int listen_unix(const char *path, int backlog)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(fd, backlog), 0);
    return fd;
}

struct unix_place {
    char directory[32], path[48], url[80];
};

static void unix_place(struct unix_place *place)
{
    strcpy(place->directory, "/tmp/test_conn.XXXXXX");
    assert_non_null(mkdtemp(place->directory));
    snprintf(place->path, sizeof place->path, "%s/s", place->directory);
    snprintf(place->url, sizeof place->url, "http+unix://%s", place->path);
}

static void unix_place_free(const struct unix_place *place)
{
    unlink(place->path);
    rmdir(place->directory);
}

TEST_THAT(full_unix_backlog_is_tried_again)
{
    struct unix_place place;
    unix_place(&place);
    int listener = listen_unix(place.path, 0);
    struct fixture *fixtures[8];
    int n = 0;
    do {
        fixtures[n] = open_fixture(place.url);
        send_get(fixtures[n]);
    } while (fixtures[n++]->connection.state != CONNECTION_TURNED_AWAY && n < 8);
    struct fixture *last = fixtures[n - 1];
    assert_int_equal(last->connection.state, CONNECTION_TURNED_AWAY);
    assert_int_equal(connection_again(&last->connection, &last->io), CONNECTION_NOTHING);
    assert_int_equal(last->connection.state, CONNECTION_TURNED_AWAY);
    int accepted = accept(listener, NULL, NULL);
    assert_true(accepted >= 0);
    assert_int_equal(connection_again(&last->connection, &last->io), CONNECTION_SENT);
    close(accepted);
    close(listener);
    while (n > 0)
        close_fixture(fixtures[--n]);
    unix_place_free(&place);
}

/* More than one event's worth of reading: nothing new arrives to report the rest. */
TEST_THAT(large_answer_that_is_all_there_is_read_to_its_end)
{
    enum { BODY = 300000, SEND_BUFFER = 212992 }; /* any user may ask for that much */
    struct unix_place place;
    unix_place(&place);
    int listener = listen_unix(place.path, 8), size = SEND_BUFFER;
    struct fixture *fixture = open_fixture(place.url);
    assert_int_equal(send_get(fixture), CONNECTION_SENT);
    int accepted = accept(listener, NULL, NULL);
    assert_true(accepted >= 0);
    assert_int_equal(setsockopt(accepted, SOL_SOCKET, SO_SNDBUF, &size, sizeof size), 0);
    static char answer[BODY + 100];
    int head = sprintf(answer, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", BODY);
    memset(answer + head, 'b', BODY);
    size_t length = (size_t)head + BODY;
    assert_int_equal(send(accepted, answer, length, MSG_DONTWAIT), length);
    assert_int_equal(next_event(fixture), CONNECTION_ANSWER);
    assert_int_equal(fixture->io.bytes_in, length);
    close(accepted);
    close(listener);
    close_fixture(fixture);
    unix_place_free(&place);
}

/* Makes the connection's send buffer full, so that a request goes out in parts. */
TEST_THAT(request_that_does_not_fit_is_sent_in_parts)
{
    struct unix_place place;
    unix_place(&place);
    int listener = listen_unix(place.path, 8);
    struct fixture *fixture = open_fixture(place.url);
    struct connection *connection = &fixture->connection;
    assert_int_equal(connection_open(connection, &fixture->io), CONNECTION_OPENED);
    int accepted = accept(listener, NULL, NULL);
    assert_true(accepted >= 0);
    static char filler[1 << 20], request[LOAD_REQUEST_MAX];
    memset(request, 'r', sizeof request);
    size_t filled = 0, got = 0;
    ssize_t n;
    while ((n = send(connection->fd, filler, sizeof filler, MSG_DONTWAIT)) > 0)
        filled += (size_t)n;
    assert_int_equal(connection_send(connection, &fixture->io, request, sizeof request),
                     CONNECTION_NOTHING);
    assert_int_equal(connection->state, CONNECTION_SENDING);
    while (got < filled) {
        size_t left = filled - got;
        n = recv(accepted, filler, left < sizeof filler ? left : sizeof filler, 0);
        assert_true(n > 0);
        got += (size_t)n;
    }
    assert_int_equal(next_event(fixture), CONNECTION_SENT);
    char received[LOAD_REQUEST_MAX];
    assert_int_equal(recv(accepted, received, sizeof received, MSG_WAITALL), sizeof received);
    assert_memory_equal(received, request, sizeof received);
    close(accepted);
    close(listener);
    close_fixture(fixture);
    unix_place_free(&place);
}
