/* How large a head may be: the largest one is taken, and one beyond harms nobody. Uses a raw
 * socket.
 */
#include "raw_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

GROUP_FIXTURE(start, fixture_tear_down);

/* A head with the greatest number of lines and of bytes. libmicrohttpd's buffer also holds a record
 * of each line and the head of the answer. */
TEST_THAT(the_largest_head_is_taken)
{
    enum { LINES = FRAMING_HEADERS_MAX, LEFT = 4 }; /* LEFT: lines of POST and Content-Length */
    char text[HTTP_HEAD_MAX + sizeof BODY];
    size_t n = (size_t)sprintf(text, POST "Content-Length: 16\r\n");
    size_t to_fill = HTTP_HEAD_MAX - 2 - n;
    for (size_t line = 0; line < LINES - LEFT; line++) {
        size_t length = to_fill / (LINES - LEFT) + (line < to_fill % (LINES - LEFT));
        memset(text + n, 'a', length);
        memcpy(text + n, "A: ", 3);
        memcpy(text + n + length - 2, "\r\n", 2);
        n += length;
    }
    assert_int_equal(n, HTTP_HEAD_MAX - 2);
    strcpy(text + n, "\r\n" BODY);
    struct raw_reply reply;
    assert_int_equal(fixture_ask(&fixture, text, &reply), 201);
    raw_free(&reply);
}

/* libmicrohttpd keeps a second copy of cookies. A request with an effect must be answered. */
TEST_THAT(a_head_full_of_cookies_is_answered)
{
    enum { COOKIES = HTTP_HEAD_MAX - 200 };
    char text[HTTP_HEAD_MAX + sizeof BODY];
    size_t n = (size_t)sprintf(text, POST "Content-Length: 16\r\nCookie: a=");
    memset(text + n, 'x', COOKIES);
    strcpy(text + n + COOKIES, "\r\n\r\n" BODY);
    for (int i = 0; i < 2; i++) {
        struct raw_reply reply;
        assert_int_equal(fixture_ask(&fixture, text, &reply), 201);
        raw_free(&reply);
    }
}

/* libmicrohttpd has room for some hundred of them. Beyond that it may close without an answer. */
TEST_THAT(more_arguments_or_cookies_than_there_is_room_for_harm_nobody)
{
    enum { MANY = 2000, STEP = 50 };
    static const struct {
        const char *before, *each, *after;
    } heads[] = {
        {"GET /livez?a", "&a", " HTTP/1.1\r\nHost: t\r\n\r\n"},
        {GET HOST "Cookie: a=1", ";a=1", "\r\n\r\n"},
        {"PUT / HTTP/1.1\r\nContent-Length: x\r\nCookie: a=1", ";a=1", "\r\nHost: t\r\n\r\n"},
    };
    struct raw_reply reply;
    for (size_t i = 0; i < sizeof heads / sizeof heads[0]; i++)
        for (int n = STEP; n <= MANY; n += STEP) {
            char *text =
                calloc(1, strlen(heads[i].before) + (size_t)n * strlen(heads[i].each) + 64);
            char *at = stpcpy(text, heads[i].before);
            for (int k = 0; k < n; k++)
                at = stpcpy(at, heads[i].each);
            strcpy(at, heads[i].after);
            int fd = raw_connect(fixture.port);
            assert_true(fd >= 0);
            raw_send_text(fd, text);
            close(fd); /* the service reads the sent bytes first */
            free(text);
        }
    assert_int_equal(fixture_ask(&fixture, GET HOST "\r\n", &reply), 200);
    raw_free(&reply);
}

TEST_THAT(long_heads_are_431)
{
    static const size_t sizes[] = {8300, 12000};
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char *text = calloc(1, sizes[i] + 128);
        size_t n = (size_t)sprintf(text, GET HOST "A: ");
        memset(text + n, 'a', sizes[i]);
        strcpy(text + n + sizes[i], "\r\n\r\n");
        struct raw_reply reply;
        assert_int_equal(fixture_ask(&fixture, text, &reply), 431);
        assert_non_null(strstr(reply.body, "headers-too-large"));
        raw_free(&reply);
        free(text);
    }
    char target[1400];
    int n = sprintf(target, "GET /");
    memset(target + n, 'a', 1100);
    strcpy(target + n + 1100, " HTTP/1.1\r\nHost: t\r\n\r\n");
    struct raw_reply reply;
    assert_int_equal(fixture_ask(&fixture, target, &reply), 431);
    raw_free(&reply);
}

/* Beyond its buffer libmicrohttpd answers by itself; the test requires that the connection ends. */
TEST_THAT(endless_heads_are_cut_off)
{
    int fd = raw_connect(fixture.port);
    raw_send_text(fd, GET HOST);
    char line[1024];
    memset(line, 'a', sizeof(line));
    memcpy(line, "A: ", 3);
    memcpy(line + sizeof(line) - 2, "\r\n", 2);
    for (int i = 0; i < 200; i++)
        if (raw_send(fd, line, sizeof(line)) != 0)
            break;
    assert_true(raw_closed(fd, RAW_WAIT_MS));
    close(fd);
}
