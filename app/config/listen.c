#include "listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    PORT_MAX = 65535,
    /* Connections that wait to be accepted. Under a flood of them (some 40 us each) a newcomer,
     * such as a health check, waits for all of them. */
    BACKLOG = 2048
};

int listen_parse(const char *text, struct listen_address *ret, char *message, size_t size)
{
    const char *colon = strrchr(text, ':');
    if (colon == NULL) {
        snprintf(message, size, "\"%s\" has no port; give host:port, e.g. 127.0.0.1:8080", text);
        return -1;
    }
    const char *host = text;
    size_t length = (size_t)(colon - text);
    if (length >= 2 && host[0] == '[' && host[length - 1] == ']') {
        host++;
        length -= 2;
    } else if (memchr(host, ':', length) != NULL) {
        snprintf(message, size, "\"%s\": put an IPv6 address in brackets, e.g. [::1]:8080", text);
        return -1;
    }
    if (length == 0 || length > LISTEN_HOST_MAX) {
        snprintf(message, size, "\"%s\" has no usable host; give host:port", text);
        return -1;
    }
    char *end;
    errno = 0;
    long port = strtol(colon + 1, &end, 10);
    if (end == colon + 1 || *end != '\0' || colon[1] < '0' || colon[1] > '9' || errno != 0 ||
        port > PORT_MAX) {
        snprintf(message, size, "\"%s\" has no port from 0 to %d", text, PORT_MAX);
        return -1;
    }
    memcpy(ret->host, host, length);
    ret->host[length] = '\0';
    ret->port = (int)port;
    return 0;
}

static int resolve(const struct listen_address *address, struct addrinfo **ret)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC,
                                   .ai_socktype = SOCK_STREAM,
                                   .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    char port[8];
    snprintf(port, sizeof(port), "%d", address->port);
    return getaddrinfo(address->host, port, &hints, ret);
}

static bool is_loopback(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)address;
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    }
    if (address->sa_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)address;
        return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
    }
    return false;
}

bool listen_is_loopback(const struct listen_address *address)
{
    struct addrinfo *list;
    if (resolve(address, &list) != 0)
        return false;
    bool all = true;
    for (const struct addrinfo *i = list; i != NULL; i = i->ai_next)
        all = all && is_loopback(i->ai_addr);
    freeaddrinfo(list);
    return all;
}

static int port_of(int fd)
{
    struct sockaddr_storage bound;
    socklen_t length = sizeof(bound);
    if (getsockname(fd, (struct sockaddr *)&bound, &length) != 0)
        return -1;
    if (bound.ss_family == AF_INET6)
        return ntohs(((struct sockaddr_in6 *)&bound)->sin6_port);
    return ntohs(((struct sockaddr_in *)&bound)->sin_port);
}

/* Advice on a socket that cannot be bound. */
static const char *advice_on(int error)
{
    switch (error) {
    case EADDRINUSE:
        return "; another program has this port: give another one, --listen=127.0.0.1:8081 "
               "(make serve LISTEN=127.0.0.1:8081), or 0 for any free one";
    case EACCES:
        return "; ports below 1024 are for root: give another one, --listen=127.0.0.1:8081 "
               "(make serve LISTEN=127.0.0.1:8081)";
    case EADDRNOTAVAIL:
        return "; no network interface of this machine has this address";
    default:
        return "";
    }
}

int listen_open(const struct listen_address *address, int *ret_port, char *message, size_t size)
{
    struct addrinfo *list;
    int code = resolve(address, &list);
    if (code != 0) {
        snprintf(message, size, "cannot resolve %s: %s", address->host, gai_strerror(code));
        return -1;
    }
    int fd = socket(list->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int on = 1;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
        bind(fd, list->ai_addr, list->ai_addrlen) != 0 || listen(fd, BACKLOG) != 0 ||
        (*ret_port = port_of(fd)) < 0) {
        snprintf(message, size, "cannot listen on %s:%d: %s%s", address->host, address->port,
                 strerror(errno), advice_on(errno));
        if (fd >= 0)
            close(fd);
        fd = -1;
    }
    freeaddrinfo(list);
    return fd;
}
