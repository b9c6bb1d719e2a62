#include "raw_http.h"
#include "process.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
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

/* Bytes read, 0: closed, -1: nothing until then. */
static ssize_t read_some(int fd, char *into, size_t n, int64_t until_ms)
{
    for (;;) {
        int64_t left_ms = until_ms - test_now_ms();
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        int ready = poll(&wait, 1, left_ms > 0 ? (int)left_ms : 0);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return -1;
        ssize_t got = recv(fd, into, n, 0);
        return got < 0 ? 0 : got;
    }
}

int raw_read(int fd, int no_body, int64_t wait_ms, struct raw_reply *ret)
{
    const int64_t until_ms = test_now_ms() + wait_ms;
    size_t head = 0;
    memset(ret, 0, sizeof(*ret));
    /* byte by byte: what follows the head belongs to the body or to the next answer */
    while (head < 4 || memcmp(ret->head + head - 4, "\r\n\r\n", 4) != 0) {
        ssize_t got =
            head + 1 < sizeof(ret->head) ? read_some(fd, ret->head + head, 1, until_ms) : 0;
        if (got <= 0)
            return ret->status = got < 0 ? -1 : 0;
        head++;
    }
    char text[32];
    raw_header(ret, "Content-Length", text, sizeof(text));
    int status = 0;
    if (sscanf(ret->head, "HTTP/1.1 %d ", &status) != 1)
        return 0;
    const size_t length = no_body ? 0 : (size_t)strtoul(text, NULL, 10);
    ret->body = calloc(1, length + 1);
    while (ret->body != NULL && ret->body_bytes < length) {
        ssize_t got =
            read_some(fd, ret->body + ret->body_bytes, length - ret->body_bytes, until_ms);
        if (got <= 0)
            return ret->status = got < 0 ? -1 : 0;
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
    while ((got = read_some(fd, skipped, sizeof(skipped), until_ms)) > 0)
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
