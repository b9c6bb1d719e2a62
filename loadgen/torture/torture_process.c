/* What faults do to a process, and how it comes back. */
#include "steady.h"
#include "torture_world.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { RETRY_MS = 50, LEAVES_MS = 20000 };

static int64_t after_ms(int64_t ms)
{
    return steady_us() + ms * 1000;
}

bool torture_kill(struct torture_process *process, int64_t down_ms)
{
    if (process->server == NULL || process->state == DOWN || !sandbox_alive(process->server))
        return false;
    if (sandbox_signal(process->server, SIGKILL) == -1)
        return false;
    process->state = DOWN;
    process->until_us = after_ms(down_ms);
    return true;
}

bool torture_stop(struct torture_process *process, int64_t stop_ms)
{
    if (process->server == NULL || process->state != RUNS ||
        sandbox_signal(process->server, SIGSTOP) != 0)
        return false;
    process->state = STOPPED;
    process->until_us = after_ms(stop_ms);
    return true;
}

bool torture_end(struct torture_process *process, int signal, int64_t down_ms)
{
    if (process->server == NULL || process->state != RUNS ||
        sandbox_signal(process->server, signal) != 0)
        return false;
    process->state = LEAVES;
    process->until_us = after_ms(LEAVES_MS);
    process->down_ms = down_ms;
    return true;
}

/* An instance needs its store to start. On SQLite an archive has the store for itself. */
static bool may_start(const struct torture_world *world, const struct torture_process *process)
{
    if (process->instance && world->archive.pid != 0 && !world->plan->is.postgres)
        return false;
    return !process->instance || world->postgres.server == NULL || world->postgres.state == RUNS;
}

/* The end of what it has written. */
static void last_words(const struct sandbox_server *server, char *ret, size_t size)
{
    FILE *log = fopen(server->log, "re");
    size_t n = 0;
    if (log != NULL) {
        fseek(log, 0, SEEK_END);
        long length = ftell(log), from = length > (long)size - 1 ? length - (long)size + 1 : 0;
        if (fseek(log, from > server->log_start ? from : server->log_start, SEEK_SET) == 0)
            n = fread(ret, 1, size - 1, log);
        fclose(log);
    }
    ret[n] = '\0';
}

static void ended_by_itself(struct torture_world *world, struct torture_process *process)
{
    char words[400];
    last_words(process->server, words, sizeof words);
    if (world->why[0] == '\0')
        snprintf(world->why, sizeof world->why, "%s ended by itself: %s", process->server->name,
                 words);
    process->state = DOWN;
    process->until_us = 0;
}

void torture_process_tick(struct torture_world *world, struct torture_process *process,
                          int64_t now_us)
{
    struct sandbox_server *server = process->server;
    if (server == NULL)
        return;
    switch (process->state) {
    case RUNS:
        if (!sandbox_alive(server))
            ended_by_itself(world, process);
        break;
    case STOPPED:
        if (now_us < process->until_us)
            break;
        sandbox_signal(server, SIGCONT);
        process->state = RUNS;
        break;
    case LEAVES:
        if (sandbox_alive(server) && now_us < process->until_us)
            break;
        if (sandbox_alive(server))
            sandbox_signal(server, SIGKILL);
        process->state = DOWN;
        process->until_us = now_us + process->down_ms * 1000;
        break;
    case DOWN:
        if (now_us < process->until_us || !may_start(world, process))
            break;
        if (sandbox_restart(server) == 0)
            process->state = RUNS;
        else
            process->until_us = after_ms(RETRY_MS);
        break;
    }
}
