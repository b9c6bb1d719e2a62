#include "options_value.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

double options_number(struct argp_state *state, const char *flag, const char *text, double min,
                      double max)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (end == text || *end != '\0' || errno != 0 || !(value >= min && value <= max))
        argp_error(state, "%s: '%s' is not a number from %g to %g", flag, text, min, max);
    return value;
}

int64_t options_integer(struct argp_state *state, const char *flag, const char *text, int64_t min,
                        int64_t max)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || value < min || value > max)
        argp_error(state, "%s: '%s' is not a whole number from %lld to %lld", flag, text,
                   (long long)min, (long long)max);
    return value;
}

bool options_switch(struct argp_state *state, const char *flag, const char *text)
{
    if (strcmp(text, "on") != 0 && strcmp(text, "off") != 0)
        argp_error(state, "%s: '%s' is not on or off", flag, text);
    return strcmp(text, "on") == 0;
}

int64_t options_duration(struct argp_state *state, const char *flag, const char *text)
{
    static const struct {
        const char *text;
        double ms;
    } units[] = {{"", 1000}, {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
    char *end;
    double value = strtod(text, &end);
    if (end != text && isfinite(value) && value > 0)
        for (size_t i = 0; i < sizeof units / sizeof *units; i++)
            if (strcmp(end, units[i].text) == 0 && value * units[i].ms <= 86400000.0)
                return (int64_t)ceil(value * units[i].ms);
    argp_error(state, "%s: '%s' is not a duration such as 500ms, 30s or 2m (at most 24h)", flag,
               text);
    return 0;
}

void options_split(struct argp_state *state, const char *text,
                   void (*each)(struct argp_state *state, const char *part, size_t length))
{
    for (;;) {
        size_t length = strcspn(text, ",");
        each(state, text, length);
        if (text[length] == '\0')
            return;
        text += length + 1;
    }
}
