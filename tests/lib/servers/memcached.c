#include "memcached.h"
#include "sandbox_process.h"

#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { PATIENCE_S = 5 };

static bool read_line(int fd, char ret[MEMCACHED_LINE_MAX])
{
    size_t n = 0;
    while (n + 1 < MEMCACHED_LINE_MAX && read(fd, &ret[n], 1) == 1 && ret[n] != '\n')
        n++;
    if (n > 0 && ret[n - 1] == '\r')
        n--;
    ret[n] = '\0';
    return n > 0;
}

static bool log_in(int fd)
{
    char login[SANDBOX_MEMCACHED_LOGIN_MAX], line[MEMCACHED_LINE_MAX];
    sandbox_memcached_login(login);
    return dprintf(fd, "%s", login) > 0 && read_line(fd, line) && strcmp(line, "STORED") == 0;
}

/* Opens a connection, logs in and sends the command. -1: failed. */
static int say(const struct sandbox_server *server, const char *format, va_list args)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)server->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_sec = PATIENCE_S};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 && log_in(fd) &&
        vdprintf(fd, format, args) > 0)
        return fd;
    close(fd);
    return -1;
}

bool memcached_ask(const struct sandbox_server *server, char ret[MEMCACHED_LINE_MAX],
                   const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int fd = say(server, format, args);
    va_end(args);
    bool answered = fd >= 0 && read_line(fd, ret);
    if (fd >= 0)
        close(fd);
    return answered;
}

static int open_dump(const struct sandbox_server *server, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static int open_dump(const struct sandbox_server *server, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int fd = say(server, format, args);
    va_end(args);
    return fd;
}

int memcached_count(const struct sandbox_server *server)
{
    char line[MEMCACHED_LINE_MAX] = "";
    int n = 0, fd = open_dump(server, "lru_crawler metadump all\r\n");
    while (fd >= 0 && read_line(fd, line) && strncmp(line, "key=", 4) == 0)
        n++;
    if (fd >= 0)
        close(fd);
    return strcmp(line, "END") == 0 ? n : -1;
}
