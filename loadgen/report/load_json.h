/* What every report has of a load, as JSON: the one that is judged, and the plain one. */
#ifndef LOAD_JSON_H
#define LOAD_JSON_H

#include "load.h"

#include <jansson.h>

/* Sets asked, load, throughput_rps, latency_us, service_us, sent_late_us, status and series of the
 * object. */
void load_to_json(const struct load_result *load, const struct load_options *options,
                  json_t *object);

/* null unless finite: a percentile that falls among requests without an answer is infinite. */
json_t *load_number_json(double value);
/* Two digits after the point are enough for a rate. */
json_t *load_rate_json(double per_s);

#endif
