/* Runs one plain load, from its request to its report and exit status. */
#ifndef HTTP_LOAD_RUN_H
#define HTTP_LOAD_RUN_H

#include "exit_status.h"
#include "http_load.h"

#include <jansson.h>
#include <stdio.h>

/* Runs the load and prints the figures as text to `out` (NULL: nothing). Free *ret_result with
 * load_result_free(). Returns an exit status:
 * - 0: success
 * - 1: no run, with a message on stderr; *ret_result is all zeros
 * - 2: the same, for a malformed request
 * - 1: no request was answered, or some were due and never sent (no error with
 *   options->allow_dropped)
 * - 99: a threshold is broken, or was when it ended the load */
int http_load_main(const struct http_load_request *request, const struct load_options *options,
                   FILE *out, struct load_result *ret_result);

/* The figures as a report with one run, which `loadgen compare` can read. */
json_t *http_load_to_json(const struct http_load_request *request,
                          const struct load_options *options, const char *command,
                          const struct load_result *result);

#endif
