#include "redis_url.h"

#include "provider.h"

#include <ctype.h>
#include <string.h>

enum { DEFAULT_PORT = 6379, PORT_MAX = 65535 };

static lk_status parse_unix(const char *text, lk_redis_url *url, lk_error *error);
static lk_status parse_tcp(const char *text, lk_redis_url *url, lk_error *error);

lk_status lk_redis_url_parse(const char *text, lk_redis_url *ret, lk_error *error)
{
    static const char tcp[] = "redis://", local[] = "unix://", tls[] = "rediss://";
    lk_redis_url url = {.port = DEFAULT_PORT};
    lk_status status;
    if (text == NULL || text[0] == '\0')
        return lk_fail(error, LK_INVALID,
                       "a Redis guard needs an endpoint: give redis://host[:port][/db]");
    if (strchr(text, ',') != NULL)
        return lk_fail(error, LK_INVALID,
                       "this guard uses one Redis node, but several endpoints were given");
    if (strncmp(text, tcp, sizeof tcp - 1) == 0)
        status = parse_tcp(text + sizeof tcp - 1, &url, error);
    else if (strncmp(text, local, sizeof local - 1) == 0)
        status = parse_unix(text + sizeof local - 1, &url, error);
    else if (strncmp(text, tls, sizeof tls - 1) == 0)
        status = lk_fail(error, LK_INVALID,
                         "TLS to Redis is not offered: use redis:// or unix:// to a proxy that "
                         "speaks it, such as stunnel");
    else
        status = lk_fail(error, LK_INVALID,
                         "unknown kind of Redis endpoint: use redis://host[:port][/db], "
                         "unix:///path/to/socket, redis+sentinel:// or redis+cluster://");
    if (status == LK_OK)
        *ret = url;
    return status;
}

lk_status lk_redis_url_login(lk_redis_url *url, const char *variable, lk_error *error)
{
    lk_login login;
    if (url->password[0] != '\0')
        return LK_OK;
    const char *wrong = lk_login_read(variable, &login);
    if (wrong != NULL)
        return lk_fail(error, LK_INVALID,
                       "the environment variable %s %s: give \"user:password\" or \"password\", of "
                       "at most %d bytes each",
                       variable, wrong, LK_LOGIN_MAX);
    memcpy(url->user, login.user, sizeof url->user);
    memcpy(url->password, login.password, sizeof url->password);
    return LK_OK;
}

size_t lk_redis_url_span(const char *list)
{
    const char *comma = strchr(list, ',');
    for (; comma != NULL; comma = strchr(comma + 1, ',')) {
        size_t scheme = strspn(comma + 1, "abcdefghijklmnopqrstuvwxyz+");
        if (scheme > 0 && strncmp(comma + 1 + scheme, "://", 3) == 0)
            return (size_t)(comma - list);
    }
    return strlen(list);
}

/* Decimal digits only, up to the end of the text. */
static bool parse_number(const char *text, int max, int *ret)
{
    int value = 0;
    if (text[0] == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (!isdigit((unsigned char)*text))
            return false;
        value = value * 10 + (*text - '0');
        if (value > max)
            return false;
    }
    *ret = value;
    return true;
}

static bool copy(const char *from, size_t length, char *to, size_t size)
{
    if (length >= size)
        return false;
    memcpy(to, from, length);
    to[length] = '\0';
    return true;
}

static int hex_digit(char c)
{
    const char *digits = "0123456789abcdef";
    const char *at = strchr(digits, tolower((unsigned char)c));
    return c == '\0' || at == NULL ? -1 : (int)(at - digits);
}

/* Copies a percent-encoded piece; refuses bad escapes and NUL bytes. */
static bool decode(const char *from, size_t length, char *to, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < length; i++) {
        char c = from[i];
        if (c == '%') {
            if (i + 2 >= length)
                return false;
            int high = hex_digit(from[i + 1]), low = hex_digit(from[i + 2]);
            if (high < 0 || low < 0)
                return false;
            c = (char)(high * 16 + low);
            i += 2;
        }
        if (c == '\0' || n + 1 >= size)
            return false;
        to[n++] = c;
    }
    to[n] = '\0';
    return true;
}

static lk_status parse_unix(const char *text, lk_redis_url *url, lk_error *error)
{
    static const char db[] = "?db=";
    const char *end = strchr(text, '?');
    size_t length = end == NULL ? strlen(text) : (size_t)(end - text);
    if (text[0] != '/' || length < 2)
        return lk_fail(error, LK_INVALID, "a unix endpoint needs an absolute path: unix:///path");
    if (!copy(text, length, url->path, sizeof url->path))
        return lk_fail(error, LK_INVALID, "the path of the unix endpoint is too long");
    if (end != NULL && (strncmp(end, db, sizeof db - 1) != 0 ||
                        !parse_number(end + sizeof db - 1, LK_REDIS_DB_MAX, &url->db)))
        return lk_fail(error, LK_INVALID, "bad query in the unix endpoint: only ?db=N is known");
    return LK_OK;
}

static bool parse_login(const char *text, size_t length, lk_redis_url *url)
{
    const char *colon = memchr(text, ':', length);
    if (colon == NULL)
        return false;
    size_t user = (size_t)(colon - text);
    return decode(text, user, url->user, sizeof url->user) &&
           decode(colon + 1, length - user - 1, url->password, sizeof url->password) &&
           url->password[0] != '\0';
}

static lk_status parse_tcp(const char *text, lk_redis_url *url, lk_error *error)
{
    const char *slash = strchr(text, '/');
    size_t length = slash == NULL ? strlen(text) : (size_t)(slash - text);
    const char *at = memrchr(text, '@', length);
    if (at != NULL) {
        if (!parse_login(text, (size_t)(at - text), url))
            return lk_fail(error, LK_INVALID,
                           "bad login in the Redis endpoint: use [user]:password@, with reserved "
                           "characters percent-encoded");
        length -= (size_t)(at + 1 - text);
        text = at + 1;
    }
    const char *host = text, *host_end, *port = NULL;
    if (text[0] == '[') {
        host = text + 1;
        host_end = memchr(text, ']', length);
        if (host_end != NULL && host_end + 1 < text + length)
            port = host_end + 1;
    } else {
        host_end = memchr(text, ':', length);
        port = host_end;
        if (host_end == NULL)
            host_end = text + length;
    }
    if (host_end == NULL || host_end == host ||
        !copy(host, (size_t)(host_end - host), url->host, sizeof url->host))
        return lk_fail(error, LK_INVALID, "no host in the Redis endpoint, or one that is too long");
    char digits[8];
    if (port != NULL &&
        (*port != ':' ||
         !copy(port + 1, (size_t)(text + length - port - 1), digits, sizeof digits) ||
         !parse_number(digits, PORT_MAX, &url->port) || url->port == 0))
        return lk_fail(error, LK_INVALID, "bad port in the Redis endpoint: 1 to %d", PORT_MAX);
    if (slash != NULL && slash[1] != '\0' && !parse_number(slash + 1, LK_REDIS_DB_MAX, &url->db))
        return lk_fail(error, LK_INVALID, "bad database number in the Redis endpoint: 0 to %d",
                       LK_REDIS_DB_MAX);
    return LK_OK;
}
