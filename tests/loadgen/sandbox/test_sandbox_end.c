/* However the program ends, nothing of its sandbox stays: no server, no guardian, no folder. Each
 * way out is taken for real, by a child that has opened a sandbox. */
#include "sandbox.h"
#include "process.h"
#include "tests.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GONE_WITHIN_MS = 10000 };

struct report { /* what the child tells of its sandbox */
    char dir[SANDBOX_TEXT_MAX];
    pid_t running, stopped; /* two servers; the second by SIGSTOP: it takes no SIGTERM */
};

enum way { EXIT, CLOSE, HOLD_SOCKET, ON_SIGNAL };

static struct sandbox *sandbox; /* static: still reachable for the leak checker at exit() */

static _Noreturn void live_and_end(enum way way, int signal, int report_fd, int hold_fd)
{
    struct report report = {0};
    if (sandbox_open(&sandbox) != 0)
        _exit(1);
    struct sandbox_server *running = sandbox_redis(sandbox, NULL);
    struct sandbox_server *stopped = sandbox_redis(sandbox, NULL);
    if (running == NULL || stopped == NULL || sandbox_signal(stopped, SIGSTOP) != 0)
        _exit(1);
    strcpy(report.dir, sandbox_dir(sandbox));
    report.running = running->pid;
    report.stopped = stopped->pid;
    if (way == HOLD_SOCKET && fork() == 0) {  /* lives on with copies of all descriptors */
        struct pollfd hold = {.fd = hold_fd}; /* hangs up when the test is done */
        poll(&hold, 1, -1);
        _exit(0);
    }
    (void)!write(report_fd, &report, sizeof report);
    /* The parent notes the pids' start times first. */
    char go;
    (void)!read(hold_fd, &go, 1);
    if (way == CLOSE)
        sandbox_close(sandbox);
    if (way == EXIT || way == CLOSE)
        exit(0);
    struct sigaction by_default = {.sa_handler = SIG_DFL}; /* cmocka catches crashes */
    sigaction(signal, &by_default, NULL);
    raise(signal);
    _exit(1);
}

static bool folder_gone(void *dir)
{
    return access(dir, F_OK) != 0;
}

static void ends_leaving_nothing(enum way way, int signal)
{
    int report_pipe[2], hold_pipe[2];
    assert_int_equal(pipe(report_pipe), 0);
    assert_int_equal(pipe(hold_pipe), 0);
    pid_t child = fork();
    if (child == 0) {
        close(hold_pipe[1]);
        live_and_end(way, signal, report_pipe[1], hold_pipe[0]);
    }
    close(report_pipe[1]);
    close(hold_pipe[0]);
    struct report report = {0};
    assert_int_equal(read(report_pipe[0], &report, sizeof report), sizeof report);
    struct process running = process_of(report.running), stopped = process_of(report.stopped);
    assert_true(process_runs(running));
    assert_true(process_stopped(stopped));
    assert_int_equal(access(report.dir, F_OK), 0);

    assert_int_equal(write(hold_pipe[1], "g", 1), 1);
    assert_int_equal(waitpid(child, NULL, 0), child);
    /* The folder goes last, the servers were reaped before. */
    assert_true(wait_until(folder_gone, report.dir, way == CLOSE ? 0 : GONE_WITHIN_MS));
    assert_true(process_gone(running));
    assert_true(process_gone(stopped));
    close(hold_pipe[1]); /* ends the holder */
    close(report_pipe[0]);
    /* Orphans come to this process: the guardian ended by itself, and well. */
    int status;
    while (waitpid(-1, &status, 0) > 0)
        assert_int_equal(status, 0);
}

TEST_THAT(closing_leaves_nothing)
{
    ends_leaving_nothing(CLOSE, 0);
}

TEST_THAT(exit_leaves_nothing)
{
    ends_leaving_nothing(EXIT, 0);
}

TEST_THAT(interrupt_leaves_nothing)
{
    ends_leaving_nothing(ON_SIGNAL, SIGINT);
}

TEST_THAT(termination_leaves_nothing)
{
    ends_leaving_nothing(ON_SIGNAL, SIGTERM);
}

TEST_THAT(abort_leaves_nothing)
{
    ends_leaving_nothing(ON_SIGNAL, SIGABRT);
}

TEST_THAT(crash_leaves_nothing)
{
    ends_leaving_nothing(ON_SIGNAL, SIGSEGV);
}

TEST_THAT(kill_9_leaves_nothing)
{
    ends_leaving_nothing(ON_SIGNAL, SIGKILL);
}

TEST_THAT(kill_9_leaves_nothing_although_a_forked_child_lives_on)
{
    ends_leaving_nothing(HOLD_SOCKET, SIGKILL);
}

static void *open_here(void *ret)
{
    struct sandbox_server **server = ret;
    if (sandbox_open(&sandbox) == 0)
        *server = sandbox_redis(sandbox, NULL);
    return NULL;
}

/* A death signal asked for by a program's thread would come when that thread ends. */
TEST_THAT(servers_outlive_the_thread_that_started_them)
{
    struct sandbox_server *redis = NULL;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, open_here, &redis), 0);
    pthread_join(thread, NULL);
    assert_non_null(redis);
    assert_true(sandbox_alive(redis));
    struct process process = process_of(redis->pid);
    assert_int_equal(sandbox_signal(redis, SIGSTOP), 0);
    sandbox_close(sandbox);
    assert_true(process_gone(process));
}

static pid_t parent_of(pid_t pid)
{
    char path[64], line[128];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *status = fopen(path, "r");
    while (status != NULL && fgets(line, sizeof line, status) != NULL)
        sscanf(line, "PPid: %d", &parent);
    if (status != NULL)
        fclose(status);
    return parent;
}

/* The killed guardian's servers come to this process as orphans. */
static bool reaped_here(void *pid)
{
    return waitpid(*(pid_t *)pid, NULL, WNOHANG) == *(pid_t *)pid;
}

TEST_THAT(killed_guardian_takes_its_servers_along)
{
    assert_int_equal(sandbox_open(&sandbox), 0);
    struct sandbox_server *redis = sandbox_redis(sandbox, NULL);
    assert_non_null(redis);
    struct process process = process_of(redis->pid);
    pid_t guardian = parent_of(redis->pid);
    assert_int_equal(parent_of(guardian), getpid());
    char command[SANDBOX_TEXT_MAX + 16];
    snprintf(command, sizeof command, "rm -r %s", sandbox_dir(sandbox));

    kill(guardian, SIGKILL);
    assert_true(wait_until(reaped_here, &process.pid, GONE_WITHIN_MS));
    assert_true(process_gone(process));
    assert_false(sandbox_alive(redis));
    assert_int_equal(sandbox_restart(redis), -1);
    sandbox_close(sandbox); /* says that the folder stayed */
    assert_int_equal(system(command), 0);
}

int main(void)
{
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    return tests_run();
}
