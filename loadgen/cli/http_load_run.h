/* One plain load from its request to its exit status, and its report. */
#ifndef HTTP_LOAD_RUN_H
#define HTTP_LOAD_RUN_H

#include "exit_status.h"
#include "http_load.h"

#include <jansson.h>
#include <stdio.h>

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
