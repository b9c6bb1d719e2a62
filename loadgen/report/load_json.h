/* The part of a JSON report about its load, shared by judged and plain load. */
#ifndef LOAD_JSON_H
#define LOAD_JSON_H

#include "load.h"

#include <jansson.h>

/* Sets asked, load, throughput_rps, latency_us, service_us, sent_late_us, status and series of the
 * object. */
void load_to_json(const struct load_result *load, const struct load_options *options,
                  json_t *object);

/* A number, or null if not finite: a percentile that falls among requests without an answer. */
json_t *load_number_json(double value);
/* A rate with two decimals. */
json_t *load_rate_json(double per_s);

#endif
