#include "notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int notify(const char *state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv("NOTIFY_SOCKET");
    if (path == NULL || path[0] == '\0')
        return 0;
    const size_t length = strlen(path);
    if ((path[0] != '/' && path[0] != '@') || length >= sizeof address.sun_path) {
        errno = EINVAL;
        return -1;
    }
    memcpy(address.sun_path, path, length);
    if (path[0] == '@') /* an abstract name begins with NUL */
        address.sun_path[0] = '\0';
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    ssize_t sent = sendto(fd, state, strlen(state), MSG_NOSIGNAL, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length));
    const int error = errno;
    close(fd);
    errno = error;
    return sent == (ssize_t)strlen(state) ? 0 : -1;
}

/* A whole number above 0; -1: anything else. */
static int64_t number_of(const char *name)
{
    const char *text = getenv(name);
    char *end;
    if (text == NULL || text[0] < '0' || text[0] > '9')
        return -1;
    errno = 0;
    const long long number = strtoll(text, &end, 10);
    return *end == '\0' && errno == 0 && number > 0 ? number : -1;
}

int64_t notify_watchdog_ms(void)
{
    const int64_t us = number_of("WATCHDOG_USEC");
    const int64_t pid = getenv("WATCHDOG_PID") != NULL ? number_of("WATCHDOG_PID") : getpid();
    return us < 0 || pid != getpid() ? -1 : us / 1000 > 0 ? us / 1000 : 1;
}
