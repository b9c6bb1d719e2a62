/*
 * The guardian: parent of a sandbox's servers. It is forked without exec from a program that may
 * have threads. So nothing here allocates, prints or takes a lock: system calls only.
 */
#include "sandbox_process.h"
#include "steady.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct child {
    pid_t pid; /* 0: free place */
    int pidfd; /* readable once it has ended */
};

/* The numbers of the guardian's two descriptors, so that all others can be closed. */
enum { FD_SOCKET = 3, FD_PROGRAM = 4, FD_FIRST_OTHER = 5, FD_HIGH = 100 };

static struct child children[SANDBOX_SERVERS_MAX];

static void serve(void);
static void end_all(int64_t grace_ms);
static void settle(int socket, int program_pidfd);
static void reset_signals(void);

_Noreturn void guardian_main(int socket, int program_pidfd, const char *dir)
{
    settle(socket, program_pidfd);
    struct guardian_reply ready = {0};
    if (mkdir(dir, 0700) != 0)
        ready.error = errno;
    if (send(FD_SOCKET, &ready, sizeof ready, MSG_NOSIGNAL) < 0 || ready.error != 0)
        _exit(1);
    serve();
    execl("/bin/rm", "rm", "-rf", "--", dir, (char *)NULL);
    _exit(1);
}

/* Its own session: Ctrl-C and a closed terminal reach the program, not its servers. All signals
 * stay blocked (by the forking program), so only SIGKILL ends the guardian early. Then the
 * servers' death signal ends them. */
static void settle(int socket, int program_pidfd)
{
    setsid();
    reset_signals();
    prctl(PR_SET_NAME, "sandbox-guard");
    int high_socket = fcntl(socket, F_DUPFD, FD_HIGH);
    int high_program = fcntl(program_pidfd, F_DUPFD, FD_HIGH);
    int null = open("/dev/null", O_RDWR);
    if (high_socket < 0 || high_program < 0 || null < 0)
        _exit(1);
    for (int fd = 0; fd <= 2; fd++)
        dup2(null, fd);
    dup3(high_socket, FD_SOCKET, O_CLOEXEC);
    dup3(high_program, FD_PROGRAM, O_CLOEXEC);
    closefrom(FD_FIRST_OTHER);
}

static void reset_signals(void)
{
    struct sigaction by_default = {.sa_handler = SIG_DFL};
    for (int number = 1; number < NSIG; number++)
        sigaction(number, &by_default, NULL); /* may fail for KILL, STOP and libc's own signals */
}

static struct child *find(pid_t pid)
{
    for (int i = 0; i < SANDBOX_SERVERS_MAX; i++)
        if (children[i].pid == pid)
            return &children[i];
    return NULL;
}

static int reap(struct child *child)
{
    int status = 0;
    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    close(child->pidfd);
    *child = (struct child){0};
    return status;
}

/* False after wait_ms, or if the program ends before. */
static bool ended_within(const struct child *child, int64_t wait_ms)
{
    int64_t deadline_ms = steady_ms() + wait_ms;
    for (;;) {
        int64_t left_ms = deadline_ms - steady_ms();
        struct pollfd fds[] = {{.fd = child->pidfd, .events = POLLIN},
                               {.fd = FD_PROGRAM, .events = POLLIN}};
        int n = poll(fds, 2, left_ms > 0 ? (int)left_ms : 0);
        if (fds[0].revents != 0)
            return true;
        if ((n > 0 && fds[1].revents != 0) || left_ms <= 0)
            return false;
    }
}

static _Noreturn void become_server(const struct guardian_request *request, pid_t guardian,
                                    int failure_fd)
{
    char *argv[SANDBOX_ARGS_MAX + 1];
    char *arg = (char *)request->args;
    for (int i = 0; i < request->n_args; i++, arg += strlen(arg) + 1)
        argv[i] = arg;
    argv[request->n_args] = NULL;

    sigset_t none;
    sigemptyset(&none);
    int log = open(request->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (log >= 0 && getppid() == guardian && dup2(log, 1) == 1 && dup2(log, 2) == 2) {
        sigprocmask(SIG_SETMASK, &none, NULL);
        execvp(argv[0], argv);
    }
    int error = errno;
    (void)!write(failure_fd, &error, sizeof error);
    _exit(127);
}

static struct guardian_reply start(const struct guardian_request *request)
{
    struct guardian_reply reply = {0};
    struct child *child = find(0);
    int failure[2]; /* closes at exec; else it carries the errno of the failure */
    if (child == NULL || pipe2(failure, O_CLOEXEC) != 0) {
        reply.error = child == NULL ? ENOSPC : errno;
        return reply;
    }
    pid_t self = getpid();
    pid_t pid = fork();
    if (pid == 0)
        become_server(request, self, failure[1]);
    reply.error = pid < 0 ? errno : 0;
    close(failure[1]);
    if (pid > 0) {
        *child = (struct child){.pid = pid, .pidfd = pidfd_open(pid, 0)};
        int error = child->pidfd < 0 ? errno : 0;
        if (error != 0 || read(failure[0], &error, sizeof error) > 0) {
            kill(pid, SIGKILL);
            reap(child);
            reply.error = error;
        } else {
            reply.pid = pid;
            reply.running = true;
        }
    }
    close(failure[0]);
    return reply;
}

/* A stopped process handles SIGTERM only after SIGCONT. */
static void terminate(const struct child *child)
{
    kill(child->pid, SIGTERM);
    kill(child->pid, SIGCONT);
}

/* Waits until all threads of the child are stopped. False: it has ended instead. */
static bool stops(const struct child *child)
{
    siginfo_t info;
    while (waitid(P_PID, (id_t)child->pid, &info, WSTOPPED | WEXITED | WNOWAIT) != 0)
        if (errno != EINTR)
            return false;
    return info.si_code == CLD_STOPPED;
}

static struct guardian_reply signal_child(struct child *child, int signal)
{
    struct guardian_reply reply = {.pid = child->pid, .running = true};
    if (signal == SIGTERM) {
        terminate(child);
        if (!ended_within(child, SANDBOX_DRAIN_MS))
            kill(child->pid, SIGKILL);
    } else if (kill(child->pid, signal) != 0) {
        reply.error = errno;
        return reply;
    }
    if (signal == SIGTERM || signal == SIGKILL || (signal == SIGSTOP && !stops(child))) {
        reply.running = false;
        reply.status = reap(child);
    }
    return reply;
}

static struct guardian_reply answer(const struct guardian_request *request)
{
    if (request->verb == GUARDIAN_START)
        return start(request);
    struct child *child = request->pid > 0 ? find(request->pid) : NULL;
    if (child == NULL)
        return (struct guardian_reply){.error = ESRCH};
    if (request->verb == GUARDIAN_SIGNAL)
        return signal_child(child, request->signal);
    struct guardian_reply reply = {.pid = child->pid, .running = !ended_within(child, 0)};
    if (!reply.running)
        reply.status = reap(child);
    return reply;
}

/* Returns when the program closes the sandbox or ends in any way. */
static void serve(void)
{
    static struct guardian_request request; /* too big for a stack of unknown size */
    for (;;) {
        struct pollfd fds[] = {{.fd = FD_SOCKET, .events = POLLIN},
                               {.fd = FD_PROGRAM, .events = POLLIN}};
        if (poll(fds, 2, -1) < 0)
            continue;
        if (fds[1].revents != 0) {
            end_all(0);
            return;
        }
        ssize_t length = recv(FD_SOCKET, &request, sizeof request, 0);
        if (length != (ssize_t)sizeof request || request.verb == GUARDIAN_CLOSE) {
            end_all(SANDBOX_STOP_MS);
            return;
        }
        struct guardian_reply reply = answer(&request);
        send(FD_SOCKET, &reply, sizeof reply, MSG_NOSIGNAL);
    }
}

static void end_all(int64_t grace_ms)
{
    int64_t deadline_ms = steady_ms() + grace_ms;
    for (int i = 0; i < SANDBOX_SERVERS_MAX && grace_ms > 0; i++)
        if (children[i].pid != 0)
            terminate(&children[i]);
    for (int i = 0; i < SANDBOX_SERVERS_MAX; i++) {
        if (children[i].pid == 0)
            continue;
        if (!ended_within(&children[i], deadline_ms - steady_ms()))
            kill(children[i].pid, SIGKILL);
        reap(&children[i]);
    }
}
