#include "memcached_server.h"
#include "number.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

enum { PORT_MAX = 65535 };

static lk_status parse_tcp(lk_memcached_server *server, const char *text, lk_error *error)
{
    const char *host = text, *end, *port = NULL;
    if (text[0] == '[') {
        host = text + 1;
        end = strchr(text, ']');
        port = end == NULL || end[1] == '\0' ? NULL : end + 1;
    } else {
        end = strchr(text, ':');
        port = end;
        end = end == NULL ? text + strlen(text) : end;
    }
    if (end == NULL || end == host || (size_t)(end - host) > LK_MEMCACHED_HOST_MAX)
        return lk_fail(error, LK_INVALID, "no host in the memcached endpoint, or one too long");
    memcpy(server->host, host, (size_t)(end - host));
    int number = LK_MEMCACHED_PORT;
    if (port != NULL) {
        const char *rest = *port == ':' ? lk_digits(port + 1, PORT_MAX, &number) : NULL;
        if (rest == NULL || *rest != '\0' || number == 0)
            return lk_fail(error, LK_INVALID, "bad port in the memcached endpoint: use HOST:PORT");
    }
    snprintf(server->port, sizeof server->port, "%d", number);
    return LK_OK;
}

static lk_status parse(lk_memcached_server *server, const char *text, lk_error *error)
{
    static const char local[] = "unix://";
    if (text == NULL || text[0] == '\0')
        return lk_fail(error, LK_INVALID, "memcached needs an endpoint: HOST:PORT");
    if (strchr(text, ',') != NULL)
        return lk_fail(error, LK_INVALID,
                       "memcached takes one host: clients with different lists, or one that takes "
                       "a host for dead, would hold the same key on different hosts");
    if (strncmp(text, local, sizeof local - 1) != 0)
        return parse_tcp(server, text, error);
    text += sizeof local - 1;
    if (text[0] != '/' || strlen(text) >= sizeof server->local.sun_path)
        return lk_fail(error, LK_INVALID, "a unix endpoint needs an absolute path, not too long");
    server->local.sun_family = AF_UNIX;
    strcpy(server->local.sun_path, text);
    return LK_OK;
}

/* memcached separates user and password by a space. A server without --auth-file takes the login
 * for a value. The value expires at once, so no other client can read it. */
static lk_status read_login(lk_memcached_server *server, lk_error *error)
{
    lk_login login;
    const char *wrong = lk_login_read(LK_MEMCACHED_LOGIN, &login);
    if (wrong == NULL && login.password[0] != '\0' &&
        (login.user[0] == '\0' || strchr(login.user, ' ') != NULL ||
         strchr(login.password, ' ') != NULL))
        wrong = "has no user or has a space, which memcached does not take";
    if (wrong != NULL)
        return lk_fail(error, LK_INVALID,
                       "the environment variable %s %s: give \"user:password\", of at most %d "
                       "bytes each",
                       LK_MEMCACHED_LOGIN, wrong, LK_LOGIN_MAX);
    if (login.password[0] != '\0')
        snprintf(server->login, sizeof server->login, "set lockkit_login 0 -1 %zu\r\n%s %s\r\n",
                 strlen(login.user) + 1 + strlen(login.password), login.user, login.password);
    return LK_OK;
}

lk_status lk_memcached_server_read(const char *endpoint, lk_memcached_server *ret, lk_error *error)
{
    lk_memcached_server server = {.login = ""};
    lk_status status = parse(&server, endpoint, error);
    if (status == LK_OK)
        status = read_login(&server, error);
    if (status == LK_OK)
        *ret = server;
    return status;
}
