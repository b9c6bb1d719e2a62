#include "torture_archive.h"
#include "steady.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { AHEAD_DAYS = 32, LOOK_MS = 5, DAY_S = 86400, ARGS_MAX = 12, RUNS_MAX = 5 };
enum { ENDS_WITHIN_MS = 60000 }; /* on an idle machine */

/* Exit status: for the state of the store, not for how it was used. */
enum { FAILED = 1 };

/* On a machine that is so many times slower, statements may run into their time limits. */
enum { BUSY_SLOWDOWN = 3 };

/* Bytes of the file before it has a part: its tables and indexes. */
enum { EMPTY = 8 * 4096 };

extern char **environ;

static void in_dir(const struct torture_world *world, const char *name, char ret[TORTURE_URL_MAX])
{
    snprintf(ret, TORTURE_URL_MAX, "%.*s/%s", TORTURE_PATH_MAX, world->dir, name);
}

int torture_archive_prepare(struct torture_world *world)
{
    const int64_t ahead_us = AHEAD_DAYS * (int64_t)DAY_S * 1000000;
    char path[TORTURE_URL_MAX];
    world->archive = (struct torture_archive){.pid = 0};
    in_dir(world, "archive.clock", path);
    FILE *clock = fopen(path, "we");
    const bool written = clock != NULL && fwrite(&ahead_us, sizeof ahead_us, 1, clock) == 1;
    if (clock != NULL && fclose(clock) == 0 && written)
        return 0;
    fprintf(stderr, "torture: cannot write %s: %s\n", path, strerror(errno));
    return -1;
}

/* -- a process --------------------------------------------------------------------------------- */

/* What it says goes to the end of archive.log. 0: it was not started. */
static pid_t start(const struct torture_world *world, const char *const *argv)
{
    char log[TORTURE_URL_MAX];
    posix_spawn_file_actions_t actions;
    pid_t pid = 0;
    in_dir(world, "archive.log", log);
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log, O_WRONLY | O_CREAT | O_APPEND,
                                     0644);
    posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    const int error = posix_spawnp(&pid, argv[0], &actions, NULL, (char *const *)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error == 0)
        return pid;
    fprintf(stderr, "torture: cannot start %s: %s\n", argv[0], strerror(error));
    return 0;
}

/* "seckilld COMMAND": of the store as the judge sees it, without a proxy between. */
static pid_t start_command(const struct torture_world *world, const char *command,
                           const char *argument, const char *more)
{
    char preload[TORTURE_URL_MAX + 16], clock[TORTURE_URL_MAX + 16], db[TORTURE_URL_MAX + 16],
        path[TORTURE_URL_MAX];
    const char *argv[ARGS_MAX];
    int n = 0;
    in_dir(world, "archive.clock", path);
    snprintf(preload, sizeof preload, "LD_PRELOAD=%.*s", TORTURE_URL_MAX, world->shim);
    snprintf(clock, sizeof clock, "CLOCKSHIM_FILE=%s", path);
    snprintf(db, sizeof db, "--db=%s", world->store);
    argv[n++] = "env";
    argv[n++] = preload;
    argv[n++] = clock;
    argv[n++] = world->seckilld;
    argv[n++] = command;
    argv[n++] = db;
    if (!world->plan->is.postgres && world->plan->is.instances > 1)
        argv[n++] = "--db-shared";
    argv[n++] = argument;
    argv[n++] = more;
    argv[n] = NULL;
    return start(world, argv);
}

static pid_t start_archive(const struct torture_world *world)
{
    char before[32], file[TORTURE_URL_MAX];
    const time_t ahead = time(NULL) + (time_t)AHEAD_DAYS * DAY_S;
    struct tm month;
    gmtime_r(&ahead, &month);
    strftime(before, sizeof before, "--before=%Y-%m", &month);
    in_dir(world, "archive.db", file);
    return start_command(world, "archive", before, file);
}

/* -- in a round -------------------------------------------------------------------------------- */

static int64_t size_of(const char *path)
{
    struct stat file;
    return stat(path, &file) == 0 ? (int64_t)file.st_size : 0;
}

/* The file has grown, and the commit that let it grow is over. */
static bool has_grown(const struct torture_world *world)
{
    char file[TORTURE_URL_MAX], journal[TORTURE_URL_MAX];
    in_dir(world, "archive.db", file);
    in_dir(world, "archive.db-journal", journal);
    return size_of(file) > world->archive.size && size_of(journal) == 0;
}

bool torture_archive_begin(struct torture_world *world, bool aim)
{
    char file[TORTURE_URL_MAX];
    struct torture_archive *archive = &world->archive;
    if (archive->pid != 0)
        return false;
    for (int i = 0; i < TORTURE_INSTANCES && !world->plan->is.postgres; i++)
        torture_kill(&world->instance[i], 0);
    in_dir(world, "archive.db", file);
    archive->aim = aim;
    archive->disturbed = false;
    torture_pace_begin(&archive->pace);
    archive->size = size_of(file) > EMPTY ? size_of(file) : EMPTY;
    archive->pid = start_archive(world);
    archive->begun = archive->begun || archive->pid != 0;
    return archive->pid != 0;
}

static void end_by_kill(struct torture_archive *archive)
{
    kill(archive->pid, SIGKILL);
    waitpid(archive->pid, NULL, 0);
    archive->pid = 0;
    archive->killed++;
}

/* An archive may fail if its server was disturbed, or if statements ran into their time limits on
 * a busy machine. A crash, or a complaint about its input, is never right. */
static bool is_broken(const struct torture_archive *archive, int status)
{
    if (!WIFEXITED(status) || WEXITSTATUS(status) != FAILED)
        return true;
    return !archive->disturbed && torture_slowdown(&archive->pace) < BUSY_SLOWDOWN;
}

static bool is_disturbed(const struct torture_world *world)
{
    return (world->postgres.server != NULL && world->postgres.state != RUNS) ||
           world->n_stopped_backends > 0 || world->standby_awaited;
}

bool torture_archive_look(struct torture_world *world)
{
    struct torture_archive *archive = &world->archive;
    int status = 0;
    if (archive->pid == 0)
        return true;
    archive->disturbed = archive->disturbed || is_disturbed(world);
    if (waitpid(archive->pid, &status, WNOHANG) == 0) {
        if (!archive->aim || !has_grown(world))
            return false;
        end_by_kill(archive);
        return true;
    }
    archive->pid = 0;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        archive->ended++;
    } else {
        archive->failed++;
        archive->broken += is_broken(archive, status);
    }
    return true;
}

void torture_archive_kill(struct torture_world *world)
{
    struct torture_archive *archive = &world->archive;
    if (!torture_archive_look(world))
        end_by_kill(archive);
}

/* -- its end ----------------------------------------------------------------------------------- */

/* The exit status; -1: none within ENDS_WITHIN_MS. */
static int end_of(pid_t pid)
{
    struct torture_pace pace;
    const int64_t start_ms = steady_ms();
    int status = 0;
    torture_pace_begin(&pace);
    if (pid == 0)
        return -1;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        const int64_t took_ms = steady_ms() - start_ms;
        if (took_ms >= ENDS_WITHIN_MS &&
            (double)took_ms >= ENDS_WITHIN_MS * torture_slowdown(&pace)) {
            kill(pid, SIGKILL);
            waitpid(pid, NULL, 0);
            return -1;
        }
        steady_sleep_ms(LOOK_MS);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The archive, or with "--archive=FILE" the audit of it. Run again after a failure, as an operator
 * would: what failed for lack of time does not fail each time. */
static int run_to_end(const struct torture_world *world, const char *proved)
{
    int status = FAILED;
    for (int i = 0; i < RUNS_MAX && status == FAILED; i++)
        status = end_of(proved == NULL ? start_archive(world)
                                       : start_command(world, "audit", proved, NULL));
    return status;
}

/* How often an archive said that it has finished a part of one that was killed. */
static int64_t count_resumed(const struct torture_world *world)
{
    char path[TORTURE_URL_MAX], line[1024];
    int64_t n = 0;
    in_dir(world, "archive.log", path);
    FILE *log = fopen(path, "re");
    while (log != NULL && fgets(line, sizeof line, log) != NULL)
        n += strstr(line, "parts that an earlier run had written") != NULL;
    if (log != NULL)
        fclose(log);
    return n;
}

const char *torture_archive_finish(struct torture_world *world, bool sound)
{
    char proved[TORTURE_URL_MAX + 16], file[TORTURE_URL_MAX];
    torture_archive_kill(world);
    const int status = run_to_end(world, NULL);
    if (world->archive.broken > 0 && sound)
        return "an archive failed although nothing disturbed it: see archive.log";
    world->archive.resumed = count_resumed(world);
    if (status != 0 && sound)
        return "an archive that was begun does not end: see archive.log";
    world->archive.ended += status == 0;
    in_dir(world, "archive.db", file);
    snprintf(proved, sizeof proved, "--archive=%s", file);
    if (run_to_end(world, proved) != 0 && sound)
        return "seckilld audit --archive finds a fault: see archive.log";
    return NULL;
}
