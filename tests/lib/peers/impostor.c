#include "impostor.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 200, LISTENER = 0, STOP = 1, FIRST_CONNECTION = 2 };

struct impostor {
    pthread_t thread;
    enum impostor_manner manner;
    const char *says;
    struct pollfd fds[FIRST_CONNECTION + CONNECTIONS_MAX];
    nfds_t n;
    int stop_pipe[2], accepted;
};

/* False: the connection must be closed. */
static bool misbehave(const struct impostor *impostor, int fd)
{
    static const char *const answers[] = {
        [IMPOSTOR_GARBAGE] = "HTTP/1.0 400 Bad Request\r\n\r\n",
        [IMPOSTOR_BAD_TYPE] = "*2\r\n:1\r\n*0\r\n",
        [IMPOSTOR_HUGE] = "$1099511627776\r\nx",
    };
    char buffer[4096];
    ssize_t n = recv(fd, buffer, sizeof buffer, 0);
    if (n <= 0)
        return false;
    if (impostor->manner == IMPOSTOR_SILENT || impostor->manner == IMPOSTOR_ENDLESS)
        return true;
    const char *answer =
        impostor->manner == IMPOSTOR_SAYS ? impostor->says : answers[impostor->manner];
    return send(fd, answer, strlen(answer), MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
}

static void write_on(int fd)
{
    static char line[4096];
    memset(line, '+', sizeof line);
    (void)!send(fd, line, sizeof line, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void take_connection(struct impostor *impostor)
{
    int fd = accept4(impostor->fds[LISTENER].fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    impostor->accepted++;
    if (impostor->manner == IMPOSTOR_HANGS_UP ||
        impostor->n == FIRST_CONNECTION + CONNECTIONS_MAX) {
        close(fd);
        return;
    }
    short events = impostor->manner == IMPOSTOR_ENDLESS ? POLLIN | POLLOUT : POLLIN;
    impostor->fds[impostor->n++] = (struct pollfd){.fd = fd, .events = events};
}

static void *serve(void *arg)
{
    struct impostor *impostor = arg;
    while (poll(impostor->fds, impostor->n, -1) >= 0 && impostor->fds[STOP].revents == 0) {
        for (nfds_t i = impostor->n; i-- > FIRST_CONNECTION;) {
            struct pollfd *at = &impostor->fds[i];
            bool stays = true;
            if ((at->revents & (POLLERR | POLLHUP)) != 0)
                stays = false;
            else if (impostor->manner == IMPOSTOR_ENDLESS && (at->revents & POLLOUT) != 0)
                write_on(at->fd);
            else if ((at->revents & POLLIN) != 0)
                stays = misbehave(impostor, at->fd);
            if (!stays) {
                close(at->fd);
                *at = impostor->fds[--impostor->n];
            }
        }
        if (impostor->fds[LISTENER].revents != 0)
            take_connection(impostor);
    }
    return NULL;
}

static struct impostor *open_with(int port, enum impostor_manner manner, const char *says)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct impostor *impostor = calloc(1, sizeof *impostor);
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (impostor == NULL || fd < 0 || pipe2(impostor->stop_pipe, O_CLOEXEC) != 0)
        goto fail;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    impostor->manner = manner;
    impostor->says = says;
    impostor->fds[LISTENER] = (struct pollfd){.fd = fd, .events = POLLIN};
    impostor->fds[STOP] = (struct pollfd){.fd = impostor->stop_pipe[0], .events = POLLIN};
    impostor->n = FIRST_CONNECTION;
    if (bind(fd, (struct sockaddr *)&address, sizeof address) == 0 && listen(fd, 64) == 0 &&
        pthread_create(&impostor->thread, NULL, serve, impostor) == 0)
        return impostor;
    close(impostor->stop_pipe[0]);
    close(impostor->stop_pipe[1]);
fail:
    if (fd >= 0)
        close(fd);
    free(impostor);
    return NULL;
}

struct impostor *impostor_open(int port, enum impostor_manner manner)
{
    return open_with(port, manner, NULL);
}

struct impostor *impostor_say(int port, const char *answer)
{
    return open_with(port, IMPOSTOR_SAYS, answer);
}

int impostor_close(struct impostor *impostor)
{
    close(impostor->stop_pipe[1]);
    pthread_join(impostor->thread, NULL);
    for (nfds_t i = 0; i < impostor->n; i++)
        close(impostor->fds[i].fd); /* including the read end of the pipe */
    int accepted = impostor->accepted;
    free(impostor);
    return accepted;
}
