/* lockkit release --force: frees a lock by hand, whoever holds it. */
#include "cmd.h"

#include <stdio.h>

enum { KEY_FORCE = 256 };

struct plan {
    struct cmd_target target;
    struct cmd_keys keys;
    bool force;
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct plan *plan = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = &plan->target;
        return 0;
    case KEY_FORCE:
        plan->force = true;
        return 0;
    case ARGP_KEY_ARG:
        cmd_add_key(state, &plan->keys, arg);
        return 0;
    case ARGP_KEY_NO_ARGS:
        argp_error(state, "a key is needed");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option own_options[] = {
    {"force", KEY_FORCE, NULL, 0, "Needed: the holder is not asked, and may go on working", 2},
    {0}};

static const struct argp_child children[] = {{&cmd_target_argp, 0, NULL, 0}, {0}};

static const struct argp release_argp = {
    .options = own_options,
    .parser = parse,
    .args_doc = "--force KEY...",
    .doc =
        "Frees locks whoever holds them. The holder finds out at its next renewal; until then it "
        "works as if it still had the lock, and only a fence stops its writes.\v"
        "Example:\n"
        "  lockkit release --force lock:task:nightly\n"
        "\nExit status: 0 freed, 1 nobody held one of them, 64 usage, 69 the lock server is away, "
        "70 other failures.",
    .children = children};

int cmd_release(int argc, char **argv)
{
    struct plan plan = {.keys.max = CMD_KEYS_MAX};
    cmd_parse(&release_argp, argc, argv, &plan);
    if (!plan.force) {
        fprintf(stderr, "%s: not freed: give --force, because the holder is not asked\n", argv[0]);
        return CMD_USAGE;
    }
    lk_client *client = cmd_open(&plan.target, NULL);
    int result = CMD_OK;
    for (size_t i = 0; i < plan.keys.n; i++) {
        lk_status status = lk_force_release(client, plan.keys.at[i]);
        if (status == LK_OK) {
            printf("%s: freed\n", plan.keys.at[i]);
        } else if (status == LK_LOST) {
            printf("%s: nobody held it\n", plan.keys.at[i]);
            result = CMD_FAILED;
        } else {
            result = cmd_fail_at(client, plan.keys.at[i], status);
            break;
        }
    }
    lk_close(client);
    return result;
}
