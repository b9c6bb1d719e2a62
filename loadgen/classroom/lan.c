#include "lan.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 128, PORT_MAX = 65535 };

/* Other machines can reach it: not loopback, not of this link alone. */
static bool is_reachable(const struct ifaddrs *one, int family)
{
    if (one->ifa_addr == NULL || one->ifa_addr->sa_family != family ||
        (one->ifa_flags & IFF_UP) == 0 || (one->ifa_flags & IFF_LOOPBACK) != 0)
        return false;
    if (family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)one->ifa_addr;
        return ntohl(in->sin_addr.s_addr) >> 16 != 0xA9FE; /* 169.254 */
    }
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)one->ifa_addr;
    return !IN6_IS_ADDR_LINKLOCAL(&in6->sin6_addr);
}

static bool take_first(const struct ifaddrs *all, int family, struct lan_address *ret)
{
    const socklen_t length =
        family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
    for (const struct ifaddrs *one = all; one != NULL; one = one->ifa_next)
        if (is_reachable(one, family) && getnameinfo(one->ifa_addr, length, ret->host, LAN_HOST_MAX,
                                                     NULL, 0, NI_NUMERICHOST) == 0)
            return true;
    return false;
}

static int find_own(struct lan_address *ret, char *message)
{
    struct ifaddrs *all = NULL;
    ret->port = LAN_DEFAULT_PORT;
    const bool found =
        getifaddrs(&all) == 0 && (take_first(all, AF_INET, ret) || take_first(all, AF_INET6, ret));
    if (all != NULL)
        freeifaddrs(all);
    if (found)
        return 0;
    snprintf(message, LAN_MESSAGE_MAX,
             "this machine has no address that others reach; name one: HOST:PORT");
    return -1;
}

static int wrong(const char *given, char *message)
{
    snprintf(message, LAN_MESSAGE_MAX, "'%.200s' is not an address: HOST:PORT, or [IPv6]:PORT",
             given);
    return -1;
}

static bool is_host(const char *host)
{
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-:";
    return host[0] != '\0' && host[strspn(host, allowed)] == '\0';
}

int lan_choose(const char *given, struct lan_address *ret, char message[LAN_MESSAGE_MAX])
{
    const char *host = given, *end, *port;
    if (given == NULL)
        return find_own(ret, message);
    if (given[0] == '[') {
        host = given + 1;
        end = strchr(host, ']');
        if (end == NULL || (end[1] != '\0' && end[1] != ':'))
            return wrong(given, message);
        port = end[1] == ':' ? end + 2 : NULL;
    } else {
        end = host + strcspn(host, ":");
        port = *end == ':' ? end + 1 : NULL;
    }
    snprintf(ret->host, sizeof ret->host, "%.*s", (int)(end - host), host);
    char *rest = NULL;
    errno = 0;
    const long number = port != NULL ? strtol(port, &rest, 10) : LAN_DEFAULT_PORT;
    if (end - host >= LAN_HOST_MAX || !is_host(ret->host) || errno != 0 || number < 0 ||
        number > PORT_MAX || (port != NULL && (*port < '0' || *port > '9' || *rest != '\0')))
        return wrong(given, message);
    ret->port = (int)number;
    return 0;
}

static int port_of(int fd)
{
    struct sockaddr_storage bound;
    socklen_t length = sizeof bound;
    if (getsockname(fd, (struct sockaddr *)&bound, &length) != 0)
        return -1;
    return ntohs(bound.ss_family == AF_INET
                     ? ((const struct sockaddr_in *)(const void *)&bound)->sin_port
                     : ((const struct sockaddr_in6 *)(const void *)&bound)->sin6_port);
}

static int listen_at(const struct addrinfo *at)
{
    const int one = 1;
    int fd = socket(at->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (at->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    if (bind(fd, at->ai_addr, at->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
}

int lan_listen(struct lan_address *address, char message[LAN_MESSAGE_MAX])
{
    struct addrinfo *at = NULL, hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    char port[8];
    snprintf(port, sizeof port, "%d", address->port);
    const int failed = getaddrinfo(address->host, port, &hints, &at);
    int fd = failed == 0 && at != NULL ? listen_at(at) : -1;
    const char *why = failed != 0 ? gai_strerror(failed) : strerror(errno);
    if (fd >= 0)
        address->port = port_of(fd);
    else
        snprintf(message, LAN_MESSAGE_MAX, "cannot listen at %.200s, port %d: %.100s",
                 address->host, address->port, why);
    if (at != NULL)
        freeaddrinfo(at);
    return fd;
}

void lan_text(const struct lan_address *address, bool short_form, char *ret, int size)
{
    const bool v6 = strchr(address->host, ':') != NULL;
    int n = snprintf(ret, (size_t)size, v6 ? "[%s]" : "%s", address->host);
    if (!short_form && n < size)
        snprintf(ret + n, (size_t)(size - n), ":%d", address->port);
}
