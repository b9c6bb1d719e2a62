#include "holder.h"

#include "lockkit.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_MS = 60000, WORD_MAX = 128, IN_EARNEST = 2 };

extern char **environ;

/* -- in the other process -----------------------------------------------------------------------
 */

enum {
    ARG_GUARD = 1,
    ARG_ENDPOINTS,
    ARG_KEY,
    ARG_LEASE,
    ARG_DEFAULT_LEASE,
    ARG_WAIT,
    ARG_DIE_AT,
    ARG_TELLS_LOSS,
    ARGS
};

static const char *die_at;
static int refusals;

static void say(const char *word)
{
    char line[WORD_MAX];
    int n = snprintf(line, sizeof line, "%s\n", word);
    if (write(STDOUT_FILENO, line, (size_t)n) != n)
        _exit(1);
}

static void at_point(void *ctx, const char *point, const char *key)
{
    (void)ctx;
    (void)key;
    if (strcmp(point, die_at) == 0)
        raise(SIGKILL);
    if (strcmp(point, LK_POINT_WAIT) == 0 && ++refusals == IN_EARNEST)
        say("waiting");
}

static void say_loss(void *arg, const lk_hold *hold, lk_loss cause)
{
    (void)arg;
    (void)hold;
    say(lk_loss_text(cause));
}

/* Asks again: on a busy machine redlock's nodes may take longer than a brief lease leaves them. */
static lk_status acquire(lk_client *client, const lk_request *request, lk_hold *hold)
{
    int64_t until_us = lk_env_system()->now_us(NULL) + PATIENCE_MS * INT64_C(1000);
    lk_status status;
    do
        status = lk_acquire(client, request, hold);
    while (status == LK_UNAVAILABLE && lk_env_system()->now_us(NULL) < until_us);
    return status;
}

int holder_main(int argc, char **argv)
{
    if (argc != ARGS)
        return 2;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    die_at = argv[ARG_DIE_AT];
    lk_env env = *lk_env_system();
    env.point = at_point;
    lk_options options = {
        .lease_ms = atoll(argv[ARG_DEFAULT_LEASE]), .command_timeout_ms = 60000, .env = &env};
    lk_request request = {
        .key = argv[ARG_KEY], .lease_ms = atoll(argv[ARG_LEASE]), .wait_ms = atoll(argv[ARG_WAIT])};
    if (argv[ARG_TELLS_LOSS][0] != '\0')
        request.on_lost = say_loss;
    lk_client *client;
    lk_hold hold;
    lk_status status = lk_open(argv[ARG_GUARD], argv[ARG_ENDPOINTS], &options, &client, NULL);
    if (status == LK_OK)
        status = acquire(client, &request, &hold);
    if (status != LK_OK) {
        say(lk_status_text(status));
        return 1;
    }
    say("held");
    char byte;
    if (read(STDIN_FILENO, &byte, 1) != 1)
        return 1;
    status = lk_release(&hold);
    say(status == LK_OK ? "released" : lk_status_text(status));
    lk_close(client);
    return 0;
}

/* -- in the test --------------------------------------------------------------------------------
 */

static const char *number(char text[24], int64_t value)
{
    snprintf(text, 24, "%" PRId64, value);
    return text;
}

bool holder_start(struct holder *holder, const struct holder_plan *plan)
{
    char lease[24], default_lease[24], wait[24];
    const char *argv[] = {"holder",
                          plan->guard,
                          plan->endpoints,
                          plan->key,
                          number(lease, plan->lease_ms),
                          number(default_lease, plan->default_lease_ms),
                          number(wait, plan->wait_ms),
                          plan->die_at != NULL ? plan->die_at : "",
                          plan->tells_loss ? "tells" : "",
                          NULL};
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0)
        return false;
    if (pipe2(out, O_CLOEXEC) != 0) {
        close(in[0]);
        close(in[1]);
        return false;
    }
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    int failed =
        posix_spawn(&holder->pid, "/proc/self/exe", &actions, NULL, (char **)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    holder->in = in[1];
    holder->out = out[0];
    if (failed != 0) {
        close(in[1]);
        close(out[0]);
    }
    return failed == 0;
}

bool holder_says(struct holder *holder, const char *word)
{
    char line[WORD_MAX];
    size_t n = 0;
    while (n + 1 < sizeof line) {
        struct pollfd readable = {.fd = holder->out, .events = POLLIN};
        if (poll(&readable, 1, PATIENCE_MS) != 1 || read(holder->out, &line[n], 1) != 1)
            break;
        if (line[n] == '\n')
            break;
        n++;
    }
    line[n] = '\0';
    if (strcmp(line, word) == 0)
        return true;
    fprintf(stderr, "the holder says \"%s\", not \"%s\"\n", line, word);
    return false;
}

void holder_release(struct holder *holder)
{
    (void)!write(holder->in, "r", 1);
}

void holder_kill(struct holder *holder)
{
    kill(holder->pid, SIGKILL);
    holder_wait(holder);
}

void holder_wait(struct holder *holder)
{
    waitpid(holder->pid, NULL, 0);
    close(holder->in);
    close(holder->out);
}
