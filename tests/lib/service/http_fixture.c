#include "business.h"
#include "http_fixture.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void fixture_defaults(struct fixture *fixture)
{
    memset(fixture, 0, sizeof(*fixture));
    strcpy(fixture->config.listen, "127.0.0.1:0");
    strcpy(fixture->config.allow_host, "a,t,x"); /* what the tests write in Host */
    strcpy(fixture->config.instance, "test");
    fixture->config.wait_ms = 10000;
    fixture->config.connections = 1000;
    fixture->limits = http_limits_default;
}

void fixture_start(struct fixture *fixture)
{
    int code = service_open(&fixture->config, &business, NULL, &fixture->service);
    assert(code == 0);
    const struct http_options options = {.limits = &fixture->limits,
                                         .extras = {NULL, fixture->extra},
                                         .events_show_keys = fixture->events_show_keys};
    code = http_start(&fixture->config, fixture->service, &options, &fixture->http);
    assert(code == 0);
    fixture->port = atoi(strrchr(http_url(fixture->http), ':') + 1);
}

void fixture_stop(struct fixture *fixture)
{
    http_stop(fixture->http);
    service_close(fixture->service);
    http_free(fixture->http);
}

int fixture_tear_down(void **state)
{
    fixture_stop(*state);
    return 0;
}

int fixture_ask(const struct fixture *fixture, const char *text, struct raw_reply *reply)
{
    int fd = raw_connect(fixture->port);
    assert(fd >= 0);
    raw_send_text(fd, text);
    int status = raw_read(fd, strncmp(text, "HEAD", 4) == 0, RAW_WAIT_MS, reply);
    close(fd);
    return status;
}

int fixture_call(const struct fixture *fixture, const char *method, const char *path,
                 const char *headers, const char *body, struct raw_reply *reply)
{
    char *text;
    int n = asprintf(&text, "%s %s HTTP/1.1\r\nHost: t\r\n%sContent-Length: %zu\r\n\r\n%s", method,
                     path, headers, strlen(body), body);
    assert(n > 0);
    int status = fixture_ask(fixture, text, reply);
    free(text);
    return status;
}

void fixture_send(int fd, const char *method, const char *path, const char *body)
{
    char text[4096];
    int n = body == NULL
                ? snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\nHost: t\r\n\r\n", method, path)
                : snprintf(text, sizeof(text),
                           "%s %s HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n"
                           "Idempotency-Key: k1\r\n%sContent-Length: %zu\r\n\r\n%s",
                           method, path, strcmp(method, "PUT") == 0 ? "If-None-Match: *\r\n" : "",
                           strlen(body), body);
    assert(n > 0 && (size_t)n < sizeof(text));
    raw_send(fd, text, (size_t)n);
}

long fixture_metric(const struct fixture *fixture, const char *name)
{
    struct raw_reply reply;
    long value = -1;
    if (fixture_ask(fixture, "GET /metrics HTTP/1.1\r\nHost: t\r\n\r\n", &reply) == 200) {
        char line[128];
        snprintf(line, sizeof(line), "\n%s ", name);
        const char *at = strstr(reply.body, line);
        value = at != NULL ? atol(at + strlen(line)) : -1;
    }
    raw_free(&reply);
    return value;
}
