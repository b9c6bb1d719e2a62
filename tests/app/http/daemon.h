/* The real program as a process, with its two streams. */
#ifndef DAEMON_H
#define DAEMON_H

#include "raw_http.h"
#include "tests.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGS_MAX = 16, TEXT_MAX = 4096 };

struct daemon {
    pid_t pid;
    FILE *out, *err;
    int port;
};

static char folder[] = "/tmp/test_daemon.XXXXXX";
static int n_databases;

static inline int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static inline int remove_folder(void **state)
{
    (void)state;
    static const char *const suffixes[] = {"", "-wal", "-shm", "-lock"};
    char path[128];
    for (int i = 0; i < n_databases; i++) {
        for (size_t k = 0; k < sizeof(suffixes) / sizeof(suffixes[0]); k++) {
            snprintf(path, sizeof(path), "%s/%d.db%s", folder, i, suffixes[k]);
            unlink(path);
        }
    }
    return rmdir(folder);
}

/* Starts seckilld on a free port with a new database. max_files 0: no limit. */
static inline void run(struct daemon *daemon, rlim_t max_files, const char *const *args)
{
    char binary[512], db[128];
    const char *build = getenv("BUILD");
    snprintf(binary, sizeof(binary), "%s/seckilld", build != NULL ? build : "build");
    snprintf(db, sizeof(db), "--db=sqlite:%s/%d.db", folder, n_databases++);
    const char *argv[ARGS_MAX + 8] = {binary, "--listen=127.0.0.1:0", db, "--guard=mutex"};
    int n = 4;
    for (; *args != NULL && n < ARGS_MAX; args++)
        argv[n++] = *args;
    int out[2], err[2];
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(pipe2(err, O_CLOEXEC), 0);
    daemon->pid = fork();
    if (daemon->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        const struct rlimit limit = {max_files, max_files};
        if (max_files > 0)
            setrlimit(RLIMIT_NOFILE, &limit);
        dup2(out[1], 1);
        dup2(err[1], 2);
        execv(binary, (char **)argv);
        _exit(127);
    }
    assert_true(daemon->pid > 0);
    close(out[1]);
    close(err[1]);
    daemon->out = fdopen(out[0], "r");
    daemon->err = fdopen(err[0], "r");
    daemon->port = 0;
}

static inline void run_until_ready(struct daemon *daemon, const char *const *args)
{
    char line[256];
    run(daemon, 0, args);
    assert_non_null(fgets(line, sizeof(line), daemon->out));
    assert_int_equal(sscanf(line, "listening on http://127.0.0.1:%d\n", &daemon->port), 1);
}

/* Reads stderr up to a line that contains text. */
static inline void await_line(struct daemon *daemon, const char *text)
{
    char line[TEXT_MAX];
    while (fgets(line, sizeof(line), daemon->err) != NULL)
        if (strstr(line, text) != NULL)
            return;
    fail_msg("never said: %s", text);
}

static inline int status_of(struct daemon *daemon)
{
    int status;
    assert_int_equal(waitpid(daemon->pid, &status, 0), daemon->pid);
    fclose(daemon->out);
    fclose(daemon->err);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

#endif
