#include "cmd_run.h"
#include "cmd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* -- what happens meanwhile: signals, and the watchdog's word, as bytes in a pipe ------------- */

enum { EVENT_LOST = 0 }; /* any other: the number of a signal */

static int events[2];
static volatile sig_atomic_t running;
static _Atomic int loss; /* enum lk_loss + 1 */

static void tell(int event)
{
    unsigned char byte = (unsigned char)event;
    (void)!write(events[1], &byte, 1); /* full: enough is known */
}

/* Before the command runs a signal does what it always does. */
static void on_signal(int signal_number)
{
    int saved = errno;
    if (running) {
        tell(signal_number);
    } else if (signal_number != SIGCHLD) {
        signal(signal_number, SIG_DFL);
        raise(signal_number);
    }
    errno = saved;
}

void cmd_run_on_lost(void *arg, const lk_hold *hold, lk_loss cause)
{
    (void)arg;
    (void)hold;
    atomic_store(&loss, (int)cause + 1);
    tell(EVENT_LOST);
}

bool cmd_run_lost(void)
{
    return atomic_load(&loss) != 0;
}

bool cmd_run_prepare(void)
{
    static const int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGCHLD};
    if (pipe2(events, O_CLOEXEC | O_NONBLOCK) != 0)
        return false;
    for (size_t i = 0; i < sizeof forwarded / sizeof *forwarded; i++) {
        struct sigaction now, action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
        if (sigaction(forwarded[i], NULL, &now) == 0 && now.sa_handler == SIG_IGN &&
            forwarded[i] != SIGCHLD)
            continue; /* as nohup(1) wants it */
        sigaction(forwarded[i], &action, NULL);
    }
    signal(SIGTTOU, SIG_IGN); /* we hand the terminal over and take it back */
    return true;
}

/* -- the command ------------------------------------------------------------------------------ */

static _Noreturn void become(char **command, bool has_terminal, pid_t parent, int failure)
{
    setpgid(0, 0);
    if (has_terminal)
        tcsetpgrp(STDIN_FILENO, getpid());
    signal(SIGTTOU, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(CMD_BROKEN); /* it ended before it could be asked for the signal */
    execvp(command[0], command);
    int error = errno;
    (void)!write(failure, &error, sizeof error);
    _exit(CMD_NOT_FOUND);
}

/* 0 and *ret_error on failure. */
static pid_t start(char **command, bool has_terminal, int *ret_error)
{
    int failure[2];
    pid_t parent = getpid();
    if (pipe2(failure, O_CLOEXEC) != 0) {
        *ret_error = errno;
        return 0;
    }
    pid_t child = fork();
    if (child == 0)
        become(command, has_terminal, parent, failure[1]);
    *ret_error = child < 0 ? errno : 0;
    close(failure[1]);
    if (child > 0) {
        setpgid(child, child); /* whichever of us comes first */
        int error;
        if (read(failure[0], &error, sizeof error) == sizeof error) {
            waitpid(child, NULL, 0);
            *ret_error = error;
            child = 0;
        }
    }
    close(failure[0]);
    return child > 0 ? child : 0;
}

static int64_t now_ms(void)
{
    return lk_env_system()->now_us(NULL) / 1000;
}

/* Ctrl-Z: we stop as the command did. The lease runs on meanwhile, and may run out. */
static void stop_too(pid_t child)
{
    tcsetpgrp(STDIN_FILENO, getpgrp());
    raise(SIGSTOP);
    tcsetpgrp(STDIN_FILENO, child);
    kill(-child, SIGCONT);
}

/* The next event; -1 when none came by until_ms. */
static int next_event(int64_t until_ms)
{
    for (;;) {
        int64_t left_ms = until_ms - now_ms();
        struct pollfd readable = {.fd = events[0], .events = POLLIN};
        int timeout = until_ms == INT64_MAX ? -1 : left_ms > 0 ? (int)left_ms : 0;
        int n = poll(&readable, 1, timeout);
        unsigned char byte;
        if (n == 0)
            return -1;
        if (n > 0 && read(events[0], &byte, 1) == 1)
            return byte;
    }
}

/* Until the command has ended; returns its wait status. */
static int attend(pid_t child, bool has_terminal, int64_t grace_ms)
{
    int64_t kill_at_ms = INT64_MAX;
    for (;;) {
        int status, event = next_event(kill_at_ms);
        if (event == SIGCHLD) {
            while (waitpid(child, &status, WNOHANG | WUNTRACED) == child) {
                if (!WIFSTOPPED(status))
                    return status;
                if (has_terminal)
                    stop_too(child);
            }
        } else if (event == EVENT_LOST) {
            if (kill_at_ms == INT64_MAX)
                kill_at_ms = now_ms() + grace_ms;
            fprintf(stderr, "lockkit: %s: ending the command\n",
                    lk_loss_text((lk_loss)(atomic_load(&loss) - 1)));
            kill(-child, SIGTERM);
            kill(-child, SIGCONT);
        } else if (event < 0) {
            kill(-child, SIGKILL);
            kill_at_ms = INT64_MAX;
        } else {
            kill(-child, event);
        }
    }
}

static int exit_status_of(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : CMD_SIGNALLED + WTERMSIG(status);
}

int cmd_run(char **command, int64_t grace_ms)
{
    int error;
    running = 1;
    bool has_terminal = isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) == getpgrp();
    pid_t child = start(command, has_terminal, &error);
    if (child == 0) {
        fprintf(stderr, "lockkit: cannot run %s: %s\n", command[0], strerror(error));
        return error == ENOENT ? CMD_NOT_FOUND : CMD_NO_EXEC;
    }
    int status = attend(child, has_terminal, grace_ms);
    if (has_terminal)
        tcsetpgrp(STDIN_FILENO, getpgrp());
    if (cmd_run_lost())
        kill(-child, SIGKILL); /* what it has left behind must not go on without the lock */
    return exit_status_of(status);
}
