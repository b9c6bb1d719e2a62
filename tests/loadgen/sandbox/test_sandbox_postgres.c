/* The sandbox's PostgreSQL: it keeps what was committed through a kill, and nothing stays of it
 * when its program is killed. */
#include "sandbox.h"
#include "process.h"
#include "tests.h"

#include <libpq-fe.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WITHIN_MS = 15000 };

static int answer(const char *url, const char *sql)
{
    PGconn *handle = PQconnectdb(url);
    PGresult *result = PQexec(handle, sql);
    int number = PQntuples(result) == 1 ? atoi(PQgetvalue(result, 0, 0)) : -1;
    PQclear(result);
    PQfinish(handle);
    return number;
}

/* Fails while processes of the killed server have not noticed its death. */
static bool comes_up(void *server)
{
    return sandbox_restart(server) == 0;
}

TEST_THAT(commits_survive_a_killed_server)
{
    struct sandbox *sandbox;
    assert_int_equal(sandbox_open(&sandbox), 0);
    struct sandbox_server *server =
        sandbox_postgres(sandbox, (const char *const[]){"-c", "max_connections=17", NULL});
    assert_non_null(server);
    assert_int_equal(answer(server->url, "SHOW max_connections"), 17);
    assert_int_equal(answer(server->url, "CREATE TABLE t AS SELECT 42; SELECT * FROM t"), 42);
    assert_true(WIFSIGNALED(sandbox_signal(server, SIGKILL)));
    assert_int_equal(answer(server->url, "SELECT 1"), -1);
    assert_true(wait_until(comes_up, server, WITHIN_MS));
    assert_int_equal(answer(server->url, "SELECT * FROM t"), 42);
    sandbox_close(sandbox);
}

/* Its superuser may run programs as the user of the server. */
TEST_THAT(a_stranger_gets_no_session)
{
    struct sandbox *sandbox;
    assert_int_equal(sandbox_open(&sandbox), 0);
    struct sandbox_server *server = sandbox_postgres(sandbox, NULL);
    assert_non_null(server);
    char local[2 * SANDBOX_TEXT_MAX], folder[SANDBOX_TEXT_MAX];
    snprintf(folder, sizeof folder, "%s", server->socket);
    *strrchr(folder, '/') = '\0';
    snprintf(local, sizeof local, "host=%s port=%d user=postgres dbname=postgres", folder,
             server->port);
    assert_int_equal(answer(local, "SELECT 7"), 7);
    char *password = strdup(getenv("PGPASSWORD"));
    assert_int_equal(setenv("PGPASSWORD", "guessed", 1), 0);
    assert_int_equal(answer(server->url, "SELECT 7"), -1);
    assert_int_equal(answer(local, "SELECT 7"), -1);
    assert_int_equal(setenv("PGPASSWORD", password, 1), 0);
    free(password);
    sandbox_close(sandbox);
}

struct report {
    char dir[SANDBOX_TEXT_MAX];
    pid_t server;
};

static _Noreturn void start_and_stay(int report_fd)
{
    struct sandbox *sandbox;
    struct report report = {0};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (sandbox_open(&sandbox) == 0) {
        struct sandbox_server *server = sandbox_postgres(sandbox, NULL);
        strcpy(report.dir, sandbox_dir(sandbox));
        report.server = server != NULL ? server->pid : 0;
    }
    (void)!write(report_fd, &report, sizeof report);
    for (;;)
        pause();
}

static bool is_removed(void *dir)
{
    return access(dir, F_OK) != 0;
}

TEST_THAT(nothing_stays_of_the_server_of_a_killed_program)
{
    struct report report;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t program = fork();
    assert_true(program >= 0);
    if (program == 0)
        start_and_stay(ends[1]);
    close(ends[1]);
    assert_int_equal(read(ends[0], &report, sizeof report), sizeof report);
    close(ends[0]);
    struct process server = process_of(report.server);
    assert_true(report.server > 0 && process_runs(server));
    kill(program, SIGKILL);
    assert_int_equal(waitpid(program, NULL, 0), program);
    assert_true(wait_until(is_removed, report.dir, WITHIN_MS));
    assert_true(process_gone(server));
}
