/* Several requests under way on one connection: each answer comes back to its own request. */
#include "load.h"
#include "tests.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { DEPTH = 8, REQUESTS = 800, IDLE_MS = 100, BUFFER = 65536 };

/* Answers "GET /17" with the body "17", but only when `hoard` requests have come, or none comes any
 * more for a while. */
struct server {
    pthread_t thread;
    int listener, port;
    size_t hoard;       /* requests */
    size_t piece;       /* bytes of one write; 0: all at once */
    size_t close_after; /* answers on one connection; 0: never */
    size_t most;        /* requests that were there at once */
};

struct guest {
    int fd;
    size_t length, answered;
    char text[BUFFER];
};

static size_t count_requests(const char *text)
{
    size_t n = 0;
    while ((text = strstr(text, "\r\n\r\n")) != NULL) {
        text += 4;
        n++;
    }
    return n;
}

static bool send_all(const struct server *server, int fd, const char *text, size_t length)
{
    for (size_t done = 0; done < length;) {
        size_t piece = server->piece > 0 ? server->piece : length;
        if (piece > length - done)
            piece = length - done;
        ssize_t n = send(fd, text + done, piece, MSG_NOSIGNAL);
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

/* False: the connection is to be closed. */
static bool answer_all(struct server *server, struct guest *guest)
{
    char *at = guest->text, *end, answers[BUFFER];
    size_t length = 0;
    while ((end = strstr(at, "\r\n\r\n")) != NULL &&
           (server->close_after == 0 || guest->answered < server->close_after)) {
        char body[32];
        int n = snprintf(body, sizeof body, "%lu", strtoul(at + strlen("GET /"), NULL, 10));
        length += (size_t)snprintf(answers + length, sizeof answers - length,
                                   "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", n, body);
        guest->answered++;
        at = end + 4;
    }
    guest->length -= (size_t)(at - guest->text);
    memmove(guest->text, at, guest->length + 1);
    return send_all(server, guest->fd, answers, length) &&
           (server->close_after == 0 || guest->answered < server->close_after);
}

/* One connection at a time, to its end. */
static void *serve(void *arg)
{
    struct server *server = arg;
    static struct guest guest;
    for (;;) {
        guest = (struct guest){.fd = accept(server->listener, NULL, NULL)};
        if (guest.fd < 0)
            return NULL;
        for (bool open = true; open;) {
            struct pollfd readable = {.fd = guest.fd, .events = POLLIN};
            bool idle = poll(&readable, 1, IDLE_MS) == 0;
            ssize_t n = idle ? 0
                             : recv(guest.fd, guest.text + guest.length,
                                    sizeof guest.text - 1 - guest.length, 0);
            if (!idle && n <= 0)
                break;
            guest.length += (size_t)n;
            guest.text[guest.length] = '\0';
            size_t waiting = count_requests(guest.text);
            server->most = waiting > server->most ? waiting : server->most;
            if (waiting >= server->hoard || (idle && waiting > 0))
                open = answer_all(server, &guest);
        }
        shutdown(guest.fd, SHUT_WR);
        while (recv(guest.fd, guest.text, sizeof guest.text, 0) > 0)
            continue; /* or the answers on their way would be reset */
        close(guest.fd);
    }
}

static void start(struct server *server, void *(*serve_it)(void *))
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(server->listener, 16), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &size), 0);
    server->port = ntohs(address.sin_port);
    assert_int_equal(pthread_create(&server->thread, NULL, serve_it, server), 0);
}

static void stop(struct server *server)
{
    shutdown(server->listener, SHUT_RDWR);
    pthread_join(server->thread, NULL);
    close(server->listener);
}

struct record {
    uint8_t outcomes[REQUESTS];
    enum load_end ends[REQUESTS];
    int wrong; /* answers that belong to another request */
};

static size_t ask(void *ctx, uint64_t seq, const struct load_target *target, char *out, size_t size)
{
    (void)ctx;
    return (size_t)snprintf(out, size, "GET /%d HTTP/1.1\r\nHost: %s\r\n\r\n", (int)seq,
                            target->host);
}

static int64_t note(void *ctx, uint64_t seq, const struct load_answer *answer)
{
    struct record *record = ctx;
    record->outcomes[seq]++;
    record->ends[seq] = answer->end;
    if (answer->end == LOAD_ANSWERED)
        record->wrong += strtoul(answer->body, NULL, 10) != seq;
    return -1;
}

static struct load_result run(const struct server *server, struct load_options *options,
                              struct record *record)
{
    char url[64], message[256] = "";
    struct load_result result;
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", server->port);
    options->n_targets = options->connections = options->threads = 1;
    options->pipeline = DEPTH;
    options->requests = REQUESTS;
    options->timeout_ms = 20000;
    assert_int_equal(load_target_parse(url, &options->targets[0], message, sizeof message), 0);
    struct load_workload workload = {.request = ask, .outcome = note, .ctx = record};
    if (load_run(options, &workload, &result, message, sizeof message) != 0)
        fail_msg("%s", message);
    for (int i = 0; i < REQUESTS; i++)
        assert_int_equal(record->outcomes[i], 1);
    assert_int_equal(record->wrong, 0);
    return result;
}

TEST_THAT(each_answer_comes_back_to_its_request)
{
    static const size_t pieces[] = {0, 1, 7, 50};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        struct server server = {.hoard = DEPTH, .piece = pieces[i]};
        struct load_options options = {.mode = LOAD_CLOSED};
        struct record record = {0};
        start(&server, serve);
        struct load_result result = run(&server, &options, &record);
        assert_int_equal(result.ends[LOAD_ANSWERED], REQUESTS);
        assert_int_equal(result.connects, 1);
        load_result_free(&result);
        stop(&server);
        assert_int_equal(server.most, DEPTH);
    }
}

TEST_THAT(what_was_behind_a_closed_connection_is_unknown)
{
    struct server server = {.hoard = DEPTH, .close_after = 3};
    struct load_options options = {.mode = LOAD_CLOSED};
    struct record record = {0};
    start(&server, serve);
    struct load_result result = run(&server, &options, &record);
    assert_true(result.ends[LOAD_ANSWERED] > 0 && result.ends[LOAD_BROKEN] > 0);
    assert_int_equal(result.ends[LOAD_ANSWERED] + result.ends[LOAD_BROKEN] +
                         result.ends[LOAD_NOT_SENT],
                     REQUESTS);
    assert_true(result.ends[LOAD_ANSWERED] <= 3 * result.connects);
    load_result_free(&result);
    stop(&server);
}

TEST_THAT(due_requests_do_not_wait_for_the_answer_before)
{
    struct server server = {.hoard = DEPTH / 2};
    struct load_options options = {.mode = LOAD_RATE, .rate = 4000};
    struct record record = {0};
    start(&server, serve);
    struct load_result result = run(&server, &options, &record);
    assert_int_equal(result.ends[LOAD_ANSWERED], REQUESTS);
    load_result_free(&result);
    stop(&server);
    assert_true(server.most >= DEPTH / 2);
}

TEST_THAT(hanging_server_times_all_of_them_out)
{
    struct server server = {.hoard = REQUESTS + 1, .piece = 0};
    struct load_options options = {.mode = LOAD_CLOSED, .timeout_ms = 0};
    struct record record = {0};
    char url[64], message[256];
    start(&server, serve);
    /* Never idle for IDLE_MS: the timeout comes first. */
    options = (struct load_options){.mode = LOAD_CLOSED,
                                    .n_targets = 1,
                                    .connections = 1,
                                    .threads = 1,
                                    .pipeline = DEPTH,
                                    .requests = DEPTH,
                                    .timeout_ms = IDLE_MS / 4};
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", server.port);
    assert_int_equal(load_target_parse(url, &options.targets[0], message, sizeof message), 0);
    struct load_workload workload = {.request = ask, .outcome = note, .ctx = &record};
    struct load_result result;
    assert_int_equal(load_run(&options, &workload, &result, message, sizeof message), 0);
    assert_int_equal(result.ends[LOAD_TIMED_OUT], DEPTH);
    load_result_free(&result);
    stop(&server);
}

/* -- two connections whose answers are late -----------------------------------------------------
 */

enum { LATE = 5, LATE_TIMEOUT_MS = 2000 };

/* Asked for 0 and 2 on one connection, 1 and 3 on the other. Answers 1 and 3 when both are there;
 * then 4 comes, and 0 is answered: 2 has now waited longer than 4, and neither is answered. */
static void *serve_late(void *arg)
{
    static const char ok[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    struct server *server = arg;
    struct pollfd fds[2];
    char text[2][1024] = {"", ""};
    size_t length[2] = {0, 0};
    bool odd_done = false, first_done = false;
    int open = 0;
    for (int i = 0; i < 2; i++) {
        fds[i] = (struct pollfd){.fd = accept(server->listener, NULL, NULL), .events = POLLIN};
        open += fds[i].fd >= 0;
    }
    while (open > 0) {
        poll(fds, 2, -1);
        for (int i = 0; i < 2; i++) {
            if (fds[i].fd < 0 || fds[i].revents == 0)
                continue;
            ssize_t n =
                recv(fds[i].fd, text[i] + length[i], sizeof text[i] - 1 - length[i], MSG_DONTWAIT);
            if (n <= 0) {
                close(fds[i].fd);
                fds[i].fd = -1;
                open--;
                continue;
            }
            length[i] += (size_t)n;
            text[i][length[i]] = '\0';
        }
        const int odd = strstr(text[1], "/1 ") != NULL, even = !odd;
        if (!odd_done && strstr(text[odd], "/3 ") != NULL && count_requests(text[odd]) == 2) {
            send(fds[odd].fd, ok, sizeof ok - 1, MSG_NOSIGNAL);
            send(fds[odd].fd, ok, sizeof ok - 1, MSG_NOSIGNAL);
            odd_done = true;
        }
        if (!first_done && strstr(text[odd], "/4 ") != NULL && count_requests(text[even]) == 2) {
            send(fds[even].fd, ok, sizeof ok - 1, MSG_NOSIGNAL);
            first_done = true;
        }
    }
    return NULL;
}

struct order {
    int n;
    uint64_t seq[LATE];
    enum load_end ends[LATE];
};

static int64_t note_order(void *ctx, uint64_t seq, const struct load_answer *answer)
{
    struct order *order = ctx;
    order->seq[order->n] = seq;
    order->ends[order->n++] = answer->end;
    return -1;
}

TEST_THAT(who_has_waited_longest_times_out_first)
{
    static const uint64_t seq[LATE] = {1, 3, 0, 2, 4};
    struct server server = {0};
    struct order order = {0};
    struct load_result result;
    struct load_options options = {.mode = LOAD_CLOSED,
                                   .n_targets = 1,
                                   .connections = 2,
                                   .threads = 1,
                                   .pipeline = 2,
                                   .requests = LATE,
                                   .timeout_ms = LATE_TIMEOUT_MS};
    struct load_workload workload = {.request = ask, .outcome = note_order, .ctx = &order};
    char url[64], message[256] = "";
    start(&server, serve_late);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", server.port);
    assert_int_equal(load_target_parse(url, &options.targets[0], message, sizeof message), 0);
    assert_int_equal(load_run(&options, &workload, &result, message, sizeof message), 0);
    load_result_free(&result);
    stop(&server);
    assert_int_equal(order.n, LATE);
    for (int i = 0; i < LATE; i++) {
        assert_int_equal(order.seq[i], seq[i]);
        assert_int_equal(order.ends[i], i < 3 ? LOAD_ANSWERED : LOAD_TIMED_OUT);
    }
}
