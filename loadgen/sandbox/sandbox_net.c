/* Ports, and one bounded question to a server. */
#include "sandbox_process.h"
#include "steady.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Below Linux's range for outgoing connections (32768 and up). While a server is down, no client's
 * own port can be its port. So a restart finds it free, and a client cannot connect to itself. */
enum { PORT_FIRST = 20000, PORT_COUNT = 12000, PORT_LOOKS_MAX = 1000 };

static struct sockaddr_in loopback(int port)
{
    return (struct sockaddr_in){.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

bool sandbox_port_taken(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    int on = 1; /* as servers do: ignores connections in TIME_WAIT */
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    struct sockaddr_in address = loopback(port);
    bool taken = bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 1) != 0;
    close(fd);
    return taken;
}

int sandbox_free_port(void)
{
    for (int look = 0; look < PORT_LOOKS_MAX; look++) {
        uint32_t random = 0;
        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
            continue;
        int port = PORT_FIRST + (int)(random % PORT_COUNT);
        int held = sandbox_hold_port(port); /* first: the test below disturbs a port's owner */
        if (held < 0)
            continue;
        bool taken = sandbox_port_taken(port);
        close(held);
        if (!taken)
            return port;
    }
    return -1;
}

/* A name in Linux's abstract namespace of sockets: it ends with its process and leaves no file. */
int sandbox_hold_port(int port)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int length = snprintf(name.sun_path + 1, sizeof name.sun_path - 1, "seckill-port-%d", port);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
    if (fd >= 0 && bind(fd, (struct sockaddr *)&name, size) != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

static int connect_to(const char *path, int port)
{
    struct sockaddr_in inet = loopback(port);
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    if (path != NULL) {
        if (strlen(path) >= sizeof local.sun_path)
            return -1;
        strcpy(local.sun_path, path);
    }
    int fd = socket(path != NULL ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    int failed = path != NULL ? connect(fd, (struct sockaddr *)&local, sizeof local)
                              : connect(fd, (struct sockaddr *)&inet, sizeof inet);
    if (failed != 0) {
        close(fd);
        return -1;
    }
    return fd;
}

bool sandbox_answers(const char *path, int port, const char *question, const char *wanted,
                     int64_t wait_ms)
{
    return sandbox_answers_bytes(path, port, question, strlen(question), wanted, wait_ms);
}

/* Sends the question and reads until `need` bytes have come, the other side has closed, or the
 * time is over. Returns how many came. */
static size_t converse(const char *path, int port, const void *question, size_t length,
                       char *answer, size_t need, int64_t wait_ms)
{
    size_t got = 0;
    int fd = connect_to(path, port);
    if (fd < 0)
        return 0;
    int64_t deadline_ms = steady_ms() + wait_ms;
    ssize_t n = send(fd, question, length, MSG_NOSIGNAL);
    while (n > 0 && got < need) {
        int64_t left_ms = deadline_ms - steady_ms();
        struct pollfd readable = {.fd = fd, .events = POLLIN};
        if (left_ms <= 0)
            break;
        int ready = poll(&readable, 1, (int)left_ms);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            break;
        n = recv(fd, answer + got, need - got, 0);
        got += n > 0 ? (size_t)n : 0;
    }
    close(fd);
    return got;
}

bool sandbox_answers_bytes(const char *path, int port, const void *question, size_t length,
                           const char *wanted, int64_t wait_ms)
{
    char answer[64];
    size_t need = strlen(wanted);
    return need <= sizeof answer &&
           converse(path, port, question, length, answer, need, wait_ms) == need &&
           memcmp(answer, wanted, need) == 0;
}

size_t sandbox_converse(int port, const void *question, size_t length, char *ret, size_t need,
                        int64_t wait_ms)
{
    return converse(NULL, port, question, length, ret, need, wait_ms);
}

void sandbox_ask(int port, const char *question, char *ret, size_t size, int64_t wait_ms)
{
    ret[converse(NULL, port, question, strlen(question), ret, size - 1, wait_ms)] = '\0';
}
