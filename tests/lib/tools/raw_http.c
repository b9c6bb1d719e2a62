#include "raw_http.h"
#include "process.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

int raw_connect(int port)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
                                        .sin_port = htons((uint16_t)port),
                                        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0) {
        close(fd);
        fd = -1;
    }
    return fd;
}

int raw_send(int fd, const void *bytes, size_t n)
{
    const char *at = bytes;
    while (n > 0) {
        ssize_t sent = send(fd, at, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return -1;
        at += sent;
        n -= (size_t)sent;
    }
    return 0;
}

int raw_send_text(int fd, const char *text)
{
    return raw_send(fd, text, strlen(text));
}

/* As recv(): number of bytes; 0: closed; -1: nothing until until_ms. */
static ssize_t read_some(int fd, char *into, size_t n, int flags, int64_t until_ms)
{
    for (;;) {
        int64_t left_ms = until_ms - test_now_ms();
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        int ready = poll(&wait, 1, left_ms > 0 ? (int)left_ms : 0);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return -1;
        ssize_t got = recv(fd, into, n, flags);
        return got < 0 ? 0 : got;
    }
}

/* Reads up to the empty line and not beyond it. The body or the next answer follows. */
static ssize_t read_head(int fd, int64_t until_ms, struct raw_reply *ret)
{
    size_t have = 0;
    for (;;) {
        ssize_t got =
            read_some(fd, ret->head + have, sizeof(ret->head) - 1 - have, MSG_PEEK, until_ms);
        if (got <= 0)
            return got;
        ret->head[have + (size_t)got] = '\0';
        const char *end = strstr(ret->head, "\r\n\r\n");
        size_t take = end != NULL ? (size_t)(end - ret->head) + 4 - have : (size_t)got;
        got = read_some(fd, ret->head + have, take, 0, until_ms);
        if (got <= 0)
            return got;
        have += (size_t)got;
        ret->head[have] = '\0';
        if (end != NULL)
            return 1;
        if (have + 1 >= sizeof(ret->head))
            return 0;
    }
}

int raw_read(int fd, int no_body, int64_t wait_ms, struct raw_reply *ret)
{
    const int64_t until_ms = test_now_ms() + wait_ms;
    memset(ret, 0, offsetof(struct raw_reply, head) + 1);
    ret->body = NULL;
    ret->body_bytes = 0;
    ssize_t got = read_head(fd, until_ms, ret);
    if (got <= 0)
        return ret->status = (int)got;
    char text[32];
    raw_header(ret, "Content-Length", text, sizeof(text));
    int status = 0;
    if (sscanf(ret->head, "HTTP/1.1 %d ", &status) != 1)
        return 0;
    const size_t length = no_body || status == 304 ? 0 : (size_t)strtoul(text, NULL, 10);
    ret->body = calloc(1, length + 1);
    while (ret->body != NULL && ret->body_bytes < length) {
        got = read_some(fd, ret->body + ret->body_bytes, length - ret->body_bytes, 0, until_ms);
        if (got <= 0)
            return ret->status = (int)got;
        ret->body_bytes += (size_t)got;
    }
    return ret->status = status;
}

void raw_free(struct raw_reply *reply)
{
    free(reply->body);
    reply->body = NULL;
}

int raw_closed(int fd, int64_t wait_ms)
{
    const int64_t until_ms = test_now_ms() + wait_ms;
    char skipped[4096];
    ssize_t got;
    while ((got = read_some(fd, skipped, sizeof(skipped), 0, until_ms)) > 0)
        ;
    return got == 0;
}

const char *raw_header(const struct raw_reply *reply, const char *name, char *ret, size_t size)
{
    const size_t length = strlen(name);
    ret[0] = '\0';
    for (const char *line = strstr(reply->head, "\r\n"); line != NULL;
         line = strstr(line + 2, "\r\n")) {
        const char *at = line + 2;
        if (strncasecmp(at, name, length) == 0 && at[length] == ':') {
            at += length + 1 + strspn(at + length + 1, " ");
            snprintf(ret, size, "%.*s", (int)strcspn(at, "\r"), at);
            return ret;
        }
    }
    return ret;
}
