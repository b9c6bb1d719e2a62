#include "http_load_run.h"
#include "exit_status.h"
#include "load_json.h"
#include "load_text.h"
#include "text.h"

#include <stdio.h>
#include <stdlib.h>

static bool is_stopped(const struct load_options *options)
{
    return options->stop != NULL && atomic_load(options->stop);
}

struct watch {
    const struct http_load_request *request;
    const struct load_options *options;
    const struct threshold *aborted_by; /* NULL: none */
};

static bool watch_load(void *ctx, const struct load_progress *now)
{
    struct watch *watch = ctx;
    const struct http_load_request *request = watch->request;
    const struct load_options *options = watch->options;
    bool go_on = options->progress == NULL || options->progress(options->progress_ctx, now);
    if (request->abort_after_ms > 0 && now->elapsed_us >= request->abort_after_ms * 1000) {
        struct threshold_figures figures = threshold_figures_now(now, options->warmup_ms);
        if (watch->aborted_by == NULL)
            watch->aborted_by =
                threshold_first_broken(request->thresholds, request->n_thresholds, &figures);
    }
    return go_on && watch->aborted_by == NULL;
}

static json_t *thresholds_json(const struct http_load_request *request,
                               const struct load_result *result)
{
    struct threshold_figures figures = threshold_figures_at_end(result, NULL);
    json_t *array = json_array();
    for (int i = 0; i < request->n_thresholds; i++) {
        double value;
        bool kept = threshold_kept(&request->thresholds[i], &figures, &value);
        json_array_append_new(array,
                              json_pack("{s:s, s:b, s:o}", "threshold", request->thresholds[i].text,
                                        "kept", kept, "value", load_number_json(value)));
    }
    return array;
}

json_t *http_load_to_json(const struct http_load_request *request,
                          const struct load_options *options, const char *command,
                          const struct load_result *result)
{
    json_t *run = json_pack("{s:s, s:s, s:s}", "workload", "http", "method",
                            http_load_method(request), "path", options->targets[0].path);
    json_object_set_new(run, "interrupted", json_boolean(is_stopped(options)));
    load_to_json(result, options, run);
    json_t *asked = json_object_get(run, "asked");
    json_object_set_new(asked, "method", json_string(http_load_method(request)));
    json_object_set_new(asked, "path", json_string(options->targets[0].path));
    json_object_set_new(run, "thresholds", thresholds_json(request, result));
    return json_pack("{s:s, s:I, s:s, s:[o]}", "command", command, "seed",
                     (json_int_t)options->seed, "workload", "http", "runs", run);
}

/* False: one is broken, at the end or when it ended the load. */
static bool judge(const struct http_load_request *request, const struct load_result *result,
                  const struct threshold *aborted_by, FILE *out)
{
    struct threshold_figures figures = threshold_figures_at_end(result, NULL);
    bool all = true;
    for (int i = 0; i < request->n_thresholds; i++) {
        const struct threshold *threshold = &request->thresholds[i];
        char text[TEXT_MAX];
        double value;
        bool kept = threshold_kept(threshold, &figures, &value) && threshold != aborted_by;
        all = all && kept;
        if (out != NULL)
            fprintf(out, "%-6s %s: %s%s\n", kept ? "kept" : "BROKEN", threshold->text,
                    threshold_value_text(threshold, value, text, sizeof text),
                    threshold == aborted_by ? "; the load was ended early" : "");
    }
    return all;
}

int http_load_main(const struct http_load_request *request, const struct load_options *options,
                   FILE *out, struct load_result *ret_result)
{
    char message[512];
    struct http_load *load;
    struct watch watch = {.request = request, .options = options};
    struct load_options watched = *options;
    if (request->abort_after_ms > 0) {
        watched.progress = watch_load;
        watched.progress_ctx = &watch;
    }
    int status = http_load_open(request, &watched, &load, message, sizeof message);
    if (status != 0) {
        *ret_result = (struct load_result){0};
        fprintf(stderr, "loadgen http: %s\n", message);
        return status;
    }
    struct load_workload workload = http_load_workload(load);
    status = load_run(&watched, &workload, ret_result, message, sizeof message);
    http_load_close(load);
    if (status != 0) {
        *ret_result = (struct load_result){0};
        fprintf(stderr, "loadgen http: %s\n", message);
        return 1;
    }
    if (out != NULL)
        load_text_headline(ret_result, options, out);
    bool kept = judge(request, ret_result, watch.aborted_by, out);
    if (out != NULL)
        load_text(ret_result, options, out);
    if (ret_result->ends[LOAD_ANSWERED] > 0 && !kept)
        return EXIT_BROKEN;
    if (ret_result->ends[LOAD_ANSWERED] > 0)
        return ret_result->dropped_errors > 0 && !is_stopped(options) && watch.aborted_by == NULL
                   ? 1
                   : 0;
    if (!is_stopped(options))
        fprintf(stderr, "loadgen http: no request to %s was answered; is a server running there?\n",
                options->targets[0].host);
    return 1;
}
