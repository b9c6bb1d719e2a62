/* One request on its own connection, with one deadline for all steps. */
#include "http_parse.h"
#include "load_thread.h"
#include "steady.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    READ_SIZE = 65536,
    MESSAGE_MAX = 512,
    PUT_TRIES_MAX = 10,
    STOP_POLL_MS = 100 /* longest time until a waiting call sees *stop */
};
static const size_t fetch_body_max = (size_t)1 << 30; /* largest answer, in bytes */

struct fetch {
    int fd;
    int64_t deadline_us;
    const atomic_bool *stop; /* NULL: none, or already applied */
    struct http_parser parser;
    char *body;
    size_t length, size;
    char message[MESSAGE_MAX];
};

__attribute__((format(printf, 2, 3))) static bool fail(struct fetch *fetch, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(fetch->message, sizeof fetch->message, format, arguments);
    va_end(arguments);
    return false;
}

static void apply_stop(struct fetch *fetch)
{
    if (fetch->stop == NULL || !atomic_load(fetch->stop))
        return;
    int64_t latest_us = steady_us() + LOAD_STOPPED_MS * 1000;
    if (fetch->deadline_us > latest_us)
        fetch->deadline_us = latest_us;
    fetch->stop = NULL;
}

static bool await(struct fetch *fetch, short events, const char *what)
{
    struct pollfd poller = {.fd = fetch->fd, .events = events};
    for (;;) {
        apply_stop(fetch);
        int64_t left_us = fetch->deadline_us - steady_us();
        if (left_us <= 0)
            return fail(fetch, "no time left while %s", what);
        int64_t wait_ms = (left_us + 999) / 1000;
        if (fetch->stop != NULL && wait_ms > STOP_POLL_MS)
            wait_ms = STOP_POLL_MS;
        int n = poll(&poller, 1, (int)wait_ms);
        if (n > 0)
            return true;
        if (n < 0 && errno != EINTR)
            return fail(fetch, "%s: %s", what, strerror(errno));
    }
}

static bool dial(struct fetch *fetch, const struct load_target *target)
{
    struct target_address address;
    target_address(target, &address);
    fetch->fd = target_socket(&address);
    if (fetch->fd < 0)
        return fail(fetch, "no socket: %s", strerror(errno));
    int error = 0;
    socklen_t size = sizeof error;
    if (connect(fetch->fd, (const struct sockaddr *)&address.storage, address.length) != 0)
        error = errno;
    if (error == EINPROGRESS) {
        if (!await(fetch, POLLOUT, "connecting"))
            return false;
        getsockopt(fetch->fd, SOL_SOCKET, SO_ERROR, &error, &size);
    }
    return error == 0 || fail(fetch, "cannot connect: %s", strerror(error));
}

static bool send_all(struct fetch *fetch, const char *text, size_t length)
{
    while (length > 0) {
        ssize_t n = send(fetch->fd, text, length, MSG_NOSIGNAL);
        if (n > 0) {
            text += n;
            length -= (size_t)n;
        } else if (errno == EAGAIN) {
            if (!await(fetch, POLLOUT, "sending"))
                return false;
        } else if (errno == EPIPE || errno == ECONNRESET) {
            return true; /* the server may have answered before it closed */
        } else if (errno != EINTR) {
            return fail(fetch, "sending: %s", strerror(errno));
        }
    }
    return true;
}

static bool keep(struct fetch *fetch, struct http_span span)
{
    size_t needed = fetch->length + span.length + 1;
    if (needed > fetch_body_max)
        return fail(fetch, "answer larger than %zu bytes", fetch_body_max);
    if (needed > fetch->size) {
        size_t size = needed > 2 * fetch->size ? needed : 2 * fetch->size;
        char *grown = realloc(fetch->body, size);
        if (grown == NULL)
            return fail(fetch, "out of memory for an answer of %zu bytes", size);
        fetch->body = grown;
        fetch->size = size;
    }
    memcpy(fetch->body + fetch->length, span.bytes, span.length);
    fetch->length += span.length;
    return true;
}

/* Feeds bytes to the parser. *ret_done: the answer is whole. */
static bool parse(struct fetch *fetch, const char *data, size_t length, bool *ret_done)
{
    struct http_span span;
    for (;;) {
        switch (http_parse(&fetch->parser, &data, &length, &span)) {
        case HTTP_BODY:
            if (!keep(fetch, span))
                return false;
            continue;
        case HTTP_BAD:
            return fail(fetch, "bad answer: %s", fetch->parser.error);
        case HTTP_MORE:
            return true;
        case HTTP_DONE:
            *ret_done = true;
            return true;
        }
    }
}

static bool receive(struct fetch *fetch, char *buffer)
{
    bool done = false;
    while (!done) {
        ssize_t n = recv(fetch->fd, buffer, READ_SIZE, 0);
        if (n < 0 && errno == EAGAIN) {
            if (!await(fetch, POLLIN, "waiting for the answer"))
                return false;
        } else if (n < 0 && errno != EINTR) {
            return fail(fetch, "receiving: %s", strerror(errno));
        } else if (n == 0 && !http_parse_end(&fetch->parser)) {
            return fail(fetch, "bad answer: %s", fetch->parser.error);
        } else if (n >= 0 && !parse(fetch, buffer, (size_t)n, &done)) {
            return false;
        }
    }
    return keep(fetch, (struct http_span){"", 0}); /* room for the NUL of an empty body */
}

/* A malloc()ed request; NULL without memory. */
static char *compose(const struct load_target *target, const char *method, const char *path,
                     const char *headers, const char *body)
{
    char *text;
    char length[64] = "";
    bool typed = body == NULL || strcasestr(headers, "content-type:") != NULL;
    if (body != NULL)
        snprintf(length, sizeof length, "Content-Length: %zu\r\n", strlen(body));
    int n = asprintf(&text, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s%s%s%s\r\n%s",
                     method, path, target->host, target->headers, length,
                     typed ? "" : "Content-Type: application/json\r\n", headers,
                     body != NULL ? body : "");
    return n < 0 ? NULL : text;
}

static bool run(struct fetch *fetch, const struct load_target *target, const char *text,
                char *buffer)
{
    if (text == NULL || buffer == NULL)
        return fail(fetch, "out of memory");
    return dial(fetch, target) && send_all(fetch, text, strlen(text)) && receive(fetch, buffer);
}

int load_fetch(const struct load_target *target, const char *method, const char *path,
               const char *headers, const char *body, int64_t timeout_ms, char **ret_body)
{
    return load_fetch_until(NULL, target, method, path, headers, body, timeout_ms, ret_body);
}

int load_fetch_until(const atomic_bool *stop, const struct load_target *target, const char *method,
                     const char *path, const char *headers, const char *body, int64_t timeout_ms,
                     char **ret_body)
{
    struct fetch fetch = {.fd = -1, .deadline_us = steady_us() + timeout_ms * 1000, .stop = stop};
    char *text = compose(target, method, path, headers, body);
    char *buffer = malloc(READ_SIZE);
    int status = -1;
    http_parse_start(&fetch.parser, strcmp(method, "HEAD") == 0);
    if (run(&fetch, target, text, buffer)) {
        fetch.body[fetch.length] = '\0';
        *ret_body = fetch.body;
        status = fetch.parser.status;
    } else {
        free(fetch.body);
        if (asprintf(ret_body, "%s %s at %s: %s", method, path, target->host, fetch.message) < 0)
            *ret_body = NULL;
    }
    if (fetch.fd >= 0)
        close(fetch.fd);
    free(buffer);
    free(text);
    return status;
}

/* The version in the answer of a GET; "0" if there is none. Its ids and guards hold no quote. */
static void read_version(const char *answer, char *ret, size_t size)
{
    static const char name[] = "\"version\":";
    const char *at = answer != NULL ? strstr(answer, name) : NULL;
    const char *digits = at != NULL ? at + strlen(name) : "0";
    snprintf(ret, size, "%.*s", (int)strspn(digits, "0123456789"), digits);
}

int load_put(const atomic_bool *stop, const struct load_target *target, const char *path,
             const char *headers, const char *body, int64_t timeout_ms, char **ret_body)
{
    char *with = NULL, version[32];
    int status = -1;
    for (int tries = 0; tries < PUT_TRIES_MAX; tries++) {
        if (tries > 0) { /* 412: it is there, or has changed since the GET */
            free(*ret_body);
            status =
                load_fetch_until(stop, target, "GET", path, headers, NULL, timeout_ms, ret_body);
            if (status != 200)
                return status;
            read_version(*ret_body, version, sizeof version);
            free(*ret_body);
        }
        const int n = tries == 0 ? asprintf(&with, "%sIf-None-Match: *\r\n", headers)
                                 : asprintf(&with, "%sIf-Match: \"%s\"\r\n", headers, version);
        if (n < 0) {
            *ret_body = NULL;
            return -1;
        }
        status = load_fetch_until(stop, target, "PUT", path, with, body, timeout_ms, ret_body);
        free(with);
        if (status != 412)
            break;
    }
    return status;
}
