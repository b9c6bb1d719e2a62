/* Plain HTTP load: the same request again and again to any server, no verdict. Path, headers and
 * body may have placeholders: see template.h. */
#ifndef HTTP_LOAD_H
#define HTTP_LOAD_H

#include "exit_status.h"
#include "load.h"
#include "threshold.h"

#include <jansson.h>
#include <stdio.h>

struct http_load_request {
    const char *method;         /* NULL: GET, or POST when there is a body */
    const char *body;           /* NULL: none; must live until http_load_close() */
    const char *const *headers; /* "Name: value" without line ends, NULL-terminated; may be NULL */
    const struct threshold *thresholds;
    int n_thresholds;
    int64_t abort_after_ms; /* 0: a broken threshold ends nothing early */
};

struct http_load;

/* Builds the request for each of options->targets (borrowed until http_load_close()) at its path.
 * Returns 0; or with a message EXIT_USAGE (malformed header, method or placeholder, too long)
 * or EXIT_FAILURE (no memory). */
int http_load_open(const struct http_load_request *request, const struct load_options *options,
                   struct http_load **ret, char *message, size_t size);
/* The workload to give to load_run(); each request is sent once, whatever becomes of it. */
struct load_workload http_load_workload(struct http_load *plain);
void http_load_close(struct http_load *plain); /* NULL is allowed */

/* Runs the load and prints the figures as text to `out` (NULL: nothing). *ret_result is to be
 * freed with load_result_free(). Returns an exit status: 0; 1 or 2 after a message on
 * stderr (no run: *ret_result is all zeros; 2 for a malformed request); 1 because no request was
 * answered, or some were due and never sent (options->allow_dropped: no error); 99 when a threshold
 * is broken. */
int http_load_main(const struct http_load_request *request, const struct load_options *options,
                   FILE *out, struct load_result *ret_result);

/* The figures as a report with one run, which `loadgen compare` reads, too. */
json_t *http_load_to_json(const struct http_load_request *request,
                          const struct load_options *options, const char *command,
                          const struct load_result *result);

#endif
