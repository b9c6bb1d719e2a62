#include "http_origin.h"

#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

enum { HOST_MAX = 255 };

/* Copies the host of "host:port", "host" or "[v6]:port", without brackets and without the dot that
 * ends a full name. False: there is none, or it is too long. */
static bool take_host(const char *text, size_t length, char ret[HOST_MAX + 1])
{
    const char *end = text + length;
    if (length > 0 && *text == '[') {
        text++;
        end = memchr(text, ']', (size_t)(end - text));
        if (end == NULL)
            return false;
    } else {
        const char *colon = memchr(text, ':', length);
        if (colon != NULL)
            end = colon;
        if (end > text && end[-1] == '.')
            end--;
    }
    const size_t n = (size_t)(end - text);
    if (n == 0 || n > HOST_MAX)
        return false;
    memcpy(ret, text, n);
    ret[n] = '\0';
    return true;
}

struct address {
    bool is_v4, is_v6;
    struct in_addr v4;
    struct in6_addr v6;
};

static struct address address_of(const char *host)
{
    struct address address = {0};
    address.is_v4 = inet_pton(AF_INET, host, &address.v4) == 1;
    address.is_v6 = inet_pton(AF_INET6, host, &address.v6) == 1;
    return address;
}

static bool is_loopback(const char *host)
{
    const struct address address = address_of(host);
    return strcasecmp(host, "localhost") == 0 ||
           (address.is_v4 && ntohl(address.v4.s_addr) >> 24 == 127) ||
           (address.is_v6 && IN6_IS_ADDR_LOOPBACK(&address.v6));
}

/* Of the host that is listened on. */
static bool is_any(const char *host)
{
    const struct address address = address_of(host);
    return (address.is_v4 && address.v4.s_addr == INADDR_ANY) ||
           (address.is_v6 && IN6_IS_ADDR_UNSPECIFIED(&address.v6));
}

static bool is_listed(const char *host, const char *names)
{
    const size_t length = strlen(host);
    while (*names != '\0') {
        const size_t n = strcspn(names, ",");
        if (n == length && strncasecmp(names, host, n) == 0)
            return true;
        names += n + (names[n] == ',');
    }
    return false;
}

bool origin_host_is_ours(const struct http_value *host, const char *listen, const char *allowed)
{
    char asked[HOST_MAX + 1], own[HOST_MAX + 1];
    if (host->count == 0)
        return true;
    if (!take_host(host->text, host->length, asked))
        return false;
    if (is_loopback(asked) || is_listed(asked, allowed))
        return true;
    if (!take_host(listen, strlen(listen), own))
        return false;
    const struct address address = address_of(asked);
    return strcasecmp(asked, own) == 0 || (is_any(own) && (address.is_v4 || address.is_v6));
}

bool origin_is_ours(const struct http_value *origin, const struct http_value *host)
{
    static const char *const schemes[] = {"http://", "https://"};
    if (origin->count == 0)
        return true;
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        const size_t n = strlen(schemes[i]);
        if (origin->length == n + host->length && strncmp(origin->text, schemes[i], n) == 0 &&
            host->length > 0 && strncasecmp(origin->text + n, host->text, host->length) == 0)
            return true;
    }
    return false;
}

bool origin_fetch_is_ours(const struct http_value *fetch_site)
{
    static const char *const ours[] = {"same-origin", "none"};
    if (fetch_site->count == 0)
        return true;
    for (size_t i = 0; i < sizeof ours / sizeof ours[0]; i++)
        if (fetch_site->count == 1 && fetch_site->length == strlen(ours[i]) &&
            memcmp(fetch_site->text, ours[i], fetch_site->length) == 0)
            return true;
    return false;
}
