#include "kill_call.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    THREADS_MAX = 256, /* of the traced process */
    SYSCALL_STOP = SIGTRAP | 0x80,
    OPTIONS = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL
};

struct kill_call {
    pthread_t thread;
    sem_t ready; /* calls count; or the process is dead */
    pid_t pid;
    int pidfd;         /* -1: none */
    char *const *argv; /* NULL: attach */
    const char *log;
    int n;                       /* calls until the kill */
    pid_t settling[THREADS_MAX]; /* threads that have not entered a call under trace */
    int n_settling;
    bool counts, is_ready;
    struct killed killed;
    atomic_bool ended;
};

/* -- the tracing thread ------------------------------------------------------------------------ */

static void say_ready(struct kill_call *self)
{
    if (!self->is_ready)
        sem_post(&self->ready);
    self->is_ready = true;
}

static void seize_thread(struct kill_call *self, pid_t tid)
{
    for (int i = 0; i < self->n_settling; i++)
        if (self->settling[i] == tid)
            return;
    if (self->n_settling == THREADS_MAX ||
        ptrace(PTRACE_SEIZE, tid, NULL, (void *)(intptr_t)OPTIONS) != 0)
        return; /* traced already, as the child of a traced thread */
    self->settling[self->n_settling++] = tid;
    ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
}

/* A thread that starts meanwhile is traced from its first instruction on, or found the next time.
 */
static bool seize_all(struct kill_call *self)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)self->pid);
    for (int before = -1; before != self->n_settling;) {
        before = self->n_settling;
        DIR *threads = opendir(path);
        if (threads == NULL)
            return false;
        for (struct dirent *entry; (entry = readdir(threads)) != NULL;)
            if (entry->d_name[0] != '.')
                seize_thread(self, atoi(entry->d_name));
        closedir(threads);
    }
    return self->n_settling > 0;
}

/* Only async-signal-safe calls: the program that forks has threads. */
static _Noreturn void run_program(const struct kill_call *self, int go)
{
    char byte;
    int log = open(self->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (log < 0 || dup2(log, STDOUT_FILENO) < 0 || dup2(log, STDERR_FILENO) < 0 ||
        read(go, &byte, 1) != 1)
        _exit(127);
    execv(self->argv[0], self->argv);
    _exit(127);
}

static bool start_program(struct kill_call *self)
{
    int go[2];
    if (pipe2(go, O_CLOEXEC) != 0)
        return false;
    self->pid = fork();
    if (self->pid == 0)
        run_program(self, go[0]);
    bool seized = self->pid > 0 &&
                  ptrace(PTRACE_SEIZE, self->pid, NULL, (void *)(intptr_t)OPTIONS) == 0 &&
                  write(go[1], "g", 1) == 1;
    if (!seized && self->pid > 0)
        kill(self->pid, SIGKILL);
    close(go[0]);
    close(go[1]);
    return seized;
}

/* Threads that slept in a call enter it again when they are traced; that is no new call. */
static void settle(struct kill_call *self, pid_t tid)
{
    for (int i = 0; i < self->n_settling; i++)
        if (self->settling[i] == tid) {
            self->settling[i] = self->settling[--self->n_settling];
            break;
        }
    self->counts = self->n_settling == 0;
    if (self->counts)
        say_ready(self);
}

static void enter_call(struct kill_call *self, pid_t tid, long number)
{
    if (!self->counts) {
        settle(self, tid);
        return;
    }
    if (self->n > 0 && --self->n == 0) {
        self->killed.at_call = true;
        self->killed.number = number;
        kill(self->pid, SIGKILL);
    }
}

static void continue_thread(struct kill_call *self, pid_t tid, int status)
{
    int signal = WSTOPSIG(status), event = status >> 16;
    struct __ptrace_syscall_info info;
    if (event == PTRACE_EVENT_EXEC) {
        self->counts = true;
        say_ready(self);
    }
    if (signal == SYSCALL_STOP &&
        ptrace(PTRACE_GET_SYSCALL_INFO, tid, (void *)sizeof info, &info) > 0 &&
        info.op == PTRACE_SYSCALL_INFO_ENTRY)
        enter_call(self, tid, (long)info.entry.nr);
    if (signal == SYSCALL_STOP || event != 0)
        signal = 0;
    ptrace(PTRACE_SYSCALL, tid, NULL, (void *)(intptr_t)signal); /* fails for a dead thread */
}

static void *trace(void *arg)
{
    struct kill_call *self = arg;
    if (self->argv != NULL ? !start_program(self) : !seize_all(self))
        self->killed.by_itself = true;
    if (self->pid > 0)
        self->pidfd = pidfd_open(self->pid, 0);
    for (int status;;) {
        pid_t tid = waitpid(-1, &status, __WALL | __WNOTHREAD);
        if (tid < 0 && errno == EINTR)
            continue;
        if (tid < 0)
            break; /* nothing is left to trace */
        if (WIFSTOPPED(status))
            continue_thread(self, tid, status);
        else if (tid == self->pid && !(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL))
            self->killed.by_itself = true;
    }
    atomic_store(&self->ended, true);
    say_ready(self);
    return NULL;
}

/* -- the program's side ------------------------------------------------------------------------ */

static struct kill_call *killer_new(const struct kill_call *filled)
{
    struct kill_call *self = malloc(sizeof *self);
    if (self == NULL)
        return NULL;
    *self = *filled;
    sem_init(&self->ready, 0, 0);
    if (pthread_create(&self->thread, NULL, trace, self) != 0) {
        sem_destroy(&self->ready);
        free(self);
        return NULL;
    }
    while (sem_wait(&self->ready) != 0)
        continue;
    return self;
}

struct kill_call *kill_call_attach(pid_t pid, int n)
{
    return killer_new(&(struct kill_call){.pid = pid, .pidfd = -1, .n = n});
}

struct kill_call *kill_call_start(char *const argv[], const char *log, int n)
{
    return killer_new(&(struct kill_call){.pidfd = -1, .argv = argv, .log = log, .n = n});
}

bool kill_call_ended(const struct kill_call *killer)
{
    return atomic_load(&killer->ended);
}

struct killed kill_call_end(struct kill_call *killer)
{
    if (killer->pidfd >= 0)
        pidfd_send_signal(killer->pidfd, SIGKILL, NULL, 0); /* fails for a dead process */
    pthread_join(killer->thread, NULL);
    if (killer->pidfd >= 0)
        close(killer->pidfd);
    struct killed killed = killer->killed;
    sem_destroy(&killer->ready);
    free(killer);
    return killed;
}
