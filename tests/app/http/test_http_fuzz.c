/* Sends random and mutated bytes to the real socket. Each connection is answered or closed in
 * bounded time, and the server goes on. HTTP_FUZZ_SEED replays a run. */
#include "http_fixture.h"
#include "process.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REQUEST_MAX = 40000, READ_MS = 100 };

static struct fixture fixture;
static uint64_t random_state;

static int start(void **state)
{
    const char *seed = getenv("HTTP_FUZZ_SEED");
    random_state = seed != NULL ? strtoull(seed, NULL, 10) : (uint64_t)test_now_ms() | 1;
    printf("seed %llu\n", (unsigned long long)random_state);
    fixture_defaults(&fixture);
    fixture.limits.read_ms = READ_MS;
    fixture.limits.idle_ms = READ_MS;
    fixture_start(&fixture);
    *state = &fixture;
    return 0;
}

/* xorshift64, Marsaglia 2003 */
static uint64_t random_below(uint64_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % n;
}

static const char *const seeds[] = {
    "GET /livez HTTP/1.1\r\nHost: t\r\n\r\n",
    "GET /v1/audit?resource=item:1 HTTP/1.1\r\nHost: t\r\nX-Request-Id: a\r\n\r\n",
    "POST /v1/items/1/orders HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n"
    "Idempotency-Key: \"k\"\r\nContent-Length: 30\r\n\r\n{\"user_id\":\"u1\",\"quantity\":  1}",
    "POST /v1/transfers HTTP/1.1\r\nHost: t\r\nContent-Type: application/json; charset=utf-8\r\n"
    "Idempotency-Key: k\r\nTransfer-Encoding: chunked\r\n\r\n"
    "20\r\n{\"from\":\"a\",\"to\":\"b\",\"amount\":  7\r\n1\r\n}\r\n0\r\n\r\n",
    "PUT /v1/items/%31 HTTP/1.1\r\nHost: t\r\nIf-Match: W/\"1\", \"2\"\r\n"
    "Content-Type: application/json\r\nExpect: "
    "100-continue\r\nContent-Length: 11\r\n\r\n{\"stock\":1}",
};

static const char *const pieces[] = {"\r\n",
                                     "\n",
                                     "\r",
                                     "\0",
                                     ":",
                                     " ",
                                     "\t",
                                     "%",
                                     "%00",
                                     "\r\n\r\n",
                                     "Content-Length: 5\r\n",
                                     "Transfer-Encoding: chunked\r\n",
                                     "Host: x\r\n",
                                     "{",
                                     "}",
                                     "\"",
                                     "\\u0000",
                                     "\xff",
                                     "HTTP/1.1",
                                     "/v1/items/",
                                     "?",
                                     "&",
                                     "=",
                                     ";",
                                     "ffffffffffffffff\r\n"};

static size_t mutate(char *text, size_t n)
{
    for (uint64_t i = 1 + random_below(6); i > 0 && n > 0; i--) {
        const size_t at = (size_t)random_below(n);
        size_t length = (size_t)random_below(8);
        switch (random_below(5)) {
        case 0:
            text[at] = (char)random_below(256);
            break;
        case 1: /* delete a part */
            length = length < n - at ? length : n - at;
            memmove(text + at, text + at + length, n - at - length);
            n -= length;
            break;
        case 2: { /* insert a piece */
            const char *piece = pieces[random_below(sizeof(pieces) / sizeof(pieces[0]))];
            length = piece[0] == '\0' ? 1 : strlen(piece);
            memmove(text + at + length, text + at, n - at);
            memcpy(text + at, piece, length);
            n += length;
            break;
        }
        case 3: /* repeat a part */
            length = (size_t)random_below(n - at < 200 ? n - at : 200);
            memmove(text + at + length, text + at, n - at);
            n += length;
            break;
        case 4: /* truncate */
            n = at;
            break;
        }
    }
    return n;
}

static size_t make(char *text)
{
    if (random_below(10) == 0) {
        const size_t n = (size_t)random_below(REQUEST_MAX / 2);
        for (size_t i = 0; i < n; i++)
            text[i] = (char)random_below(256);
        return n;
    }
    size_t n = 0;
    for (uint64_t i = 1 + random_below(3); i > 0; i--) {
        const char *seed = seeds[random_below(sizeof(seeds) / sizeof(seeds[0]))];
        memcpy(text + n, seed, strlen(seed));
        n += strlen(seed);
    }
    return mutate(text, n);
}

static void send_one(const char *text, size_t n)
{
    int fd = raw_connect(fixture.port);
    assert_true(fd >= 0);
    const size_t cut = random_below(4) == 0 && n > 0 ? (size_t)random_below(n) : 0;
    raw_send(fd, text, cut);
    raw_send(fd, text + cut, n - cut);
    const bool hang_up = random_below(4) == 0;
    if (!hang_up) {
        if (random_below(20) != 0)
            shutdown(fd, SHUT_WR); /* else the test waits for the deadline */
        assert_true(raw_closed(fd, RAW_WAIT_MS));
    }
    close(fd);
}

GROUP_FIXTURE(start, fixture_tear_down);

TEST_THAT(any_bytes_are_answered_or_closed_in_time)
{
    static char text[REQUEST_MAX];
    const int64_t requests = test_size(600, 20000);
    for (int64_t i = 0; i < requests; i++) {
        send_one(text, make(text));
        if (i % 100 == 0) {
            struct raw_reply reply;
            assert_int_equal(fixture_call(&fixture, "GET", "/livez", "", "", &reply), 200);
            raw_free(&reply);
        }
    }
}

static bool only_we_are_left(void *arg)
{
    return fixture_metric(arg, "seckill_http_connections_open") == 1 &&
           fixture_metric(arg, "seckill_http_in_flight") == 0;
}

TEST_THAT(nothing_is_left_over)
{
    assert_true(wait_until(only_we_are_left, &fixture, RAW_WAIT_MS));
}
