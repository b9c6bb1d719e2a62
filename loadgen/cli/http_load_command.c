#include "http_load_command.h"
#include "options_value.h"
#include "output.h"
#include "http_load_run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DURATION_MS = 10000 };
enum { KEY_METHOD = OPTIONS_KEYS_HTTP, KEY_BODY, KEY_HEADER, KEY_JSON, KEY_QUIET, KEY_SEED };

static error_t parse(int key, char *arg, struct argp_state *state)
{
    struct options *options = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = options;
        return 0;
    case ARGP_KEY_ARG:
        options_split(state, arg, options_add_url);
        return 0;
    case ARGP_KEY_NO_ARGS:
        if (options->n_targets == 0)
            argp_error(state, "a URL is needed, for example http://127.0.0.1:8080/livez");
        return 0;
    case ARGP_KEY_END:
        if (options->mode_given && options->mode == LOAD_BURST && options->requests == 0)
            argp_error(state, "--mode burst needs --requests");
        for (int i = 0; i < options->n_thresholds; i++)
            if (threshold_wants_verdict(&options->thresholds[i]))
                argp_error(state, "--threshold '%s': plain load has no verdict",
                           options->thresholds[i].text);
        return 0;
    case KEY_METHOD:
        options->method = arg;
        return 0;
    case KEY_BODY:
        options->body = arg;
        return 0;
    case KEY_HEADER: {
        int n = 0;
        while (options->headers[n] != NULL)
            n++;
        if (n == OPTIONS_HEADERS_MAX)
            argp_error(state, "--header: at most %d", OPTIONS_HEADERS_MAX);
        options->headers[n] = arg;
        return 0;
    }
    case KEY_JSON:
        options->json = arg;
        return 0;
    case KEY_QUIET:
        options->quiet = true;
        return 0;
    case KEY_SEED:
        options->seed = (uint64_t)options_integer(state, "--seed", arg, 0, INT64_MAX);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static const struct argp_option own_options[] = {
    {NULL, 0, NULL, 0, "The request:", 3},
    {"method", KEY_METHOD, "M", 0, "Default GET, or POST when there is a body", 3},
    {"body", KEY_BODY, "TEXT", 0, "Sent with each request; a file: --body \"$(cat FILE)\"", 3},
    {"header", KEY_HEADER, "NAME: VALUE", 0, "A further header (repeatable)", 3},
    {"seed", KEY_SEED, "S", 0, "Replays the same random placeholders (default 1)", 3},
    {NULL, 0, NULL, 0, "Reports:", 4},
    {"json", KEY_JSON, "FILE|-", 0, "Writes the results as JSON; 'loadgen compare' reads it", 4},
    {"quiet", KEY_QUIET, NULL, 0, "Prints nothing: exit status and JSON only", 4},
    {0}};
static const struct argp_child children[] = {{&options_engine_argp, 0, NULL, 0}, {0}};

const struct argp http_load_command_argp = {
    .options = own_options, .parser = parse, .args_doc = "URL", .children = children};

int http_load_command(const struct options *options)
{
    struct http_load_request request = {
        .method = options->method,
        .body = options->body,
        .headers = options->headers,
        .thresholds = options->thresholds,
        .n_thresholds = options->n_thresholds,
        .abort_after_ms = options->abort_after_ms,
    };
    bool bounded = options->requests > 0 || options->duration_ms > 0;
    struct load_options load =
        options_load(options, options->mode_given ? options->mode : LOAD_CLOSED);
    if (!bounded)
        load.duration_ms = DURATION_MS;
    struct load_result result;
    bool data_on_stdout = options->json != NULL && strcmp(options->json, "-") == 0;
    int status = http_load_main(&request, &load,
                                options->quiet   ? NULL
                                : data_on_stdout ? stderr
                                                 : stdout,
                                &result);
    bool ran = result.sent > 0;
    if (ran && options->json != NULL &&
        output_json("loadgen http", options->json,
                    http_load_to_json(&request, &load, options->command, &result)) != 0)
        status = EXIT_FAILURE;
    load_result_free(&result);
    return options_stopped(options) ? EXIT_INTERRUPTED : status;
}
