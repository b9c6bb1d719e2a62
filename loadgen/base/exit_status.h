/* What the programs' exit statuses mean, beside 0 and 1. */
#ifndef EXIT_STATUS_H
#define EXIT_STATUS_H

enum {
    EXIT_USAGE = 2,   /* the command line is wrong */
    EXIT_BROKEN = 99, /* a claim, an invariant or a threshold is broken */
    EXIT_INTERRUPTED = 130
};

#endif
