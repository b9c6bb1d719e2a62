/* The command line of torture. */
#ifndef TORTURE_OPTIONS_H
#define TORTURE_OPTIONS_H

#include "torture_plan.h"

enum { TORTURE_FILES_MAX = 64 };

struct torture_options {
    struct torture_limits limits;
    bool has_seed, keep, sum_only, until_broken;
    uint64_t seed;
    int64_t rounds, duration_ms; /* 0: without end */
    const char *dir, *json, *seckilld, *slip;
    const char *files[TORTURE_FILES_MAX]; /* --sum */
    int n_files;
};

/* Ends the program on a usage error. */
void torture_options_parse(int argc, char **argv, struct torture_options *ret);
/* The line that runs one round again. */
void torture_options_replay(const struct torture_options *options, const char *program,
                            uint64_t seed, char *ret, size_t size);

#endif
