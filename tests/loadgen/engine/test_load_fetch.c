/* URLs and single blocking requests. */
#include "load_asserts.h"
#include "steady.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

TEST_THAT(good_urls_are_understood)
{
    static const struct {
        const char *url, *host, *address, *path, *socket;
        int port;
    } cases[] = {
        {"http://127.0.0.1:8080", "127.0.0.1:8080", "127.0.0.1", "/", "", 8080},
        {"http://127.0.0.1/a/b?c=d#e", "127.0.0.1", "127.0.0.1", "/a/b?c=d", "", 80},
        {"http://127.0.0.1/{{random 1 9}}/{{seq}}", "127.0.0.1", "127.0.0.1",
         "/{{random 1 9}}/{{seq}}", "", 80},
        {"http://localhost:81?x", "localhost:81", "127.0.0.1", "/?x", "", 81},
        {"http://[::1]:9/p", "[::1]:9", "::1", "/p", "", 9},
        {"http://[::1]", "[::1]", "::1", "/", "", 80},
        {"http+unix:///run/s.sock", "localhost", "", "/", "/run/s.sock", 0},
        {"http+unix:///run/s.sock:/v1/x", "localhost", "", "/v1/x", "/run/s.sock", 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct load_target target;
        char message[256];
        assert_int_equal(load_target_parse(cases[i].url, &target, message, sizeof message), 0);
        assert_string_equal(target.host, cases[i].host);
        assert_string_equal(target.address, cases[i].address);
        assert_string_equal(target.path, cases[i].path);
        assert_string_equal(target.socket_path, cases[i].socket);
        assert_int_equal(target.port, cases[i].port);
    }
}

TEST_THAT(bad_urls_are_refused_with_a_reason)
{
    static const char *const urls[] = {"",
                                       "127.0.0.1:80",
                                       "https://127.0.0.1/",
                                       "http://",
                                       "http://:80/",
                                       "http://127.0.0.1:/",
                                       "http://127.0.0.1:0/",
                                       "http://127.0.0.1:65536/",
                                       "http://127.0.0.1:8x/",
                                       "http://127.0.0.1: 80/",
                                       "http://user@127.0.0.1/",
                                       "http://[::1/",
                                       "http://[::1]x/",
                                       "http://127.0.0.1/a b",
                                       "http://127.0.0.1/{{seq}} b",
                                       "http://127.0.0.1/{{random 1 9",
                                       "http://127.0.0.1/{{random\n1 9}}",
                                       "http://127.0.0.1/a\r\nX: y",
                                       "http://no such host/",
                                       "http+unix://relative",
                                       "http+unix://"};
    struct load_target target;
    char message[256], longest[1024];
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        message[0] = '\0';
        assert_int_equal(load_target_parse(urls[i], &target, message, sizeof message), -1);
        assert_true(strlen(message) > strlen(urls[i]) + 5);
    }
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    memcpy(longest, "http://127.0.0.1/", strlen("http://127.0.0.1/"));
    assert_int_equal(load_target_parse(longest, &target, message, sizeof message), -1);
}

enum { LARGE = 5000000 };

struct script {
    char *large; /* a whole answer */
    size_t length;
};

/* Echoes the request, or sends the large answer, by path. */
static void answer_by_path(void *ctx, const struct toy_request *request, struct toy_reply *reply)
{
    static const char half[] = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf";
    const struct script *script = ctx;
    if (strstr(request->text, " /large ") != NULL) {
        reply->bytes = script->large;
        reply->length = script->length;
    } else if (strstr(request->text, " /never ") != NULL) {
        toy_ok(reply, "");
        reply->delay_us = 3600000000LL;
    } else if (strstr(request->text, " /half ") != NULL) {
        reply->bytes = half;
        reply->length = sizeof half - 1;
        reply->then = TOY_CLOSE;
    } else if (strstr(request->text, " /garbage ") != NULL) {
        reply->bytes = "who knows\n";
        reply->length = strlen(reply->bytes);
    } else if (strncmp(request->text, "HEAD ", 5) == 0) {
        toy_ok(reply, "");
        reply->length =
            (size_t)sprintf(reply->buffer, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
    } else {
        toy_ok(reply, request->text);
    }
}

static char *large_by_length(size_t *ret_length)
{
    char *text = malloc(LARGE + 200);
    assert_non_null(text);
    int head = sprintf(text, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", LARGE);
    memset(text + head, 'z', LARGE);
    *ret_length = (size_t)head + LARGE;
    return text;
}

static char *large_by_chunks(size_t *ret_length)
{
    enum { CHUNK = 12345 };
    char *text = malloc(LARGE + LARGE / CHUNK * 20 + 400), *to = text;
    assert_non_null(text);
    to = stpcpy(to, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (int left = LARGE; left > 0; left -= CHUNK) {
        int n = left < CHUNK ? left : CHUNK;
        to += sprintf(to, "%x;n=%d\r\n", (unsigned)n, left);
        memset(to, 'z', (size_t)n);
        to = stpcpy(to + n, "\r\n");
    }
    to = stpcpy(to, "0\r\nTrailer: yes\r\n\r\n");
    *ret_length = (size_t)(to - text);
    return text;
}

static struct load_target target_of(const struct toy_server *server)
{
    return probe_options(toy_url(server)).targets[0];
}

TEST_THAT(large_answers_arrive_whole)
{
    for (int chunked = 0; chunked < 2; chunked++) {
        struct script script;
        script.large = chunked ? large_by_chunks(&script.length) : large_by_length(&script.length);
        struct toy_server *server = serve(answer_by_path, &script);
        struct load_target target = target_of(server);
        char *body;
        assert_int_equal(load_fetch(&target, "GET", "/large", "", NULL, 20000, &body), 200);
        assert_int_equal(strlen(body), LARGE);
        assert_int_equal(strspn(body, "z"), LARGE);
        free(body);
        toy_stop(server);
        free(script.large);
    }
}

TEST_THAT(request_carries_method_headers_and_body)
{
    struct toy_server *server = serve(answer_by_path, NULL);
    struct load_target target = target_of(server);
    char *body;
    assert_int_equal(
        load_fetch(&target, "PUT", "/x", "Idempotency-Key: k\r\n", "{\"a\":1}", 5000, &body), 200);
    assert_int_equal(strncmp(body, "PUT /x HTTP/1.1\r\n", 17), 0);
    assert_non_null(strstr(body, "\r\nIdempotency-Key: k\r\n"));
    assert_non_null(strstr(body, "\r\nContent-Length: 7\r\n"));
    assert_non_null(strstr(body, "\r\nContent-Type: application/json\r\n"));
    assert_non_null(strstr(body, "\r\n\r\n{\"a\":1}"));
    assert_non_null(strstr(body, target.host));
    free(body);
    assert_int_equal(
        load_fetch(&target, "POST", "/x", "content-type: text/plain\r\n", "b", 5000, &body), 200);
    assert_null(strstr(body, "application/json"));
    free(body);
    assert_int_equal(load_fetch(&target, "HEAD", "/x", "", NULL, 5000, &body), 200);
    assert_string_equal(body, "");
    free(body);
    toy_stop(server);
}

TEST_THAT(failure_is_explained_in_the_body_s_place)
{
    static const struct {
        const char *path, *reason;
    } cases[] = {{"/never", "no time left while waiting for the answer"},
                 {"/half", "answer cut short"},
                 {"/garbage", "no HTTP/1 status line"}};
    struct toy_server *server = serve(answer_by_path, NULL);
    struct load_target target = target_of(server);
    char *body;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(load_fetch(&target, "GET", cases[i].path, "", NULL, 300, &body), -1);
        assert_non_null(strstr(body, cases[i].reason));
        assert_non_null(strstr(body, cases[i].path));
        free(body);
    }
    toy_stop(server);
    assert_int_equal(load_fetch(&target, "GET", "/", "", NULL, 5000, &body), -1);
    assert_non_null(strstr(body, "Connection refused"));
    free(body);
}

TEST_THAT(stop_cuts_a_long_wait_short)
{
    enum { LONG_MS = 600000 };
    struct toy_server *server = serve(answer_by_path, NULL);
    struct load_target target = target_of(server);
    atomic_bool stop = false;
    char *body;
    assert_int_equal(load_fetch_until(&stop, &target, "GET", "/", "", NULL, LONG_MS, &body), 200);
    free(body);
    atomic_store(&stop, true);
    int64_t begun_us = steady_us();
    assert_int_equal(load_fetch_until(&stop, &target, "GET", "/", "", NULL, LONG_MS, &body), 200);
    free(body);
    assert_int_equal(load_fetch_until(&stop, &target, "GET", "/never", "", NULL, LONG_MS, &body),
                     -1);
    assert_non_null(strstr(body, "no time left while waiting for the answer"));
    free(body);
    assert_in_range(steady_us() - begun_us, LOAD_STOPPED_MS * 1000, LOAD_STOPPED_MS * 2000);
    toy_stop(server);
}

TEST_THAT(address_whose_interface_is_gone_is_an_error)
{
    const struct load_target target = {.host = "x", .address = "fe80::1%gone0", .port = 1};
    char *body;
    assert_int_equal(load_fetch(&target, "GET", "/", "", NULL, 300, &body), -1);
    assert_non_null(strstr(body, "no socket"));
    free(body);
}
