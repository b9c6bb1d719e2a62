/* The flags of the commands around recordings: check, compare, levels, site, follow. */
#include "options.h"
#include "options_value.h"
#include "compare.h"

#include <stdio.h>

enum {
    KEY_AUDIT = OPTIONS_KEYS_OWN,
    KEY_JSON,
    KEY_QUIET,
    KEY_FAIL_IF,
    KEY_LAB,
    KEY_DEMO,
    KEY_LEVELS,
    KEY_OUT,
    KEY_SECKILLD,
    KEY_LEVEL,
    KEY_SITE,
    KEY_LISTEN
};

static error_t parse_check(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    switch (key) {
    case KEY_AUDIT:
        options->audit = arg;
        return 0;
    case KEY_JSON:
        options->json = arg;
        return 0;
    case KEY_QUIET:
        options->quiet = true;
        return 0;
    case ARGP_KEY_ARG:
        if (options->history != NULL)
            argp_error(state, "one HISTORY at a time");
        options->history = arg;
        return 0;
    case ARGP_KEY_END:
        if (options->history == NULL)
            argp_error(state, "a HISTORY is needed: a file that --history has written");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void add_fail_if(struct argp_state *state, const char *part, size_t length)
{
    struct options *options = state->input;
    char flag[32];
    snprintf(flag, sizeof flag, "%.*s", (int)length, part);
    int metric = compare_metric_find(flag);
    if (metric < 0)
        argp_error(state,
                   "--fail-if: '%s' is none of rate, accepted, p50, p90, p99, p99.9, max, "
                   "service-p99",
                   flag);
    for (int i = 0; i < options->n_fail_if; i++)
        if (options->fail_if[i] == metric)
            return;
    options->fail_if[options->n_fail_if++] = metric; /* there are no more metrics than room */
}

static error_t parse_compare(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    switch (key) {
    case KEY_FAIL_IF:
        options_split(state, arg, add_fail_if);
        return 0;
    case ARGP_KEY_ARG:
        if (options->n_reports == OPTIONS_REPORTS_MAX)
            argp_error(state, "at most %d reports", OPTIONS_REPORTS_MAX);
        options->reports[options->n_reports++] = arg;
        return 0;
    case ARGP_KEY_END:
        if (options->n_reports == 0 || options->n_reports % 2 != 0)
            argp_error(state,
                       "reports come in pairs, A.json B.json: files that --json has written");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_site(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    switch (key) {
    case KEY_LAB:
        options->lab = arg;
        return 0;
    case KEY_DEMO:
        options->demo = arg;
        return 0;
    case KEY_LEVELS:
        options->levels = arg;
        return 0;
    case KEY_OUT:
        options->dir = arg;
        return 0;
    case ARGP_KEY_END:
        if (options->lab == NULL || options->dir == NULL)
            argp_error(state, "--lab and --out are needed");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_levels(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    switch (key) {
    case KEY_JSON:
        options->json = arg;
        return 0;
    case KEY_LEVEL:
        options->level = arg;
        return 0;
    case KEY_QUIET:
        options->quiet = true;
        return 0;
    case KEY_SECKILLD:
        options->seckilld = arg;
        return 0;
    case ARGP_KEY_END:
        if (options->json == NULL)
            argp_error(state, "--json is needed: the file to write");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_follow(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    switch (key) {
    case KEY_SITE:
        options->site = arg;
        return 0;
    case KEY_LISTEN:
        options->follow = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* -- help -------------------------------------------------------------------------------------- */

static const struct argp_option compare_options[] = {
    {"fail-if", KEY_FAIL_IF, "METRIC[,METRIC...]", 0,
     "Exit status 99 when B is worse in it: rate, accepted, p50, p90, p99, p99.9, max, "
     "service-p99; "
     "only these are tested",
     1},
    {0}};

static const struct argp_option check_options[] = {
    {"audit", KEY_AUDIT, "FILE", 0, "Answer of GET /v1/audit after the run", 1},
    {"json", KEY_JSON, "FILE|-", 0, "Writes the results as JSON", 1},
    {"quiet", KEY_QUIET, NULL, 0, "Prints nothing: exit status and JSON only", 1},
    {0}};

static const struct argp_option site_options[] = {
    {"lab", KEY_LAB, "FILE", 0, "What `hazards run --json` has written", 1},
    {"demo", KEY_DEMO, "FILE", 0, "What `loadgen demo --json` has written", 1},
    {"levels", KEY_LEVELS, "FILE", 0, "What `loadgen levels --json` has written", 1},
    {"out", KEY_OUT, "DIR", 0, "The folder, made if it is missing", 1},
    {0}};

static const struct argp_option levels_options[] = {
    {"json", KEY_JSON, "FILE|-", 0, "Writes the recording as JSON", 1},
    {"level", KEY_LEVEL, "ID", 0, "Records this level only", 1},
    {"quiet", KEY_QUIET, NULL, 0, "Prints nothing: exit status and JSON only", 1},
    {"seckilld", KEY_SECKILLD, "FILE", 0, "The service's program (default: beside loadgen)", 1},
    {0}};

static const struct argp_option follow_options[] = {
    {"site", KEY_SITE, "DIR", 0, "What `loadgen site` has made (default: site, beside loadgen)", 1},
    {"listen", KEY_LISTEN, "HOST:PORT", 0,
     "Address for the class (default: the first one that other machines reach, port 8090)", 1},
    {0}};

const struct argp options_follow_argp = {.options = follow_options, .parser = parse_follow};
const struct argp options_levels_argp = {.options = levels_options, .parser = parse_levels};
const struct argp options_site_argp = {.options = site_options, .parser = parse_site};
const struct argp options_check_argp = {
    .options = check_options, .parser = parse_check, .args_doc = "HISTORY"};
const struct argp options_compare_argp = {.options = compare_options,
                                          .parser = parse_compare,
                                          .args_doc = "A.json B.json [A2.json B2.json...]"};
