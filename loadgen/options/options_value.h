/* Values of flags. Each ends the program with a usage error that names the flag unless the text is
 * a value in range. */
#ifndef OPTIONS_VALUE_H
#define OPTIONS_VALUE_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

double options_number(struct argp_state *state, const char *flag, const char *text, double min,
                      double max);
int64_t options_integer(struct argp_state *state, const char *flag, const char *text, int64_t min,
                        int64_t max);
/* "on" or "off". */
bool options_switch(struct argp_state *state, const char *flag, const char *text);
/* "500ms", "30s", "2m", "1h", or plain seconds: "30". In milliseconds. */
int64_t options_duration(struct argp_state *state, const char *flag, const char *text);
/* Calls each() for every part of a comma-separated list. */
void options_split(struct argp_state *state, const char *text,
                   void (*each)(struct argp_state *state, const char *part, size_t length));

#endif
