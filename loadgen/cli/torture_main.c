/* torture: faults on real servers, round after round, judged by the clients' books and by SQL. */
#include "beside.h"
#include "exit_status.h"
#include "lockkit.h"
#include "output.h"
#include "steady.h"
#include "torture_options.h"
#include "torture_round.h"

#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char program[] = "torture";
const char *argp_program_version = "torture " LK_VERSION;
static volatile sig_atomic_t stop;

enum { PATH_SIZE = 4096, FAILURES_MAX = 3 };

static void on_signal(int signal)
{
    (void)signal;
    stop = 1;
}

static int add_up(const struct torture_options *options)
{
    static struct torture_sums sums;
    for (int i = 0; i < options->n_files; i++)
        if (torture_sums_add_file(&sums, options->files[i]) != 0)
            return EXIT_FAILURE;
    torture_sums_print(&sums, stdout);
    if (options->json != NULL && torture_sums_write(&sums, options->json) != 0)
        return EXIT_FAILURE;
    return sums.failed_rounds == 0 ? EXIT_SUCCESS : EXIT_BROKEN;
}

/* The sums of this run, and those of the file before it. */
struct session {
    const struct torture_options *options;
    const char *self, *json;
    struct torture_world world;
    struct torture_sums before, sums;
    uint64_t seed;
};

static int save(const struct session *session)
{
    struct torture_sums sums = {0};
    sums = session->sums;
#define ADD(name, text) sums.name += session->before.name;
    TORTURE_SUM_MAP(ADD)
#undef ADD
    for (int i = 0; i < TORTURE_FAULTS; i++)
        sums.faults[i] += session->before.faults[i];
    sums.next_seed = session->seed;
    return torture_sums_write(&sums, session->json);
}

/* Returns 0, or -1 when the round could not be run. */
static int run_one(struct session *session)
{
    static struct torture_round round;
    char replay[PATH_SIZE];
    const struct torture_options *options = session->options;
    round = (struct torture_round){.bitten = 0};
    torture_plan_draw(&round.plan, session->seed, &options->limits);
    int failed = torture_round_run(&session->world, &round, options->dir, options->keep,
                                   &session->sums, &stop);
    if (failed == 0)
        torture_round_print(&round, stdout);
    else if (!stop)
        printf("FAILED %6llu  could not be run: see messages.log\n",
               (unsigned long long)session->seed);
    if (!stop && (failed != 0 || round.verdict.violations > 0)) {
        torture_options_replay(options, session->self, session->seed, replay, sizeof replay);
        printf("       again: %s; its folder is kept in %s\n", replay, options->dir);
    }
    fflush(stdout);
    session->seed += !stop;
    return save(session) == 0 ? failed : -1;
}

static int run(struct session *session)
{
    const struct torture_options *options = session->options;
    int64_t until_ms = options->duration_ms > 0 ? steady_ms() + options->duration_ms : INT64_MAX;
    int failures = 0;
    for (int64_t i = 0; (options->rounds == 0 || i < options->rounds) && !stop; i++) {
        if (steady_ms() >= until_ms)
            break;
        failures = run_one(session) == 0 ? 0 : failures + 1;
        if (failures == FAILURES_MAX || (options->until_broken && session->sums.failed_rounds > 0))
            break;
    }
    torture_sums_print(&session->sums, stdout);
    if (stop)
        return EXIT_INTERRUPTED;
    if (failures > 0)
        return EXIT_FAILURE;
    return session->sums.failed_rounds == 0 ? EXIT_SUCCESS : EXIT_BROKEN;
}

/* Servers that start and end a thousand times a day have much to say. */
static int keep_messages(const char *dir)
{
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/messages.log", dir);
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0 || dup2(fd, STDERR_FILENO) < 0)
        fprintf(stderr, "%s: cannot write %s: %s\n", program, path, strerror(errno));
    if (fd < 0)
        return -1;
    close(fd);
    return 0;
}

static int open_and_run(struct session *session, const char *seckilld, const char *shim)
{
    const struct torture_options *options = session->options;
    char json[PATH_SIZE];
    snprintf(json, sizeof json, "%s/sums.json", options->dir);
    session->json = options->json != NULL ? options->json : json;
    if (mkdir(options->dir, 0755) != 0 && errno != EEXIST) {
        fprintf(stderr, "%s: cannot make %s: %s\n", program, options->dir, strerror(errno));
        return EXIT_FAILURE;
    }
    if (torture_sums_add_file(&session->before, session->json) != 0 ||
        keep_messages(options->dir) != 0)
        return EXIT_FAILURE;
    session->seed = options->has_seed               ? options->seed
                    : session->before.next_seed > 0 ? session->before.next_seed
                                                    : 1;
    if (torture_world_open(&session->world, seckilld, shim) != 0)
        return EXIT_FAILURE;
    session->world.slip = options->slip;
    int status = run(session);
    torture_world_close(&session->world);
    return status;
}

int main(int argc, char **argv)
{
    static struct torture_options options;
    static struct session session;
    char path[PATH_SIZE], shim[PATH_SIZE];
    output_check_at_exit(program);
    torture_options_parse(argc, argv, &options);
    if (options.sum_only)
        return add_up(&options);
    const char *seckilld =
        beside(program, "seckilld", "--seckilld", options.seckilld, X_OK, path, sizeof path);
    const char *clock = beside(program, "libclockshim.so", NULL, NULL, R_OK, shim, sizeof shim);
    if (seckilld == NULL || clock == NULL)
        return EXIT_FAILURE;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESETHAND};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    session.options = &options;
    session.self = argv[0];
    return open_and_run(&session, seckilld, clock);
}
