/* Plain HTTP load: the same request again and again to any server, no verdict. Path, headers and
 * body may have placeholders: see template.h. */
#ifndef HTTP_LOAD_H
#define HTTP_LOAD_H

#include "load.h"
#include "threshold.h"

struct http_load_request {
    const char *method;         /* NULL: GET, or POST when there is a body */
    const char *body;           /* NULL: none; must live until http_load_close() */
    const char *const *headers; /* "Name: value" without line ends, NULL-terminated; may be NULL */
    const struct threshold *thresholds;
    int n_thresholds;
    int64_t abort_after_ms; /* 0: a broken threshold does not end the load early */
};

/* The method, given or default. */
const char *http_load_method(const struct http_load_request *request);

struct http_load;

/* Builds the request for each of options->targets, at its path. options must live until
 * http_load_close(). Returns 0, or with a message EXIT_USAGE (malformed header, method or
 * placeholder, too long) or EXIT_FAILURE (no memory). */
int http_load_open(const struct http_load_request *request, const struct load_options *options,
                   struct http_load **ret, char *message, size_t size);
/* The workload for load_run(). Each request is sent once, whatever its outcome. */
struct load_workload http_load_workload(struct http_load *load);
void http_load_close(struct http_load *load); /* NULL is allowed */

#endif
