/* Requests meant for another server, and requests of other sites' pages. */
#include "http_fixture.h"
#include "http_origin.h"
#include "routes.h"
#include "sse.h"
#include "tests.h"

#include <stdio.h>
#include <string.h>

#define JSON_AND_KEY "Content-Type: application/json\r\nIdempotency-Key: k1\r\n"

static struct fixture fixture;

static int start(void **state)
{
    fixture_defaults(&fixture);
    strcpy(fixture.config.allow_host, "shop.example,t");
    fixture_start(&fixture);
    *state = &fixture;
    return 0;
}

/* -- Host ----------------------------------------------------------------------------------------
 */

static bool takes(const char *host, const char *listen, const char *allowed)
{
    const struct http_value value = {.text = host, .length = strlen(host), .count = 1};
    return origin_host_is_ours(&value, listen, allowed);
}

TEST_FIXTURE(start, fixture_tear_down);

TEST_THAT_WITH(loopback_the_address_and_listed_names_are_ours, NULL, NULL)
{
    static const struct {
        const char *host, *listen;
        bool ours;
    } cases[] = {
        {"localhost:8080", "127.0.0.1:8080", true},
        {"LocalHost.", "127.0.0.1:8080", true},
        {"127.0.0.1", "127.0.0.1:8080", true},
        {"127.8.7.6:1", "127.0.0.1:8080", true},
        {"[::1]:8080", "127.0.0.1:8080", true},
        {"shop.example", "127.0.0.1:8080", true},
        {"SHOP.example:443", "127.0.0.1:8080", true},
        {"b.example", "127.0.0.1:8080", true},
        {"10.1.2.3:8080", "10.1.2.3:8080", true},
        {"10.1.2.3:8080", "0.0.0.0:8080", true},
        {"[fe80::1]:8080", "[::]:8080", true},
        {"10.1.2.3:8080", "[::]:8080", true},
        {"till.lan:8080", "till.lan:8080", true},
        {"evil.example", "127.0.0.1:8080", false},
        {"evil.example:8080", "0.0.0.0:8080", false},
        {"10.1.2.3:8080", "127.0.0.1:8080", false},
        {"128.0.0.1", "127.0.0.1:8080", false},
        {"127.0.0.1.evil.example", "127.0.0.1:8080", false},
        {"localhost.evil.example", "127.0.0.1:8080", false},
        {"evil.example/127.0.0.1", "127.0.0.1:8080", false},
        {"user@localhost", "127.0.0.1:8080", false},
        {"shop.example.evil", "127.0.0.1:8080", false},
        {"shop", "127.0.0.1:8080", false},
        {"shop.example,b.example", "127.0.0.1:8080", false},
        {"127.1", "127.0.0.1:8080", false},
        {"2130706433", "127.0.0.1:8080", false},
        {"[::1", "127.0.0.1:8080", false},
        {"[]", "127.0.0.1:8080", false},
        {":8080", "127.0.0.1:8080", false},
        {"", "127.0.0.1:8080", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (takes(cases[i].host, cases[i].listen, "shop.example,b.example") != cases[i].ours)
            fail_msg("Host %s at %s", cases[i].host, cases[i].listen);
    assert_false(takes("", "127.0.0.1:8080", ""));
    assert_true(origin_host_is_ours(&(struct http_value){0}, "127.0.0.1:8080", "")); /* HTTP/1.0 */
}

/* -- every route ---------------------------------------------------------------------------------
 */

/* Fills in the id of a pattern. */
static void path_of(const struct route *route, char *ret, size_t size)
{
    const char *brace = strstr(route->path, "{}");
    const char *id = route->parameter == ROUTE_FILE ? "style.css" : "a1";
    if (brace == NULL) /* a list of orders is somebody's */
        snprintf(ret, size, "%s%s", route->path,
                 strcmp(route->path, "/v1/orders") == 0 ? "?user=a1" : "");
    else
        snprintf(ret, size, "%.*s%s%s", (int)(brace - route->path), route->path, id, brace + 2);
}

/* Sends the request and returns its status; ret_problem gets the end of the problem's type. */
static int ask(const char *method, const char *path, const char *host, const char *origin,
               char ret_problem[64])
{
    char text[1024], type[64];
    struct raw_reply reply;
    const bool posts = strcmp(method, "GET") != 0;
    snprintf(text, sizeof text, "%s %s HTTP/1.1\r\nHost: %s\r\n%s%s%s%s\r\n%s", method, path, host,
             origin != NULL ? "Origin: " : "", origin != NULL ? origin : "",
             origin != NULL ? "\r\n" : "", posts ? JSON_AND_KEY "Content-Length: 2\r\n" : "",
             posts ? "{}" : "");
    int status = fixture_ask(&fixture, text, &reply);
    raw_header(&reply, "Content-Type", type, sizeof type);
    ret_problem[0] = '\0';
    if (strcmp(type, "application/problem+json") == 0)
        sscanf(reply.body, "{\"type\":\"/problems/%63[a-z-]", ret_problem);
    raw_free(&reply);
    return status;
}

TEST_THAT(foreign_host_is_refused_on_every_route)
{
    char path[128], problem[64];
    for (size_t i = 0; i < n_routes; i++) {
        path_of(&routes[i], path, sizeof path);
        if (ask(routes[i].method, path, "evil.example", NULL, problem) != 421 ||
            strcmp(problem, "foreign-host") != 0)
            fail_msg("%s %s: %s", routes[i].method, path, problem);
    }
    assert_int_equal(ask("GET", "/nowhere", "evil.example", NULL, problem), 421);
    assert_int_equal(stub_submitted(fixture.service), 0);
}

TEST_THAT(foreign_origin_is_refused_unless_it_only_reads)
{
    static const char *const foreign[] = {"http://evil.example",   "null",
                                          "http://t:81",           "https://",
                                          "http://t.evil.example", "ftp://t"};
    char path[128], problem[64];
    long submitted = 0;
    for (size_t i = 0; i < n_routes; i++)
        for (size_t k = 0; k < sizeof foreign / sizeof foreign[0]; k++) {
            const bool reads =
                strcmp(routes[i].method, "GET") == 0 && routes[i].action != ROUTE_EVENTS;
            path_of(&routes[i], path, sizeof path);
            int status = ask(routes[i].method, path, "t", foreign[k], problem);
            bool refused = status == 403 && strcmp(problem, "foreign-origin") == 0;
            if (refused == reads)
                fail_msg("%s %s from %s: %d", routes[i].method, path, foreign[k], status);
            submitted += reads && routes[i].action == ROUTE_OPERATION;
        }
    assert_int_equal(stub_submitted(fixture.service), submitted);
}

/* Without reading, a page sends no Origin with a GET. */
TEST_THAT(a_page_of_another_site_holds_no_stream)
{
    static const struct {
        const char *header;
        bool ours;
    } cases[] = {
        {"", true},
        {"Sec-Fetch-Site: same-origin\r\n", true},
        {"sec-fetch-site: none \r\n", true},
        {"Sec-Fetch-Site: cross-site\r\n", false},
        {"Sec-Fetch-Site: same-site\r\n", false},
        {"Sec-Fetch-Site:\r\n", false},
        {"Sec-Fetch-Site: none\r\nSec-Fetch-Site: none\r\n", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sse sse = {.fd = raw_connect(fixture.port)};
        struct raw_reply reply;
        char head[256];
        const int n = snprintf(head, sizeof head, "GET /v1/events HTTP/1.1\r\nHost: t\r\n%s\r\n",
                               cases[i].header);
        assert_int_equal(raw_send(sse.fd, head, (size_t)n), 0);
        if (cases[i].ours)
            assert_true(sse_await(&sse, "event: hello", 1));
        else {
            assert_int_equal(raw_read(sse.fd, 0, RAW_WAIT_MS, &reply), 403);
            assert_non_null(strstr(reply.body, "/problems/foreign-origin"));
            raw_free(&reply);
        }
        sse_close(&sse);
        /* what is no stream ends by itself */
        assert_int_equal(fixture_call(&fixture, "GET", "/livez", cases[i].header, "", &reply), 200);
        raw_free(&reply);
    }
}

TEST_THAT(pages_of_this_service_may_write)
{
    static const char *const hosts[] = {"t", "127.0.0.1:8080", "shop.example"};
    char origin[64], problem[64];
    for (size_t i = 0; i < sizeof hosts / sizeof hosts[0]; i++) {
        snprintf(origin, sizeof origin, "http://%s", hosts[i]);
        ask("POST", "/v1/orders/a1/payment", hosts[i], origin, problem);
        assert_string_not_equal(problem, "foreign-origin");
        snprintf(origin, sizeof origin, "https://%s", hosts[i]); /* behind a proxy with TLS */
        ask("POST", "/v1/orders/a1/payment", hosts[i], origin, problem);
        assert_string_not_equal(problem, "foreign-origin");
    }
    assert_int_equal(stub_submitted(fixture.service), 6);
}
