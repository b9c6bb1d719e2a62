/* The program's side of the guardian: starts it, sends requests, waits for its end. */
#include "sandbox_process.h"

#include <errno.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int receive(const struct guardian *guardian, struct guardian_reply *ret)
{
    struct guardian_reply reply;
    ssize_t length;
    do
        length = recv(guardian->socket, &reply, sizeof reply, 0);
    while (length < 0 && errno == EINTR);
    if (length != (ssize_t)sizeof reply)
        return EPIPE;
    if (reply.error == 0)
        *ret = reply;
    return reply.error;
}

int guardian_open(struct guardian *guardian, const char *dir)
{
    int error = 0;
    int sockets[2] = {-1, -1};
    /* The guardian watches this pidfd as well as the socket: a forked child of the program may
     * hold a copy of the socket and outlive it. */
    int self = pidfd_open(getpid(), 0);
    if (self < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
        error = errno;
        goto out;
    }
    sigset_t all, before; /* blocked: no handler of the program may run in the guardian */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    pid_t pid = fork();
    if (pid == 0)
        guardian_main(sockets[1], self, dir);
    error = pid < 0 ? errno : 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0)
        goto out;
    *guardian = (struct guardian){.pid = pid, .socket = sockets[0]};
    sockets[0] = -1;
    close(sockets[1]);
    sockets[1] = -1;
    struct guardian_reply ready;
    error = receive(guardian, &ready);
    if (error != 0)
        guardian_close(guardian);
out:
    for (int i = 0; i < 2; i++)
        if (sockets[i] >= 0)
            close(sockets[i]);
    if (self >= 0)
        close(self);
    return error;
}

int guardian_ask(const struct guardian *guardian, const struct guardian_request *request,
                 struct guardian_reply *ret)
{
    if (send(guardian->socket, request, sizeof *request, MSG_NOSIGNAL) < 0)
        return EPIPE;
    return receive(guardian, ret);
}

int guardian_close(struct guardian *guardian)
{
    static const struct guardian_request end = {.verb = GUARDIAN_CLOSE};
    (void)!send(guardian->socket, &end, sizeof end, MSG_NOSIGNAL); /* may fail: it is gone */
    int status = 0;
    pid_t reaped;
    do
        reaped = waitpid(guardian->pid, &status, 0);
    while (reaped < 0 && errno == EINTR);
    close(guardian->socket);
    /* ECHILD: the program ignores SIGCHLD or reaps all children itself. The guardian has ended. */
    return reaped < 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0) ? 0 : -1;
}
