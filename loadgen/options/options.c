#include "options.h"
#include "options_value.h"
#include "schedule.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_GUARDS = OPTIONS_KEYS_OWN,
    KEY_STOCK,
    KEY_BUYERS,
    KEY_ACCOUNTS,
    KEY_PAIRS,
    KEY_DUPLICATES,
    KEY_SEED,
    KEY_EXPECT,
    KEY_JSON,
    KEY_HTML,
    KEY_QUIET,
    KEY_NO_COLOR,
    KEY_TOKEN_FILE,
    KEY_SECKILLD,
    KEY_DIR,
    KEY_LISTEN,
    KEY_FOLLOW,
    KEY_SITE,
    KEY_HISTORY,
    KEY_REPEAT,
    KEY_CSV,
    KEY_LEASE,
    KEY_WATCHDOG,
    KEY_FENCE,
    KEY_LANES,
    KEY_RUN_ID
};

enum { TOKEN_MAX = 255 };

static void copy_guard(struct argp_state *state, const char *flag, const char *text, size_t length,
                       char *ret)
{
    if (length == 0 || length >= OPTIONS_GUARD_TEXT_MAX)
        argp_error(state, "%s: '%.*s' is not a guard's name", flag, (int)length, text);
    memcpy(ret, text, length);
    ret[length] = '\0';
}

static void add_guard(struct argp_state *state, const char *part, size_t length)
{
    struct options *options = state->input;
    if (options->n_guards == OPTIONS_GUARDS_MAX)
        argp_error(state, "--guards: at most %d guards", OPTIONS_GUARDS_MAX);
    copy_guard(state, "--guards", part, length, options->guards[options->n_guards]);
    options->n_guards++;
}

static void add_expectation(struct argp_state *state, const char *text)
{
    struct options *options = state->input;
    const char *equals = strchr(text, '=');
    if (options->n_expectations == OPTIONS_GUARDS_MAX)
        argp_error(state, "--expect: at most %d times", OPTIONS_GUARDS_MAX);
    if (equals == NULL || (strcmp(equals, "=safe") != 0 && strcmp(equals, "=unsafe") != 0))
        argp_error(state, "--expect: '%s' is not GUARD=safe or GUARD=unsafe", text);
    struct expectation *next = &options->expectations[options->n_expectations++];
    copy_guard(state, "--expect", text, (size_t)(equals - text), next->guard);
    next->safe = strcmp(equals, "=safe") == 0;
}

/* The first line of the file, or else $SECKILL_TOKEN. A token is not an argument: others can read a
 * command line, and reports show it. */
static void read_token(struct argp_state *state, const char *path, char *ret, size_t size)
{
    FILE *file = fopen(path, "re");
    if (file == NULL)
        argp_error(state, "--token-file: cannot read %s: %s", path, strerror(errno));
    if (fgets(ret, (int)size, file) == NULL)
        ret[0] = '\0';
    fclose(file);
    ret[strcspn(ret, "\r\n")] = '\0';
    if (ret[0] == '\0')
        argp_error(state, "--token-file: %s holds no token", path);
}

/* Every request to the service carries the token. */
static void add_token(struct argp_state *state, struct options *options)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/=";
    char token[TOKEN_MAX + 2] = "";
    const char *given = getenv("SECKILL_TOKEN");
    if (options->token_file != NULL)
        read_token(state, options->token_file, token, sizeof token);
    else if (given != NULL)
        snprintf(token, sizeof token, "%s", given);
    if (token[0] == '\0')
        return;
    if (strlen(token) > TOKEN_MAX || token[strspn(token, letters)] != '\0')
        argp_error(state, "%s: a token is at most %d of [A-Za-z0-9-._~+/=]",
                   options->token_file != NULL ? "--token-file" : "SECKILL_TOKEN", TOKEN_MAX);
    for (int i = 0; i < options->n_targets; i++)
        snprintf(options->targets[i].headers, sizeof options->targets[i].headers,
                 "Authorization: Bearer %s\r\n", token);
}

/* -- the flags: one parser per concern --------------------------------------------------------- */

static error_t parse_report(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    switch (key) {
    case KEY_SEED:
        options->seed = (uint64_t)options_integer(state, "--seed", arg, 0, INT64_MAX);
        return 0;
    case KEY_JSON:
        options->json = arg;
        return 0;
    case KEY_HTML:
        options->html = arg;
        return 0;
    case KEY_CSV:
        options->csv = arg;
        return 0;
    case KEY_QUIET:
        options->quiet = true;
        return 0;
    case KEY_NO_COLOR:
        options->no_color = true;
        return 0;
    case KEY_GUARDS:
        options_split(state, arg, add_guard);
        return 0;
    case KEY_EXPECT:
        add_expectation(state, arg);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static enum options_choice choice(struct argp_state *state, const char *flag, const char *text)
{
    return options_switch(state, flag, text) ? CHOICE_ON : CHOICE_OFF;
}

static error_t parse_terms(int key, char *arg, struct argp_state *state)
{
    struct sale_terms *terms = &((struct options *)state->input)->terms;
    switch (key) {
    case KEY_LEASE:
        terms->lease_ms = options_integer(state, "--lease-ms", arg, 10, 3600000);
        return 0;
    case KEY_WATCHDOG:
        terms->watchdog = choice(state, "--watchdog", arg);
        return 0;
    case KEY_FENCE:
        terms->fence = choice(state, "--fence", arg);
        return 0;
    case KEY_LANES:
        terms->lanes = choice(state, "--lanes", arg);
        return 0;
    case ARGP_KEY_END:
        if (terms->watchdog == CHOICE_ON && terms->lease_ms == 0)
            argp_error(state, "--watchdog=on renews a lease: --lease-ms is needed, too");
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

/* The service's routes are known: http alone takes a path. */
static void check_addresses(struct argp_state *state, const struct options *options)
{
    for (int i = 0; i < options->n_targets; i++)
        if (strcmp(options->targets[i].path, "/") != 0)
            argp_error(state, "--url: the service's address is expected, without the path %s",
                       options->targets[i].path);
}

/* Names and keys of the run are made of it; two runs with one name would replay each other. */
static void take_run_id(struct argp_state *state, const char *text)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    struct options *options = state->input;
    if (text[0] == '\0' || strlen(text) >= sizeof options->run_id ||
        text[strspn(text, letters)] != '\0')
        argp_error(state, "--run-id: '%s' is not 1 to %zu of [A-Za-z0-9_-]", text,
                   sizeof options->run_id - 1);
    strcpy(options->run_id, text);
}

/* What one run and one report can hold is known before the first request. */
static void check_bounds(struct argp_state *state, const struct options *options)
{
    const struct load_options load = options_load(options, options->mode);
    const int guards = options->n_guards > 0 ? options->n_guards : 1;
    const bool is_open = options->mode_given && schedule_is_open(options->mode);
    if (is_open && options->requests == 0 && options->duration_ms > 0 &&
        schedule_planned(&load, options->requests_max + 1) > options->requests_max)
        argp_error(state,
                   "--rate and --duration ask for more than %llu requests, which one run remembers "
                   "until its verdict: give less, or --requests",
                   (unsigned long long)options->requests_max);
    if (guards * options->repeat > OPTIONS_RUNS_MAX)
        argp_error(state, "--guards and --repeat ask for %d runs; a report has at most %d",
                   guards * options->repeat, OPTIONS_RUNS_MAX);
}

static error_t parse_workload(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = state->child_inputs[1] = state->child_inputs[2] = options;
        return 0;
    case KEY_STOCK:
        options->stock = options_integer(state, "--stock", arg, 0, INT64_C(1000000000));
        return 0;
    case KEY_BUYERS:
        options->buyers = options_integer(state, "--buyers", arg, 1, OPTIONS_REQUESTS_MAX);
        return 0;
    case KEY_ACCOUNTS:
        options->accounts = options_integer(state, "--accounts", arg, 1, 10000);
        return 0;
    case KEY_PAIRS:
        options->pairs = (int)options_integer(state, "--pairs", arg, 0, 10000);
        return 0;
    case KEY_DUPLICATES:
        options->duplicates_pct = options_number(state, "--duplicates", arg, 0, 90);
        return 0;
    case KEY_REPEAT:
        options->repeat = (int)options_integer(state, "--repeat", arg, 1, OPTIONS_REPEAT_MAX);
        return 0;
    case KEY_HISTORY:
        options->history = arg;
        return 0;
    case KEY_TOKEN_FILE:
        options->token_file = arg;
        return 0;
    case KEY_RUN_ID:
        take_run_id(state, arg);
        return 0;
    case ARGP_KEY_END:
        if (options->run_id[0] != '\0' && (options->n_guards > 1 || options->repeat > 1))
            argp_error(state, "--run-id names one run: give one guard, and no --repeat");
        check_addresses(state, options);
        check_bounds(state, options);
        add_token(state, options);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_servers(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    switch (key) {
    case KEY_SECKILLD:
        options->seckilld = arg;
        return 0;
    case KEY_DIR:
        options->dir = arg;
        return 0;
    case KEY_LISTEN:
        options->listen = arg;
        return 0;
    case KEY_FOLLOW:
        options->follows = true;
        options->follow = arg;
        return 0;
    case KEY_SITE:
        options->site = arg;
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static error_t parse_demo(int key, char *arg, struct argp_state *state)
{
    if (key == ARGP_KEY_INIT) {
        state->child_inputs[0] = state->input;
        return 0;
    }
    return parse_servers(key, arg, state);
}

/* -- help -------------------------------------------------------------------------------------- */

static const struct argp_option report_options[] = {
    {NULL, 0, NULL, 0, "Guards and what they claim:", 3},
    {"guards", KEY_GUARDS, "G[,G...]", 0, "Runs under each of these guards, with the same seed", 3},
    {"expect", KEY_EXPECT, "GUARD=safe|unsafe", 0,
     "What to expect of the guard instead of its claim (repeatable)", 3},
    {NULL, 0, NULL, 0, "Reports:", 4},
    {"json", KEY_JSON, "FILE|-", 0, "Writes the results as JSON", 4},
    {"html", KEY_HTML, "FILE", 0, "Writes one HTML file with charts", 4},
    {"csv", KEY_CSV, "FILE", 0, "Writes a CSV line per run", 4},
    {"quiet", KEY_QUIET, NULL, 0, "Prints nothing: exit status and report files only", 4},
    {"no-color", KEY_NO_COLOR, NULL, 0, "No colours on a terminal", 4},
    {"seed", KEY_SEED, "S", 0, "The same seed sends the same requests (default 1)", 4},
    {0}};

/* The groups' headings come with options_engine_argp. */
static const struct argp_option workload_options[] = {
    {"token-file", KEY_TOKEN_FILE, "FILE", 0, "An operator's token (default: SECKILL_TOKEN)", 1},
    {"stock", KEY_STOCK, "N", 0, "sale: pieces on offer (default 100)", 2},
    {"buyers", KEY_BUYERS, "N", 0, "sale: number of buyers (default 2000)", 2},
    {"accounts", KEY_ACCOUNTS, "N", 0, "accounts, transfers: number of accounts (default 4)", 2},
    {"pairs", KEY_PAIRS, "N", 0,
     "accounts: tries 1,000 - 200 - 300 so often, until an update is lost (default 0)", 2},
    {"duplicates", KEY_DUPLICATES, "PCT", 0, "Per cent of requests that repeat an earlier one", 2},
    {"run-id", KEY_RUN_ID, "ID", 0,
     "Name of the run: part of its items, accounts and keys (default: random)", 2},
    {"repeat", KEY_REPEAT, "N", 0, "Runs all guards N times, in turn: A B A B", 3},
    {"history", KEY_HISTORY, "FILE", 0,
     "Writes each request and each answer as a JSON line; 'loadgen check' reads it", 4},
    {0}};

static const struct argp_option terms_options[] = {
    {"fence", KEY_FENCE, "on|off", 0, "sale: on refuses writes with a stale fence", 3},
    {"lease-ms", KEY_LEASE, "N", 0, "sale, service with --lab: lease of the lock", 3},
    {"watchdog", KEY_WATCHDOG, "on|off", 0,
     "sale, service with --lab: on renews that lease (default off)", 3},
    {"lanes", KEY_LANES, "on|off", 0, "sale, service with --lab: on takes one lock per batch", 3},
    {0}};

static const struct argp_option server_options[] = {
    {NULL, 0, NULL, 0, "Servers:", 1},
    {"seckilld", KEY_SECKILLD, "FILE", 0, "The service's program (default: beside loadgen)", 1},
    {0}};

static const struct argp_option serve_options[] = {
    {"seckilld", KEY_SECKILLD, "FILE", 0, "The service's program (default: beside loadgen)", 1},
    {"dir", KEY_DIR, "DIR", 0, "Folder for the store (default: a temporary one)", 1},
    {"listen", KEY_LISTEN, "HOST:PORT", 0, "Address of the service (default 127.0.0.1:8080)", 1},
    {"follow", KEY_FOLLOW, "HOST:PORT", OPTION_ARG_OPTIONAL,
     "A class goes along on its phones, as with 'loadgen follow'", 1},
    {"site", KEY_SITE, "DIR", 0,
     "With --follow: what 'loadgen site' has made (default: beside loadgen)", 1},
    {0}};

static const struct argp report_argp = {.options = report_options, .parser = parse_report};
static const struct argp_child report_child[] = {{&report_argp, 0, NULL, 0}, {0}};

static const struct argp terms_argp = {.options = terms_options, .parser = parse_terms};
static const struct argp_child workload_children[] = {
    {&options_engine_argp, 0, NULL, 0}, {&report_argp, 0, NULL, 0}, {&terms_argp, 0, NULL, 0}, {0}};

const struct argp options_load_argp = {
    .options = workload_options, .parser = parse_workload, .children = workload_children};
const struct argp options_demo_argp = {
    .options = server_options, .parser = parse_demo, .children = report_child};
const struct argp options_serve_argp = {.options = serve_options, .parser = parse_servers};

/* -- the whole --------------------------------------------------------------------------------- */

/* Without the credentials of a header. */
static void keep_command(struct options *options, const char *name, int argc, char **argv)
{
    static const char secret[] = "Authorization:";
    size_t used = (size_t)snprintf(options->command, sizeof options->command, "%s", name);
    for (int i = 1; i < argc && used < sizeof options->command; i++) {
        const char *at = strcasestr(argv[i], secret);
        const size_t shown = at != NULL ? (size_t)(at - argv[i]) + strlen(secret) : strlen(argv[i]);
        used += (size_t)snprintf(options->command + used, sizeof options->command - used, " %.*s%s",
                                 (int)shown, argv[i], at != NULL ? " ***" : "");
    }
}

void options_parse(const struct command *command, int argc, char **argv, struct options *ret)
{
    struct options options = {
        .connections = 64,
        .threads = 1,
        .timeout_ms = 15000,
        .patience_ms = 30000,
        .seed = 1,
        .requests_max = OPTIONS_REQUESTS_MAX,
        .stock = 100,
        .buyers = 2000,
        .accounts = 4,
        .repeat = 1,
        .listen = "127.0.0.1:8080",
    };
    keep_command(&options, argv[0], argc, argv);
    argp_err_exit_status = 2;
    struct argp argp = *command->argp;
    argp.doc = command->doc;
    argp_parse(&argp, argc, argv, 0, NULL, &options);
    *ret = options;
}
