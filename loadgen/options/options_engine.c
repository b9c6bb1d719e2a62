/* The flags of every command that sends load: where to, how much, how fast. */
#include "options.h"
#include "options_value.h"
#include "schedule.h"

#include <string.h>

static const char *const mode_texts[] = {
    [LOAD_BURST] = "burst", [LOAD_RATE] = "rate", [LOAD_RAMP] = "ramp", [LOAD_CLOSED] = "closed"};
enum { MODES = sizeof mode_texts / sizeof *mode_texts };

const char *options_mode_text(enum load_mode mode)
{
    return mode_texts[mode];
}

static const char *const arrival_texts[] = {[LOAD_EVEN] = "even", [LOAD_POISSON] = "poisson"};
enum { ARRIVALS = sizeof arrival_texts / sizeof *arrival_texts };

const char *options_arrivals_text(enum load_arrivals arrivals)
{
    return arrival_texts[arrivals];
}

enum {
    KEY_URL = OPTIONS_KEYS_ENGINE,
    KEY_MODE,
    KEY_RATE,
    KEY_RATE_FROM,
    KEY_WARMUP,
    KEY_CONNECTIONS,
    KEY_THREADS,
    KEY_DURATION,
    KEY_TIMEOUT,
    KEY_REQUESTS,
    KEY_ABANDON,
    KEY_THRESHOLD,
    KEY_ABORT_AFTER,
    KEY_PIPELINE,
    KEY_ALLOW_DROPPED,
    KEY_ARRIVALS
};

static enum load_mode mode_of(struct argp_state *state, const char *text)
{
    for (int mode = 0; mode < MODES; mode++)
        if (strcmp(text, mode_texts[mode]) == 0)
            return (enum load_mode)mode;
    argp_error(state, "--mode: '%s' is none of burst, rate, ramp, closed", text);
    return LOAD_BURST;
}

static enum load_arrivals arrivals_of(struct argp_state *state, const char *text)
{
    for (int arrivals = 0; arrivals < ARRIVALS; arrivals++)
        if (strcmp(text, arrival_texts[arrivals]) == 0)
            return (enum load_arrivals)arrivals;
    argp_error(state, "--arrivals: '%s' is none of even, poisson", text);
    return LOAD_EVEN;
}

void options_add_url(struct argp_state *state, const char *part, size_t length)
{
    struct options *options = state->input;
    char url[600], message[256];
    if (options->n_targets == LOAD_TARGETS_MAX)
        argp_error(state, "at most %d addresses", LOAD_TARGETS_MAX);
    if (length >= sizeof url)
        argp_error(state, "%.60s...: too long", part);
    memcpy(url, part, length);
    url[length] = '\0';
    struct load_target *target = &options->targets[options->n_targets];
    if (load_target_parse(url, target, message, sizeof message) != 0)
        argp_error(state, "%s", message);
    options->n_targets++;
}

struct load_options options_load(const struct options *options, enum load_mode mode)
{
    struct load_options load = {.n_targets = options->n_targets,
                                .mode = mode,
                                .arrivals = options->arrivals,
                                .rate = options->rate,
                                .ramp_from = options->ramp_from,
                                .warmup_ms = options->warmup_ms,
                                .connections = options->connections,
                                .threads = options->threads,
                                .pipeline = options->pipeline,
                                .requests = options->requests,
                                .duration_ms = options->duration_ms,
                                .timeout_ms = options->timeout_ms,
                                .allow_dropped = options->allow_dropped,
                                .abandon_pct = options->abandon_pct,
                                .seed = options->seed,
                                .stop = options->stop};
    memcpy(load.targets, options->targets, sizeof load.targets);
    return load;
}

bool options_stopped(const struct options *options)
{
    return options->stop != NULL && atomic_load(options->stop);
}

static void add_threshold(struct argp_state *state, const char *text)
{
    struct options *options = state->input;
    char message[512];
    if (options->n_thresholds == THRESHOLDS_MAX)
        argp_error(state, "--threshold: at most %d", THRESHOLDS_MAX);
    if (threshold_parse(text, &options->thresholds[options->n_thresholds], message,
                        sizeof message) != 0)
        argp_error(state, "--threshold '%s': %s", text, message);
    options->n_thresholds++;
}

static void check_load(struct argp_state *state)
{
    const struct options *options = state->input;
    if (options->n_targets == 0)
        argp_error(state, "--url is needed, for example --url http://127.0.0.1:8080");
    bool open = options->mode_given && schedule_is_open(options->mode);
    bool ramp = open && options->mode == LOAD_RAMP;
    if (open && options->rate <= 0)
        argp_error(state, "--mode %s needs --rate, for example --rate 500",
                   options_mode_text(options->mode));
    if (options->rate > 0 && !open)
        argp_error(state, "--rate needs --mode rate or --mode ramp");
    if (options->arrivals == LOAD_POISSON && !open)
        argp_error(state, "--arrivals poisson needs --mode rate or --mode ramp");
    if (options->ramp_from > 0 && !ramp)
        argp_error(state, "--rate-from needs --mode ramp");
    if (ramp && options->duration_ms == 0)
        argp_error(state, "--mode ramp needs --duration: the time it rises over");
    if (options->warmup_ms > 0 && options->mode_given && options->mode == LOAD_BURST)
        argp_error(state, "--warmup: a burst is due at once, there is nothing before it");
    if (options->duration_ms > 0 && options->warmup_ms >= options->duration_ms)
        argp_error(state, "--warmup must be shorter than --duration");
    if (options->pipeline > 1 && options->abandon_pct > 0)
        argp_error(state, "--pipeline: a pipelined request cannot be abandoned alone");
    if (options->abort_after_ms > 0 && options->n_thresholds == 0)
        argp_error(state, "--abort-after needs --threshold");
    if (options->threads > options->connections)
        argp_error(state, "--threads: %d threads need at least as many --connections",
                   options->threads);
    if (options->n_targets > options->connections)
        argp_error(state, "--connections: at least one per --url is needed");
}

static error_t parse_engine(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    switch (key) {
    case KEY_URL:
        options_split(state, arg, options_add_url);
        return 0;
    case KEY_MODE:
        options->mode = mode_of(state, arg);
        options->mode_given = true;
        return 0;
    case KEY_ARRIVALS:
        options->arrivals = arrivals_of(state, arg);
        return 0;
    case KEY_RATE:
        options->rate = options_number(state, "--rate", arg, 0.001, 1e7);
        return 0;
    case KEY_RATE_FROM:
        options->ramp_from = options_number(state, "--rate-from", arg, 0, 1e7);
        return 0;
    case KEY_WARMUP:
        options->warmup_ms = options_duration(state, "--warmup", arg);
        return 0;
    case KEY_CONNECTIONS:
        options->connections =
            (int)options_integer(state, "--connections", arg, 1, LOAD_CONNECTIONS_MAX);
        return 0;
    case KEY_THREADS:
        options->threads = (int)options_integer(state, "--threads", arg, 1, LOAD_THREADS_MAX);
        return 0;
    case KEY_PIPELINE:
        options->pipeline = (int)options_integer(state, "--pipeline", arg, 1, LOAD_PIPELINE_MAX);
        return 0;
    case KEY_DURATION:
        options->duration_ms = options_duration(state, "--duration", arg);
        return 0;
    case KEY_TIMEOUT:
        options->timeout_ms = options_integer(state, "--timeout-ms", arg, 1, 3600000);
        return 0;
    case KEY_REQUESTS:
        options->requests =
            (uint64_t)options_integer(state, "--requests", arg, 1, OPTIONS_REQUESTS_MAX);
        return 0;
    case KEY_ABANDON:
        options->abandon_pct = options_number(state, "--abandon", arg, 0, 100);
        return 0;
    case KEY_ALLOW_DROPPED:
        options->allow_dropped = true;
        return 0;
    case KEY_THRESHOLD:
        add_threshold(state, arg);
        return 0;
    case KEY_ABORT_AFTER:
        options->abort_after_ms = options_duration(state, "--abort-after", arg);
        return 0;
    case ARGP_KEY_END:
        check_load(state);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option engine_options[] = {
    {NULL, 0, NULL, 0, "The service:", 1},
    {"url", KEY_URL, "U[,U...]", 0, "The instances; connections are spread over them", 1},
    {"timeout-ms", KEY_TIMEOUT, "MS", 0, "Timeout of one answer (default 15000)", 1},
    {NULL, 0, NULL, 0, "The load:", 2},
    {"mode", KEY_MODE, "burst|rate|ramp|closed", 0,
     "All at once; at a rate; at a rising rate; one after the other per connection", 2},
    {"rate", KEY_RATE, "R", 0, "rate: requests per second; ramp: the same, at its end", 2},
    {"rate-from", KEY_RATE_FROM, "R", 0, "ramp: requests per second at its start (default 0)", 2},
    {"arrivals", KEY_ARRIVALS, "even|poisson", 0,
     "rate, ramp: equal intervals (default), or random ones as from many callers", 2},
    {"warmup", KEY_WARMUP, "D", 0, "Requests due before this are sent but not measured", 2},
    {"connections", KEY_CONNECTIONS, "C", 0, "Connections kept open (default 64)", 2},
    {"threads", KEY_THREADS, "T", 0, "Threads of loadgen (default 1)", 2},
    {"pipeline", KEY_PIPELINE, "N", 0,
     "Unanswered requests per connection at most (default 1: no pipelining)", 2},
    {"duration", KEY_DURATION, "D", 0, "Sends no new request after this: 500ms, 30s, 2m", 2},
    {"requests", KEY_REQUESTS, "N", 0, "Number of requests", 2},
    {"abandon", KEY_ABANDON, "PCT", 0,
     "Per cent of requests that drop their connection before the answer", 2},
    {"allow-dropped", KEY_ALLOW_DROPPED, NULL, 0,
     "Requests due and never sent are not errors: for a load that is meant to be too much", 2},
    {"threshold", KEY_THRESHOLD, "EXPR", 0,
     "Exit status 99 unless it holds: p(99)<50ms, rate>4000, errors<0.1%, oversold==0 (repeatable)",
     2},
    {"abort-after", KEY_ABORT_AFTER, "D", 0,
     "After this time a broken threshold ends the load at once", 2},
    {0}};

const struct argp options_engine_argp = {.options = engine_options, .parser = parse_engine};
