#include "sse.h"
#include "process.h"
#include "raw_http.h"

#include <arpa/inet.h>
#include <assert.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CHUNK = 65536 };

bool sse_open(struct sse *sse, int port, const char *path, const char *last_id, bool small)
{
    char text[1024];
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    *sse = (struct sse){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    const int least = 1;
    if (small)
        setsockopt(sse->fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof least);
    if (connect(sse->fd, (const struct sockaddr *)&address, sizeof address) != 0)
        return false;
    /* with HTTP/1.0 the answer is not chunked */
    int n = snprintf(text, sizeof text, "GET %s HTTP/1.0\r\nHost: localhost\r\n%s%s%s\r\n", path,
                     last_id != NULL ? "Last-Event-ID: " : "", last_id != NULL ? last_id : "",
                     last_id != NULL ? "\r\n" : "");
    return raw_send(sse->fd, text, (size_t)n) == 0;
}

void sse_read(struct sse *sse, int64_t wait_ms)
{
    struct pollfd wait = {.fd = sse->fd, .events = POLLIN};
    while (!sse->ended && poll(&wait, 1, (int)wait_ms) > 0) {
        if (sse->n + CHUNK + 1 > sse->room) {
            sse->room = 2 * sse->room + CHUNK + 1;
            sse->text = realloc(sse->text, sse->room);
            assert(sse->text != NULL);
        }
        ssize_t n = recv(sse->fd, sse->text + sse->n, CHUNK, MSG_DONTWAIT);
        sse->ended = n <= 0;
        sse->n += n > 0 ? (size_t)n : 0;
        sse->text[sse->n] = '\0';
        wait_ms = 0;
    }
}

static size_t count_from(const struct sse *sse, size_t from, const char *text)
{
    size_t count = 0, length = strlen(text);
    if (sse->n <= from)
        return 0;
    const char *at = sse->text + from, *end = sse->text + sse->n;
    /* no strstr(): under ThreadSanitizer each call reads the whole rest */
    while ((at = memchr(at, text[0], (size_t)(end - at))) != NULL) {
        const bool here = (size_t)(end - at) >= length && memcmp(at, text, length) == 0;
        count += here;
        at += here ? length : 1;
    }
    return count;
}

size_t sse_count(const struct sse *sse, const char *text)
{
    return count_from(sse, 0, text);
}

bool sse_await(struct sse *sse, const char *text, size_t times)
{
    const int64_t until_ms = test_now_ms() + RAW_WAIT_MS;
    const size_t length = strlen(text);
    size_t count = sse_count(sse, text);
    while (count < times && !sse->ended && test_now_ms() < until_ms) {
        const size_t from = sse->n >= length ? sse->n - length + 1 : 0;
        sse_read(sse, 100);
        count += count_from(sse, from, text);
    }
    return count >= times;
}

/* Returns the data of the first message of this name from *at on and moves *at behind it. NULL: no
 * complete message. */
static json_t *next_data(const char **at, const char *name)
{
    char begin[64];
    snprintf(begin, sizeof begin, "event: %s\ndata: ", name);
    const char *message = *at != NULL ? strstr(*at, begin) : NULL;
    const char *end = message != NULL ? strstr(message, "\n\n") : NULL;
    if (end == NULL)
        return NULL;
    message += strlen(begin);
    *at = end;
    json_t *data = json_loadb(message, strcspn(message, "\n"), 0, NULL);
    assert(data != NULL);
    return data;
}

json_t *sse_events(const struct sse *sse)
{
    json_t *all = json_array(), *some;
    const char *at = sse->text;
    while ((some = next_data(&at, "trace")) != NULL) {
        json_array_extend(all, some);
        json_decref(some);
    }
    return all;
}

json_t *sse_data(const struct sse *sse, const char *name, int nth)
{
    const char *at = sse->text;
    json_t *found = NULL, *data;
    for (int i = 0; (nth < 0 || i <= nth) && (data = next_data(&at, name)) != NULL; i++) {
        json_decref(found);
        found = data;
        if (i == nth)
            return found;
    }
    if (nth >= 0) {
        json_decref(found);
        found = NULL;
    }
    return found;
}

void sse_last_id(const struct sse *sse, char *ret, size_t size)
{
    const char *last = NULL;
    ret[0] = '\0';
    for (const char *at = sse->text; at != NULL && (at = strstr(at, "\nid: ")) != NULL; at += 5)
        if (strstr(at, "\n\n") != NULL)
            last = at + 5;
    if (last != NULL)
        snprintf(ret, size, "%.*s", (int)strcspn(last, "\n"), last);
}

void sse_close(struct sse *sse)
{
    close(sse->fd);
    free(sse->text);
    *sse = (struct sse){.fd = -1};
}
