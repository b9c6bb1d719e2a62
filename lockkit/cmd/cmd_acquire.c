/*
 * lockkit acquire: runs a command while holding locks, as flock(1) does with files and consul lock
 * with Consul. The watchdog renews for as long as the command runs. If a lock is lost, the command
 * is ended (cmd_run.h), because another client may hold the lock.
 */
#include "cmd.h"
#include "cmd_run.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_LEASE = 256, KEY_WAIT, KEY_GRACE, KEY_SHARED, KEY_PERMITS };
enum { GRACE_MS = 5000, MS_MAX = 2000000000, LIST_MAX = LK_MANY_MAX * (LK_TOKEN_MAX + 1) };

struct plan {
    struct cmd_target target;
    struct cmd_keys keys;
    int64_t lease_ms, wait_ms, grace_ms;
    lk_mode mode;
    uint32_t permits;
    char **command;
};

/* -- the locks -------------------------------------------------------------------------------- */

/* Of several locks each variable is a list, in the order of the keys given. */
static bool export(const lk_hold *holds, size_t n)
{
    char keys[LIST_MAX + LK_MANY_MAX * LK_KEY_MAX] = "", tokens[LIST_MAX] = "",
                                       fences[LIST_MAX] = "";
    size_t keys_length = 0, tokens_length = 0, fences_length = 0;
    for (size_t i = 0; i < n; i++) {
        const char *space = i > 0 ? " " : "";
        keys_length += (size_t)snprintf(keys + keys_length, sizeof keys - keys_length, "%s%s",
                                        space, holds[i].key);
        tokens_length += (size_t)snprintf(tokens + tokens_length, sizeof tokens - tokens_length,
                                          "%s%s", space, holds[i].token);
        fences_length += (size_t)snprintf(fences + fences_length, sizeof fences - fences_length,
                                          "%s%" PRIu64, space, holds[i].fence);
    }
    return setenv("LOCKKIT_KEY", keys, 1) == 0 && setenv("LOCKKIT_TOKEN", tokens, 1) == 0 &&
           setenv("LOCKKIT_FENCE", fences, 1) == 0;
}

static int release_all(lk_client *client, lk_hold *holds, size_t n)
{
    int result = CMD_OK;
    for (size_t i = n; i > 0; i--) {
        lk_status status = lk_release(&holds[i - 1]);
        if (status == LK_LOST)
            result = cmd_fail(holds[i - 1].key, status);
        else if (status != LK_OK)
            cmd_fail_at(client, holds[i - 1].key, status); /* ours until now; its lease ends it */
    }
    return result;
}

static int acquire_and_run(const struct plan *plan)
{
    lk_options options = {.lease_ms = plan->lease_ms, .max_hold_ms = INT64_MAX / 1000000};
    lk_client *client = cmd_open(&plan->target, &options);
    lk_request requests[LK_MANY_MAX];
    lk_hold holds[LK_MANY_MAX];
    for (size_t i = 0; i < plan->keys.n; i++)
        requests[i] = (lk_request){.key = plan->keys.at[i],
                                   .mode = plan->mode,
                                   .permits = plan->permits,
                                   .wait_ms = plan->wait_ms,
                                   .on_lost = cmd_run_on_lost};
    lk_status status = lk_acquire_many(client, requests, plan->keys.n, holds);
    int result;
    if (status == LK_OK) {
        result = export(holds, plan->keys.n) ? cmd_run(plan->command, plan->grace_ms)
                                             : cmd_fail("environment", LK_NO_MEMORY);
        int released = release_all(client, holds, plan->keys.n);
        if (released == CMD_LOST || cmd_run_lost())
            result = CMD_LOST;
    } else {
        result = cmd_fail_at(client, plan->keys.n == 1 ? plan->keys.at[0] : "locks", status);
    }
    lk_close(client);
    return result;
}

/* -- the command line ------------------------------------------------------------------------- */

static void check_first_time(struct argp_state *state, const struct cmd_keys *keys, const char *key)
{
    for (size_t i = 0; i < keys->n; i++)
        if (strcmp(keys->at[i], key) == 0)
            argp_error(state, "key '%s' is given twice", key);
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct plan *plan = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &plan->target;
        return 0;
    case KEY_LEASE:
        plan->lease_ms = cmd_number(state, "--lease-ms", arg, LK_LEASE_MS_MIN, LK_LEASE_MS_MAX);
        return 0;
    case KEY_WAIT:
        plan->wait_ms = cmd_number(state, "--wait-ms", arg, 0, MS_MAX);
        return 0;
    case KEY_GRACE:
        plan->grace_ms = cmd_number(state, "--grace-ms", arg, 0, MS_MAX);
        return 0;
    case KEY_SHARED:
        plan->mode = LK_SHARED;
        return 0;
    case KEY_PERMITS:
        plan->permits = (uint32_t)cmd_number(state, "--permits", arg, 1, UINT32_MAX);
        return 0;
    case ARGP_KEY_ARG:
        check_first_time(state, &plan->keys, arg);
        cmd_add_key(state, &plan->keys, arg);
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "a key is needed, for example lock:backup");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option own_options[] = {
    {NULL, 0, NULL, 0, "How to hold them:", 2},
    {"lease-ms", KEY_LEASE, "N", 0, "Lease, renewed while the command runs (default 30000)", 2},
    {"wait-ms", KEY_WAIT, "N", 0, "Gives up after this; 0: one attempt (default: waits on)", 2},
    {"grace-ms", KEY_GRACE, "N", 0,
     "A lost lock: SIGKILL follows SIGTERM after this (default 5000)", 2},
    {"shared", KEY_SHARED, NULL, 0, "As a reader beside others (redis-readwrite, zk-readwrite)", 2},
    {"permits", KEY_PERMITS, "N", 0, "So many may hold it at once (redis-semaphore)", 2},
    {0}};

static const struct argp_child children[] = {{&cmd_target_argp, 0, NULL, 0}, {0}};

static const struct argp acquire_argp = {
    .options = own_options,
    .parser = parse,
    .args_doc = "KEY [KEY...] -- COMMAND [ARG...]",
    .doc = "Runs COMMAND while holding the locks. It finds LOCKKIT_KEY, LOCKKIT_TOKEN and "
           "LOCKKIT_FENCE in its environment.\v"
           "Examples:\n"
           "  lockkit acquire lock:backup -- pg_dump -f dump.sql shop\n"
           "  lockkit acquire --wait-ms 0 lock:task:nightly -- ./nightly.sh\n"
           "  lockkit acquire -g redis-readwrite --shared lock:catalogue -- ./report.sh\n"
           "\nExit status: the command's; 75 not had in time, 76 lost while the command ran, 69 "
           "the lock server is away, 64 usage, 70 other failures, 126 and 127 the command cannot "
           "be run or found, 128+N it ended by signal N.",
    .children = children};

int cmd_acquire(int argc, char **argv)
{
    struct plan plan = {.keys.max = LK_MANY_MAX, .wait_ms = INT64_MAX, .grace_ms = GRACE_MS};
    int own = 0;
    while (own < argc && strcmp(argv[own], "--") != 0)
        own++;
    if (own + 1 < argc)
        plan.command = argv + own + 1;
    cmd_parse(&acquire_argp, own, argv, &plan);
    if (plan.command == NULL) {
        fprintf(stderr, "%s: a command is needed after '--'\n", argv[0]);
        return CMD_USAGE;
    }
    if (!cmd_run_prepare()) {
        fprintf(stderr, "lockkit: %s\n", strerror(errno));
        return CMD_BROKEN;
    }
    return acquire_and_run(&plan);
}
