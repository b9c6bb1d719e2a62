/* Requests that two parsers could read differently are refused and the connection is closed. Uses a
 * raw socket. */
#include "raw_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Sends the bytes at once, then byte by byte. Each time the answer is 400 with a problem, the
 * connection is closed, and the service gets no operation. */
static void refused(const char *bytes, size_t n)
{
    const long before = stub_submitted(fixture.service);
    for (int piecewise = 0; piecewise < 2; piecewise++) {
        int fd = raw_connect(fixture.port);
        assert_true(fd >= 0);
        for (size_t i = 0; piecewise && i < n; i++)
            if (raw_send(fd, bytes + i, 1) != 0)
                break;
        if (!piecewise)
            raw_send(fd, bytes, n);
        struct raw_reply reply;
        char header[64];
        assert_int_equal(raw_read(fd, 0, RAW_WAIT_MS, &reply), 400);
        assert_string_equal(raw_header(&reply, "Connection", header, sizeof(header)), "close");
        assert_string_equal(raw_header(&reply, "Content-Type", header, sizeof(header)),
                            "application/problem+json");
        assert_true(raw_closed(fd, RAW_WAIT_MS));
        raw_free(&reply);
        close(fd);
    }
    assert_int_equal(stub_submitted(fixture.service), before);
}

#define REFUSED(bytes) refused((bytes), sizeof(bytes) - 1)

GROUP_FIXTURE(start, fixture_tear_down);

/* Holds for any position that libmicrohttpd takes for the version. */
TEST_THAT(request_line_without_room_for_its_version_is_refused)
{
    static const char head[] = "GET\0/\0H\0\0\0\0";
    struct http_head got;
    for (size_t bytes = 0; bytes < sizeof head; bytes++)
        assert_non_null(framing_read(head, head + 6, bytes, &got));
    assert_non_null(framing_read(head, head, sizeof head, &got));
    assert_non_null(framing_read(head + 6, head, 4, &got));
}

TEST_THAT(length_beside_transfer_coding_is_refused)
{
    REFUSED(POST "Content-Length: 16\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    REFUSED(POST "Transfer-Encoding: chunked\r\nContent-Length: 16\r\n\r\n" BODY);
}

TEST_THAT(two_lengths_are_refused)
{
    REFUSED(POST "Content-Length: 16\r\nContent-Length: 17\r\n\r\n" BODY);
    REFUSED(POST "Content-Length: 16\r\nContent-Length: 16\r\n\r\n" BODY);
    REFUSED(POST "Content-Length: 16\r\ncontent-length: 0\r\n\r\n" BODY);
}

TEST_THAT(transfer_coding_other_than_chunked_is_refused)
{
    REFUSED(POST "Transfer-Encoding: gzip\r\n\r\n");
    REFUSED(POST "Transfer-Encoding: chunked, identity\r\n\r\n");
    REFUSED(POST "Transfer-Encoding: chunked \r\n\r\n0\r\n\r\n");
    REFUSED(POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    REFUSED("POST /v1/transfers HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
}

TEST_THAT(space_around_a_header_name_is_refused)
{
    REFUSED(POST "Content-Length : 16\r\n\r\n" BODY);
    REFUSED(POST "Content-Length\t: 16\r\n\r\n" BODY);
    REFUSED(GET HOST "A B: c\r\n\r\n");
    REFUSED(GET " Host: t\r\n\r\n");
    REFUSED(GET HOST ": c\r\n\r\n");
    REFUSED(GET HOST "A(: c\r\n\r\n");
}

TEST_THAT(bare_line_feed_is_refused)
{
    REFUSED("GET /livez HTTP/1.1\nHost: t\r\n\r\n");
    REFUSED("GET /livez HTTP/1.1\n\n");
    REFUSED("GET /livez HTTP/1.1\nAHost: t\r\n\r\n");
    REFUSED("GET /livez HTTP/1.0\n\n");
    REFUSED("GET /livez HTTP/1.0\n\r\n");
    REFUSED("GET /livez HTTP/1.0\r\n\n");
    REFUSED(GET "A: b\nCHost: t\r\n\r\n");
    REFUSED(GET "Host: t\n\r\n");
    REFUSED(GET "Host: t\r\nA: b\nC: d\r\n\r\n");
    REFUSED(GET "Host: t\r\nA:\nC: d\r\n\r\n");
    REFUSED(GET "Host: t\r\nA: b\r\n\n");
    REFUSED(GET "Host: t\n\n");
    REFUSED(GET "Host: t\r\n\n");
}

TEST_THAT(folded_lines_are_refused)
{
    REFUSED(GET HOST "A: b\r\n c\r\n\r\n");
    REFUSED(GET HOST "A: b\r\n\tc\r\n\r\n");
    REFUSED(GET "Host: t\r\n u\r\n\r\n");
    REFUSED(GET HOST "A: b\r\n c\r\n d\r\nE: f\r\n\r\n");
    REFUSED(POST "Content-Length: 1\r\n 6\r\n\r\n" BODY);
}

TEST_THAT(nul_and_control_characters_are_refused)
{
    REFUSED(GET HOST "A: b\0c\r\n\r\n");
    REFUSED(GET HOST "A: b\0\r\n\r\n");
    REFUSED(GET HOST "A: \0\r\n\r\n");
    REFUSED(GET HOST "\0A: b\r\n\r\n");
    REFUSED(GET HOST "\0\r\n\r\n");
    REFUSED(GET HOST "A: b\rc\r\n\r\n");
    REFUSED(GET HOST "A: b\001\r\n\r\n");
    REFUSED(GET HOST "A: b\177\r\n\r\n");
    REFUSED("GET /livez\0 HTTP/1.1\r\nHost: t\r\n\r\n");
    REFUSED("GET /livez\0/x?y HTTP/1.1\r\nHost: t\r\n\r\n");
    REFUSED("GET /li\001vez HTTP/1.1\r\nHost: t\r\n\r\n");
}

TEST_THAT(malformed_request_lines_are_refused)
{
    REFUSED("GET  /livez HTTP/1.1\r\nHost: t\r\n\r\n");
    REFUSED("GET /livez  HTTP/1.1\r\nHost: t\r\n\r\n");
    REFUSED("GET /li vez HTTP/1.1\r\nHost: t\r\n\r\n");
    REFUSED("GET\t/livez HTTP/1.1 HTTP/1.1\r\nHost: t\r\n\r\n");
    REFUSED("G(T /livez HTTP/1.1\r\nHost: t\r\n\r\n");
    REFUSED("GET /liv\xc3\xa9z HTTP/1.1\r\nHost: t\r\n\r\n");
}

TEST_THAT(exactly_one_host_is_needed)
{
    REFUSED(GET "\r\n");
    REFUSED(GET "Host: a\r\nHost: b\r\n\r\n");
    REFUSED(GET "Host: a\r\nhost: a\r\n\r\n");
    struct raw_reply reply;
    assert_int_equal(fixture_ask(&fixture, "GET /livez HTTP/1.0\r\n\r\n", &reply), 200);
    raw_free(&reply);
}

TEST_THAT(too_many_header_lines_are_refused)
{
    char text[2048] = GET HOST;
    for (int i = 0; i < 64; i++)
        strcat(text, "A: b\r\n");
    strcat(text, "\r\n");
    refused(text, strlen(text));
}

/* Whatever the chunks look like: how libmicrohttpd reads them cannot be checked. */
TEST_THAT(chunks_are_refused)
{
    static const char *const bodies[] = {
        "10\r\n" BODY "\r\n0\r\n\r\n",              /* as it should be */
        "10\n" BODY "\r\n0\r\n\r\n",                /* a bare line feed after the size, */
        "10\r\n" BODY "\n0\r\n\r\n",                /* after the data, */
        "10\r\n" BODY "\r\n0\n\n",                  /* at the end */
        "10\r\n" BODY "\r\n0\r\nA: b\nHost: x\n\n", /* in trailers */
        "10;a=\"\n\"\r\n" BODY "\r\n0\r\n\r\n",     /* an extension */
        "10\r\r\n" BODY "\r\n0\r\n\r\n",            /* one more carriage return */
        "0000000000000000010\r\n" BODY "\r\n0\r\n\r\n",
        "",
    };
    const long before = stub_submitted(fixture.service);
    char text[512], header[64];
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        struct raw_reply reply;
        int fd = raw_connect(fixture.port);
        snprintf(text, sizeof(text), POST "Transfer-Encoding: chunked\r\n\r\n%s", bodies[i]);
        raw_send_text(fd, text);
        assert_int_equal(raw_read(fd, 0, RAW_WAIT_MS, &reply), 411);
        assert_string_equal(raw_header(&reply, "Connection", header, sizeof(header)), "close");
        assert_non_null(strstr(reply.body, "length-required"));
        assert_true(raw_closed(fd, RAW_WAIT_MS));
        raw_free(&reply);
        close(fd);
    }
    REFUSED(POST "Transfer-Encoding: chunked\0\r\n\r\n0\r\n\r\n");
    assert_int_equal(stub_submitted(fixture.service), before);
}

/* All bytes until the service closes. */
static size_t read_all(int fd, char *ret, size_t size)
{
    size_t n = 0;
    ssize_t got;
    while (n + 1 < size && (got = recv(fd, ret + n, size - n - 1, 0)) > 0)
        n += (size_t)got;
    ret[n] = '\0';
    return n;
}

/* The head may come in pieces, with other requests between them. */
TEST_THAT(a_bad_length_has_one_answer)
{
    static const char *const lengths[] = {
        "-1", "+16", "0x10", "16, 16", "16 16", "", "99999999999999999999999"};
    static char text[8192];
    for (size_t i = 0; i < 2 * sizeof(lengths) / sizeof(lengths[0]); i++) {
        const bool in_pieces = i % 2 != 0;
        int fd = raw_connect(fixture.port), other = raw_connect(fixture.port);
        raw_send_text(fd, POST);
        if (in_pieces) {
            struct raw_reply reply;
            raw_send_text(other, GET HOST); /* without its end */
            assert_int_equal(fixture_ask(&fixture, GET HOST "\r\n", &reply), 200);
            raw_free(&reply);
        }
        snprintf(text, sizeof(text), "Content-Length: %s\r\n\r\n", lengths[i / 2]);
        raw_send_text(fd, text);
        assert_true(read_all(fd, text, sizeof(text)) > 0);
        const char *const body = strstr(text, "\r\n\r\n{\"type\":\"/problems/bad-request\"");
        assert_true(strncmp(text, "HTTP/1.1 400 ", 13) == 0);
        assert_non_null(body);
        assert_null(strstr(text + 1, "HTTP/1.1"));
        assert_int_equal(strlen(body + 4), atoi(strstr(text, "Content-Length: ") + 16));
        close(fd);
        close(other);
    }
}

TEST_THAT(a_line_without_a_space_is_answered)
{
    REFUSED("GET\r\n\r\n");
    REFUSED("GET\n");
    REFUSED("\r\nGET/livez\r\nHost: t\r\n\r\n");
    REFUSED(" /livez HTTP/1.1\r\nHost: t\r\n\r\n");
}

/* Nobody may be answered twice, or what was not asked. */
TEST_THAT(who_closes_without_a_request_is_not_answered)
{
    char text[16];
    const long before = fixture_metric(&fixture, "seckill_http_refused_heads_total");
    for (int i = 0; i < 10; i++) {
        int fd = raw_connect(fixture.port);
        shutdown(fd, SHUT_WR);
        assert_int_equal(read_all(fd, text, sizeof(text)), 0);
        close(fd);
    }
    assert_int_equal(fixture_metric(&fixture, "seckill_http_refused_heads_total"), before);
}

/* Checks only the status: libmicrohttpd refuses these itself, with its own page. */
TEST_THAT(what_is_not_http_is_refused_and_closed)
{
    static const char *const requests[] = {POST "Content-Length: -1\r\n\r\n",
                                           POST "Content-Length: +16\r\n\r\n" BODY,
                                           POST "Content-Length: 0x10\r\n\r\n" BODY,
                                           POST "Content-Length: 16, 16\r\n\r\n" BODY,
                                           POST "Content-Length: 99999999999999999999999\r\n\r\n",
                                           GET HOST "no colon\r\n\r\n",
                                           "GET /livez HTTP/2.0\r\nHost: t\r\n\r\n",
                                           "GET /livez\r\nHost: t\r\n\r\n"};
    for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
        int fd = raw_connect(fixture.port);
        raw_send_text(fd, requests[i]);
        struct raw_reply reply;
        int status = raw_read(fd, 0, RAW_WAIT_MS, &reply);
        assert_true(status >= 400 && status <= 505);
        assert_true(raw_closed(fd, RAW_WAIT_MS));
        raw_free(&reply);
        close(fd);
    }
    assert_int_equal(stub_held(fixture.service), 0);
}

TEST_THAT(well_formed_requests_pass)
{
    static const char *const good[] = {
        GET HOST "\r\n",
        GET "hOsT:\tt \r\nA:\r\nB: \t c d \xc3\xa9\t\r\n\r\n",
        "\r\n" GET HOST "\r\n",
        "GET http://t:80/livez?x=%20 HTTP/1.1\r\nHost: t\r\n\r\n",
        "GET /livez?a=b&c=d?e HTTP/1.1\r\nHost: t\r\n\r\n",
        "GET /livez HTTP/1.1\r\nHost: t\r\nContent-Length: 3\r\n\r\nabc",
    };
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct raw_reply reply;
        assert_int_equal(fixture_ask(&fixture, good[i], &reply), 200);
        raw_free(&reply);
    }
}
