/*
 * "http://host[:port][/path]" or "http+unix:///socket[:/path]". The name is resolved once, here,
 * so that a run never waits for a name server.
 */
#include "target.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

enum { PORT_MAX = 65535, HTTP_PORT = 80 };

static const char tcp_scheme[] = "http://";
static const char unix_scheme[] = "http+unix://";

static int fail(char *message, size_t size, const char *url, const char *why)
{
    snprintf(message, size, "%s: %s", url, why);
    return -1;
}

/* Copies the path and query; a fragment stays with the client. */
static bool copy_path(struct load_target *target, const char *path)
{
    size_t length = strcspn(path, "#");
    if (length == 0)
        path = "/", length = 1;
    if (path[0] == '?') { /* http://host?query */
        int n = snprintf(target->path, sizeof target->path, "/%.*s", (int)length, path);
        return n < (int)sizeof target->path;
    }
    if (length >= sizeof target->path)
        return false;
    memcpy(target->path, path, length);
    target->path[length] = '\0';
    return true;
}

/* Takes the first IPv4 address, else the first address: "localhost" has both kinds. */
static int resolve(struct load_target *target, const char *name, int port)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list;
    int error = getaddrinfo(name, NULL, &hints, &list);
    if (error != 0)
        return error;
    const struct addrinfo *chosen = list;
    for (const struct addrinfo *each = list; each != NULL; each = each->ai_next)
        if (each->ai_family == AF_INET) {
            chosen = each;
            break;
        }
    error = getnameinfo(chosen->ai_addr, chosen->ai_addrlen, target->address,
                        sizeof target->address, NULL, 0, NI_NUMERICHOST);
    freeaddrinfo(list);
    target->port = port;
    return error;
}

static int parse_unix(const char *url, struct load_target *ret, char *message, size_t size)
{
    const char *path = url + strlen(unix_scheme);
    const char *colon = strstr(path, ":/");
    size_t length = colon != NULL ? (size_t)(colon - path) : strlen(path);
    if (path[0] != '/' || length >= sizeof ret->socket_path)
        return fail(message, size, url, "the socket's absolute path, at most 107 bytes, expected");
    memcpy(ret->socket_path, path, length);
    ret->socket_path[length] = '\0';
    strcpy(ret->host, "localhost");
    if (!copy_path(ret, colon != NULL ? colon + 1 : ""))
        return fail(message, size, url, "path too long");
    return 0;
}

/* "host", "host:port", "[::1]:port" -> name without brackets and port; false if malformed. */
static bool split_authority(const char *text, size_t length, char *ret_name, size_t size,
                            int *ret_port)
{
    const char *end = text + length, *name = text, *name_end, *rest;
    if (length > 0 && text[0] == '[') {
        name++;
        name_end = memchr(name, ']', (size_t)(end - name));
        if (name_end == NULL)
            return false;
        rest = name_end + 1;
    } else {
        const char *colon = memchr(text, ':', length);
        rest = name_end = colon != NULL ? colon : end;
    }
    long port = HTTP_PORT;
    if (rest < end) {
        char *port_end;
        if (*rest != ':' || rest + 1 == end || rest[1] < '0' || rest[1] > '9')
            return false;
        port = strtol(rest + 1, &port_end, 10);
        if (port_end != end || port < 1 || port > PORT_MAX)
            return false;
    }
    size_t name_length = (size_t)(name_end - name);
    if (name_length == 0 || name_length >= size)
        return false;
    memcpy(ret_name, name, name_length);
    ret_name[name_length] = '\0';
    *ret_port = (int)port;
    return true;
}

/* A space is allowed only in a placeholder: {{random 1 10}} (template.h). */
static bool is_url_text(const char *url)
{
    bool placeholder = false;
    for (const char *c = url; *c != '\0'; c++) {
        if (strncmp(c, placeholder ? "}}" : "{{", 2) == 0)
            placeholder = !placeholder;
        if ((*c <= ' ' || *c > '~') && !(placeholder && *c == ' '))
            return false;
    }
    return !placeholder;
}

int load_target_parse(const char *url, struct load_target *ret, char *message, size_t size)
{
    struct load_target target = {0};
    if (!is_url_text(url))
        return fail(message, size, url, "only printable ASCII without spaces is a URL");
    if (strncmp(url, unix_scheme, strlen(unix_scheme)) == 0) {
        if (parse_unix(url, &target, message, size) != 0)
            return -1;
        *ret = target;
        return 0;
    }
    if (strncmp(url, tcp_scheme, strlen(tcp_scheme)) != 0)
        return fail(message, size, url,
                    "http://HOST[:PORT][/PATH] or http+unix:///SOCKET expected");

    const char *authority = url + strlen(tcp_scheme);
    size_t length = strcspn(authority, "/?#");
    char name[sizeof target.host];
    int port;
    if (length >= sizeof target.host || memchr(authority, '@', length) != NULL ||
        !split_authority(authority, length, name, sizeof name, &port))
        return fail(message, size, url, "HOST or HOST:PORT expected after http://");
    memcpy(target.host, authority, length);
    if (!copy_path(&target, authority + length))
        return fail(message, size, url, "path too long");
    int error = resolve(&target, name, port);
    if (error != 0)
        return fail(message, size, url, gai_strerror(error));
    *ret = target;
    return 0;
}

void target_address(const struct load_target *target, struct target_address *ret)
{
    memset(ret, 0, sizeof *ret);
    if (target->socket_path[0] != '\0') {
        struct sockaddr_un *local = (struct sockaddr_un *)&ret->storage;
        local->sun_family = AF_UNIX;
        strcpy(local->sun_path, target->socket_path);
        ret->length = sizeof *local;
        return;
    }
    char port[8];
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                             .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    snprintf(port, sizeof port, "%d", target->port);
    if (getaddrinfo(target->address, port, &hints, &found) != 0)
        return; /* no family: for instance, the named interface is gone */
    memcpy(&ret->storage, found->ai_addr, found->ai_addrlen);
    ret->length = found->ai_addrlen;
    freeaddrinfo(found);
}

int target_socket(const struct target_address *address)
{
    int family = address->storage.ss_family;
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int on = 1;
    if (fd >= 0 && family != AF_UNIX)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on,
                         sizeof on); /* failure costs only speed */
    return fd;
}
