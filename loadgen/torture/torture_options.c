#include "torture_options.h"
#include "exit_status.h"
#include "options_value.h"

#include <argp.h>
#include <inttypes.h>
#include <string.h>

enum {
    KEY_SEED = 256,
    KEY_ROUNDS,
    KEY_DURATION,
    KEY_GUARD,
    KEY_STORE,
    KEY_INSTANCES,
    KEY_FAULT,
    KEY_SMALL,
    KEY_DIR,
    KEY_JSON,
    KEY_KEEP,
    KEY_BINARY,
    KEY_SLIP,
    KEY_SUM,
    KEY_UNTIL
};

static const struct argp_option options_list[] = {
    {"seed", KEY_SEED, "N", 0, "seed of the first round (the one after the last in --json, or 1)",
     0},
    {"rounds", KEY_ROUNDS, "N", 0, "end after so many (without end)", 0},
    {"duration", KEY_DURATION, "T", 0, "begin no round after this: 30s, 10m, 8h (without end)", 0},
    {"guard", KEY_GUARD, "GUARD", 0, "only this guard", 0},
    {"store", KEY_STORE, "sqlite|postgres", 0, "only this store", 0},
    {"instances", KEY_INSTANCES, "1|2", 0, "only so many instances", 0},
    {"fault", KEY_FAULT, "FAULT", 0, "each whose name begins so exists wherever it can strike", 0},
    {"small", KEY_SMALL, NULL, 0, "only guards that need one Redis and the store", 0},
    {"dir", KEY_DIR, "DIR", 0, "where failed rounds leave their folder (torture-rounds)", 0},
    {"json", KEY_JSON, "FILE", 0, "the sums, which grow from run to run (DIR/sums.json)", 0},
    {"until-broken", KEY_UNTIL, NULL, 0, "end after the first broken round", 0},
    {"keep", KEY_KEEP, NULL, 0, "keep the folders of all rounds", 0},
    {"seckilld", KEY_BINARY, "FILE", 0, "the service (beside this program)", 0},
    {"slip", KEY_SLIP, "NAME", 0, "the service makes this mistake (seckilld --lab-slip)", 0},
    {"sum", KEY_SUM, NULL, 0, "run nothing: print the sum of these files", 0},
    {0},
};

static const char *choice(struct argp_state *state, const char *flag, const char *arg,
                          const char *one, const char *other)
{
    if (strcmp(arg, one) != 0 && strcmp(arg, other) != 0)
        argp_error(state, "--%s: '%s' is neither %s nor %s", flag, arg, one, other);
    return arg;
}

static bool is_fault(const char *name)
{
    for (int i = 0; i < TORTURE_FAULTS; i++)
        if (strncmp(torture_faults[i].name, name, strlen(name)) == 0)
            return true;
    return false;
}

static error_t take_limit(int key, char *arg, struct argp_state *state,
                          struct torture_options *options)
{
    switch (key) {
    case KEY_GUARD:
        if (torture_guard_named(arg) == NULL)
            argp_error(state, "--guard: there is no guard '%s'", arg);
        options->limits.guard = arg;
        return 0;
    case KEY_STORE:
        options->limits.store = choice(state, "store", arg, "sqlite", "postgres");
        return 0;
    case KEY_INSTANCES:
        options->limits.instances =
            (uint32_t)options_integer(state, "instances", arg, 1, TORTURE_INSTANCES);
        return 0;
    case KEY_FAULT:
        if (!is_fault(arg))
            argp_error(state, "--fault: there is no fault '%s'", arg);
        options->limits.fault = arg;
        return 0;
    case KEY_SMALL:
        options->limits.small = true;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t take_option(int key, char *arg, struct argp_state *state)
{
    struct torture_options *options = state->input;
    switch (key) {
    case KEY_SEED:
        options->seed = (uint64_t)options_integer(state, "seed", arg, 0, INT64_MAX);
        options->has_seed = true;
        return 0;
    case KEY_ROUNDS:
        options->rounds = options_integer(state, "rounds", arg, 1, INT64_MAX);
        return 0;
    case KEY_DURATION:
        options->duration_ms = options_duration(state, "duration", arg);
        return 0;
    case KEY_DIR:
        options->dir = arg;
        return 0;
    case KEY_JSON:
        options->json = arg;
        return 0;
    case KEY_KEEP:
        options->keep = true;
        return 0;
    case KEY_UNTIL:
        options->until_broken = true;
        return 0;
    case KEY_BINARY:
        options->seckilld = arg;
        return 0;
    case KEY_SLIP:
        options->slip = arg;
        return 0;
    case KEY_SUM:
        options->sum_only = true;
        return 0;
    case ARGP_KEY_ARG:
        if (options->n_files == TORTURE_FILES_MAX)
            argp_error(state, "at most %d files", TORTURE_FILES_MAX);
        options->files[options->n_files++] = arg;
        return 0;
    case ARGP_KEY_END:
        if (options->sum_only != (options->n_files > 0))
            argp_error(state, options->sum_only ? "--sum needs files" : "only --sum takes files");
        return 0;
    default:
        return take_limit(key, arg, state, options);
    }
}

void torture_options_parse(int argc, char **argv, struct torture_options *ret)
{
    const struct argp argp = {
        .options = options_list,
        .parser = take_option,
        .args_doc = "\n--sum FILE...",
        .doc = "Runs the service on real servers while faults strike, round after round. Settings "
               "and faults are drawn from a seed. Clients keep books of their own; books and "
               "database are compared after each round.\v"
               "Exit status: 0 all held, 1 failure, 2 usage, 99 a promise was broken, 130 "
               "interrupted."};
    *ret = (struct torture_options){.dir = "torture-rounds"};
    argp_err_exit_status = EXIT_USAGE;
    argp_parse(&argp, argc, argv, 0, NULL, ret);
}

void torture_options_replay(const struct torture_options *options, const char *program,
                            uint64_t seed, char *ret, size_t size)
{
    const struct torture_limits *limits = &options->limits;
    char instances[24] = "";
    if (limits->instances != 0)
        snprintf(instances, sizeof instances, " --instances %u", limits->instances);
    snprintf(ret, size, "%s --seed %" PRIu64 " --rounds 1%s%s%s%s%s%s%s%s%s%s", program, seed,
             limits->guard != NULL ? " --guard " : "", limits->guard != NULL ? limits->guard : "",
             limits->store != NULL ? " --store " : "", limits->store != NULL ? limits->store : "",
             instances, limits->fault != NULL ? " --fault " : "",
             limits->fault != NULL ? limits->fault : "", limits->small ? " --small" : "",
             options->slip != NULL ? " --slip " : "", options->slip != NULL ? options->slip : "");
}
