/* What the command line of hazards asks for. */
#ifndef HAZARD_OPTIONS_H
#define HAZARD_OPTIONS_H

#include "hazard.h"

enum { HAZARD_WANTED_MAX = 64, HAZARD_REPEAT_MAX = 10000 };

struct hazard_options {
    const char *hazards[HAZARD_WANTED_MAX], *guards[HAZARD_WANTED_MAX];
    int n_hazards, n_guards, repeat;
    uint64_t seed;
    const char *json, *html, *seckilld, *clock_shim;
    bool narrate, step, markdown;
    enum hazard_language language;
    int64_t patience_ms;
};

/* Fills *ret from the arguments after "list" (lists) or "run"; argv[0] is the name shown. Exits
 * with 2 on a usage error, with 0 after --help, as argp does. */
void hazard_options_parse(bool lists, int argc, char **argv, struct hazard_options *ret);
/* Is this case asked for? All are when nothing is named. */
bool hazard_options_want(const struct hazard_options *options, const struct hazard *hazard,
                         const struct hazard_case *one);

#endif
