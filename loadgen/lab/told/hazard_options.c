#include "hazard_options.h"
#include "exit_status.h"
#include "options_value.h"

#include <argp.h>
#include <string.h>

enum {
    KEY_REPEAT = 256,
    KEY_SEED,
    KEY_JSON,
    KEY_HTML,
    KEY_NARRATE,
    KEY_STEP,
    KEY_LANG,
    KEY_PATIENCE,
    KEY_MARKDOWN,
    KEY_BINARY
};

static const struct argp_option both_options[] = {
    {"hazard", 'z', "ID", 0, "only this hazard (repeatable); 'hazards list' shows them", 0},
    {"guard", 'g', "GUARD", 0, "only this guard (repeatable)", 0},
    {"json", KEY_JSON, "FILE", 0, "write the result as JSON ('-': stdout)", 0},
    {"lang", KEY_LANG, "en|zh", 0, "language of titles and stories (en)", 0},
    {0},
};

static const struct argp_option list_options[] = {
    {"markdown", KEY_MARKDOWN, NULL, 0, "as the table in loadgen/README.md", 0},
    {0},
};

static const struct argp_option run_options[] = {
    {"repeat", KEY_REPEAT, "N", 0, "run each N times (1)", 0},
    {"seed", KEY_SEED, "S", 0, "order of the runs; 0: the list's (0)", 0},
    {"html", KEY_HTML, "FILE", 0, "write the matrix as one HTML file", 0},
    {"narrate", KEY_NARRATE, NULL, 0, "tell each story while it happens", 0},
    {"step", KEY_STEP, NULL, 0, "wait for Enter after each step; implies --narrate", 0},
    {"patience-ms", KEY_PATIENCE, "N", 0,
     "a step that has not happened within this did not take effect (15000)", 0},
    {"seckilld", KEY_BINARY, "FILE", 0, "the service (beside this program)", 0},
    {0},
};

static error_t take_choice(int key, char *arg, struct argp_state *state)
{
    struct hazard_options *options = state->input;
    switch (key) {
    case 'z':
        if (hazard_find(arg) == NULL)
            argp_error(state, "no hazard '%s'; 'hazards list' shows them", arg);
        if (options->n_hazards == HAZARD_WANTED_MAX)
            argp_error(state, "at most %d hazards", HAZARD_WANTED_MAX);
        options->hazards[options->n_hazards++] = arg;
        return 0;
    case 'g':
        if (options->n_guards == HAZARD_WANTED_MAX)
            argp_error(state, "at most %d guards", HAZARD_WANTED_MAX);
        options->guards[options->n_guards++] = arg;
        return 0;
    case KEY_JSON:
        options->json = arg;
        return 0;
    case KEY_LANG:
        if (strcmp(arg, "en") != 0 && strcmp(arg, "zh") != 0)
            argp_error(state, "--lang: '%s' is neither en nor zh", arg);
        options->language = strcmp(arg, "zh") == 0 ? ZH : EN;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t take_option(int key, char *arg, struct argp_state *state)
{
    struct hazard_options *options = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = options;
        return 0;
    case KEY_REPEAT:
        options->repeat = (int)options_integer(state, "--repeat", arg, 1, HAZARD_REPEAT_MAX);
        return 0;
    case KEY_PATIENCE:
        options->patience_ms = options_integer(state, "--patience-ms", arg, 100, 600000);
        return 0;
    case KEY_MARKDOWN:
        options->markdown = true;
        return 0;
    case KEY_SEED:
        options->seed = (uint64_t)options_integer(state, "--seed", arg, 0, INT64_MAX);
        return 0;
    case KEY_HTML:
        options->html = arg;
        return 0;
    case KEY_STEP:
        options->step = true;
        options->narrate = true;
        return 0;
    case KEY_NARRATE:
        options->narrate = true;
        return 0;
    case KEY_BINARY:
        options->seckilld = arg;
        return 0;
    case ARGP_KEY_ARG:
        argp_error(state, "unexpected argument '%s'", arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

void hazard_options_parse(bool lists, int argc, char **argv, struct hazard_options *ret)
{
    const struct argp both = {.options = both_options, .parser = take_choice};
    const struct argp_child children[] = {{&both, 0, NULL, 0}, {0}};
    const struct argp argp = {
        .options = lists ? list_options : run_options,
        .parser = take_option,
        .children = children,
        .doc = lists ? "Shows each hazard, its guards, and what is expected of them.\v"
                       "Exit status: 0 shown, 1 failure, 2 usage."
                     : "Runs each hazard under each of its guards: real servers, a fault at a "
                       "named point, the outcome from the ledger.\v"
                       "Exit status: 0 all as expected, 1 failure, 2 usage, 99 an outcome was not "
                       "the expected one or a fault did not take effect, 130 interrupted."};
    *ret = (struct hazard_options){.repeat = 1, .patience_ms = 15000};
    argp_err_exit_status = EXIT_USAGE;
    argp_parse(&argp, argc, argv, 0, NULL, ret);
}

static bool wants(const char *const *list, int n, const char *name)
{
    for (int i = 0; i < n; i++)
        if (strcmp(list[i], name) == 0)
            return true;
    return n == 0;
}

bool hazard_options_want(const struct hazard_options *options, const struct hazard *hazard,
                         const struct hazard_case *one)
{
    return wants(options->hazards, options->n_hazards, hazard->id) &&
           wants(options->guards, options->n_guards, one->guard);
}
