#include "http_load.h"
#include "load_json.h"
#include "schedule.h"
#include "template.h"
#include "text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The request to one target: path and Host differ. */
struct message {
    char head_text[LOAD_REQUEST_MAX]; /* up to the empty line, but for the length of the body */
    struct template head, body;
    size_t fixed; /* bytes of fixed_text, when no request differs from another; else 0 */
    char fixed_text[LOAD_REQUEST_MAX];
};

struct http_load {
    const struct load_options *options;
    bool has_body;
    struct message messages[LOAD_TARGETS_MAX];
};

enum { PLACE_HEAD, PLACE_BODY };

static const char *const end_names[LOAD_END_COUNT] = {
    [LOAD_ANSWERED] = "answered", [LOAD_ABANDONED] = "abandoned", [LOAD_NOT_SENT] = "not sent",
    [LOAD_BROKEN] = "broken",     [LOAD_TIMED_OUT] = "timed out", [LOAD_BAD_ANSWER] = "bad answer",
};

static bool is_method(const char *method)
{
    for (const char *c = method; *c != '\0'; c++)
        if (!isupper((unsigned char)*c) && *c != '-')
            return false;
    return *method != '\0';
}

static bool is_header(const char *header)
{
    size_t name = strcspn(header, ": \t");
    return name > 0 && header[name] == ':' && strpbrk(header, "\r\n") == NULL;
}

static bool has_host(const struct http_load_request *request)
{
    for (const char *const *header = request->headers; header != NULL && *header != NULL; header++)
        if (strncasecmp(*header, "Host:", 5) == 0)
            return true;
    return false;
}

static const char *method_of(const struct http_load_request *request)
{
    return request->method != NULL ? request->method : request->body != NULL ? "POST" : "GET";
}

static void write_head(const struct http_load_request *request, const struct load_target *target,
                       FILE *out)
{
    fprintf(out, "%s %s HTTP/1.1\r\n", method_of(request), target->path);
    for (const char *const *header = request->headers; header != NULL && *header != NULL; header++)
        fprintf(out, "%s\r\n", *header);
    if (!has_host(request))
        fprintf(out, "Host: %s\r\n", target->host);
}

/* Head, length of the body, body. Returns the length, or 0 when it does not fit. */
static size_t expand(const struct http_load *plain, const struct message *message, uint64_t seq,
                     char *out, size_t size)
{
    char body[LOAD_REQUEST_MAX];
    uint64_t seed = plain->options->seed;
    long head = template_expand(&message->head, seed, seq, PLACE_HEAD, out, size);
    long length = template_expand(&message->body, seed, seq, PLACE_BODY, body, sizeof body);
    if (head < 0 || length < 0)
        return 0;
    size_t room = size - (size_t)head;
    int n = plain->has_body ? snprintf(out + head, room, "Content-Length: %ld\r\n\r\n", length)
                            : snprintf(out + head, room, "\r\n");
    if (n < 0 || (size_t)n + (size_t)length >= room)
        return 0;
    memcpy(out + head + n, body, (size_t)length);
    return (size_t)head + (size_t)n + (size_t)length;
}

static int compose(struct http_load *plain, const struct http_load_request *request, int target,
                   char *message, size_t size)
{
    struct message *composed = &plain->messages[target];
    FILE *head = fmemopen(composed->head_text, sizeof composed->head_text, "w");
    if (head == NULL) {
        snprintf(message, size, "out of memory");
        return EXIT_FAILURE;
    }
    write_head(request, &plain->options->targets[target], head);
    bool fits = ftell(head) < LOAD_REQUEST_MAX;
    fits = fclose(head) == 0 && fits;
    const char *body = request->body == NULL ? "" : request->body;
    if (template_compile(composed->head_text, &composed->head, message, size) != 0 ||
        template_compile(body, &composed->body, message, size) != 0)
        return EXIT_USAGE;
    size_t length = fits ? expand(plain, composed, UINT64_MAX, composed->fixed_text,
                                  sizeof composed->fixed_text)
                         : 0;
    if (length == 0) {
        snprintf(message, size, "the request has more than %d bytes: shorten body or headers",
                 LOAD_REQUEST_MAX - 1);
        return EXIT_USAGE;
    }
    if (template_is_plain(&composed->head) && template_is_plain(&composed->body))
        composed->fixed = length;
    return 0;
}

int http_load_open(const struct http_load_request *request, const struct load_options *options,
                   struct http_load **ret, char *message, size_t size)
{
    if (request->method != NULL && !is_method(request->method)) {
        snprintf(message, size, "method '%s': capital letters expected", request->method);
        return EXIT_USAGE;
    }
    for (const char *const *header = request->headers; header != NULL && *header != NULL; header++)
        if (!is_header(*header)) {
            snprintf(message, size, "header '%s': 'Name: value' on one line expected", *header);
            return EXIT_USAGE;
        }
    struct http_load *plain = calloc(1, sizeof *plain);
    if (plain == NULL) {
        snprintf(message, size, "out of memory");
        return EXIT_FAILURE;
    }
    plain->options = options;
    plain->has_body = request->body != NULL;
    int status = 0;
    for (int i = 0; i < options->n_targets && status == 0; i++)
        status = compose(plain, request, i, message, size);
    if (status == 0)
        *ret = plain;
    else
        free(plain);
    return status;
}

static size_t write_request(void *ctx, uint64_t seq, const struct load_target *target, char *out,
                            size_t size)
{
    const struct http_load *plain = ctx;
    const struct message *message = &plain->messages[target - plain->options->targets];
    if (message->fixed == 0)
        return expand(plain, message, seq, out, size);
    memcpy(out, message->fixed_text, message->fixed); /* size is at least LOAD_REQUEST_MAX */
    return message->fixed;
}

static int64_t take_outcome(void *ctx, uint64_t seq, const struct load_answer *answer)
{
    (void)ctx;
    (void)seq;
    (void)answer; /* the engine counts */
    return -1;
}

struct load_workload http_load_workload(struct http_load *plain)
{
    return (struct load_workload){.request = write_request, .outcome = take_outcome, .ctx = plain};
}

void http_load_close(struct http_load *plain)
{
    free(plain);
}

/* dropped: requests that count as slower than all of these. False: a percentile is not told. */
static bool print_latency(FILE *out, const char *name, const struct hist *hist, uint64_t dropped)
{
    static const struct {
        const char *name;
        double percentile;
    } shown[] = {{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p99.9", 99.9}};
    const struct load_result of = {.latency = *hist, .dropped_errors = dropped};
    bool all_told = true;
    if (hist->count == 0) {
        fprintf(out, "%-9s -\n", name);
        return true;
    }
    fprintf(out, "%-9s", name);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        int64_t us = load_percentile(&of, shown[i].percentile);
        all_told = all_told && us != LOAD_NOT_TOLD;
        if (us == LOAD_NOT_TOLD)
            fprintf(out, " %s -,", shown[i].name);
        else
            fprintf(out, " %s %lld%s,", shown[i].name, (long long)us, i == 0 ? " us" : "");
    }
    fprintf(out, " max %lld us\n", (long long)hist->max);
    return all_told;
}

/* Latencies, and why requests went out late where each has a time of its own. */
static void print_times(FILE *out, const struct load_result *result,
                        const struct load_options *options)
{
    bool all_told = print_latency(out, "latency", &result->latency, result->dropped_errors);
    all_told = print_latency(out, "service", &result->service, 0) && all_told;
    if (schedule_is_open(options->mode)) {
        all_told = print_latency(out, "own lag", &result->own_lag, 0) && all_told;
        all_told = print_latency(out, "no conn.", &result->no_connection, 0) && all_told;
    }
    if (!all_told)
        fprintf(out, "          -: too few answers" LOAD_FEW_NOTE "%s\n",
                result->dropped_errors > 0 ? ", or among the requests never sent" : "");
    if (options->mode == LOAD_CLOSED)
        fprintf(out, "          %s\n", LOAD_CLOSED_NOTE);
}

static bool is_stopped(const struct load_options *options)
{
    return options->stop != NULL && atomic_load(options->stop);
}

static void print_result(FILE *out, const struct load_result *result,
                         const struct load_options *options)
{
    uint64_t outside = result->ends[LOAD_ANSWERED] - result->answered;
    char sentence[LOAD_OVERLOAD_MAX];
    if (is_stopped(options))
        fprintf(out, "INTERRUPTED: not everything was tried\n");
    else if (load_overload(result, sentence, sizeof sentence))
        fprintf(out, "OVERLOADED: %s\n", sentence);
    fprintf(out, "answers   %llu in %.2f s: %.0f per second, %.2f MB read\n",
            (unsigned long long)result->answered, (double)result->measured_us / 1e6,
            load_rate(result), (double)result->bytes_in / 1e6);
    if (result->completed > result->measured)
        fprintf(out, "warm-up   %llu requests before that, not measured\n",
                (unsigned long long)(result->completed - result->measured));
    if (outside > 0)
        fprintf(out, "outside   %llu answers %safter the end, not in the rate\n",
                (unsigned long long)outside, options->warmup_ms > 0 ? "in the warm-up or " : "");
    print_times(out, result, options);
    fprintf(out, "status   ");
    for (int i = 0; i < 600; i++)
        if (result->status[i] > 0)
            fprintf(out, " %d: %llu", i, (unsigned long long)result->status[i]);
    fprintf(out, "\nproblems  dropped: %llu", (unsigned long long)result->dropped);
    for (int i = LOAD_ABANDONED; i < LOAD_END_COUNT; i++)
        if (result->ends[i] > 0)
            fprintf(out, ", %s: %llu", end_names[i], (unsigned long long)result->ends[i]);
    fputc('\n', out);
}

struct watch {
    const struct http_load_request *request;
    const struct load_options *options;
    bool aborted;
};

static bool watch_load(void *ctx, const struct load_progress *now)
{
    struct watch *watch = ctx;
    const struct http_load_request *request = watch->request;
    const struct load_options *options = watch->options;
    bool go_on = options->progress == NULL || options->progress(options->progress_ctx, now);
    if (request->abort_after_ms > 0 && now->elapsed_us >= request->abort_after_ms * 1000) {
        struct threshold_figures figures = threshold_figures_now(now, options->warmup_ms);
        watch->aborted = watch->aborted || threshold_first_broken(request->thresholds,
                                                                  request->n_thresholds, &figures);
    }
    return go_on && !watch->aborted;
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
    json_t *run = json_pack("{s:s, s:s, s:s}", "workload", "http", "method", method_of(request),
                            "path", options->targets[0].path);
    json_object_set_new(run, "interrupted", json_boolean(is_stopped(options)));
    load_to_json(result, options, run);
    json_t *asked = json_object_get(run, "asked");
    json_object_set_new(asked, "method", json_string(method_of(request)));
    json_object_set_new(asked, "path", json_string(options->targets[0].path));
    json_object_set_new(run, "thresholds", thresholds_json(request, result));
    return json_pack("{s:s, s:I, s:s, s:[o]}", "command", command, "seed",
                     (json_int_t)options->seed, "workload", "http", "runs", run);
}

/* False: one is broken. */
static bool judge(const struct http_load_request *request, const struct load_result *result,
                  bool aborted, FILE *out)
{
    struct threshold_figures figures = threshold_figures_at_end(result, NULL);
    bool all = true;
    for (int i = 0; i < request->n_thresholds; i++) {
        const struct threshold *threshold = &request->thresholds[i];
        char text[TEXT_MAX];
        double value;
        bool kept = threshold_kept(threshold, &figures, &value);
        all = all && kept;
        if (out != NULL)
            fprintf(out, "%-9s %s is %s\n", kept ? "kept" : "BROKEN", threshold->text,
                    threshold_value_text(threshold, value, text, sizeof text));
    }
    if (aborted && out != NULL)
        fprintf(out, "the load was ended early\n");
    return all;
}

int http_load_main(const struct http_load_request *request, const struct load_options *options,
                   FILE *out, struct load_result *ret_result)
{
    char message[512];
    struct http_load *plain;
    struct watch watch = {.request = request, .options = options};
    struct load_options watched = *options;
    if (request->abort_after_ms > 0) {
        watched.progress = watch_load;
        watched.progress_ctx = &watch;
    }
    int status = http_load_open(request, &watched, &plain, message, sizeof message);
    if (status != 0) {
        *ret_result = (struct load_result){0};
        fprintf(stderr, "loadgen http: %s\n", message);
        return status;
    }
    struct load_workload workload = http_load_workload(plain);
    status = load_run(&watched, &workload, ret_result, message, sizeof message);
    http_load_close(plain);
    if (status != 0) {
        *ret_result = (struct load_result){0};
        fprintf(stderr, "loadgen http: %s\n", message);
        return 1;
    }
    if (out != NULL)
        print_result(out, ret_result, options);
    bool kept = judge(request, ret_result, watch.aborted, out);
    if (ret_result->ends[LOAD_ANSWERED] > 0 && !kept)
        return EXIT_BROKEN;
    if (ret_result->ends[LOAD_ANSWERED] > 0)
        return ret_result->dropped_errors > 0 && !is_stopped(options) && !watch.aborted ? 1 : 0;
    if (!is_stopped(options))
        fprintf(stderr, "loadgen http: no request to %s was answered; is a server running there?\n",
                options->targets[0].host);
    return 1;
}
