/*
 * The view of a running load, on a terminal only: a few lines on stderr, drawn again five times a
 * second and cut to the current width of the window. live_compose() is a pure function.
 */
#ifndef LIVE_H
#define LIVE_H

#include "load.h"

struct run;

enum { LIVE_RATES_MAX = 60, LIVE_TEXT_MAX = 4096, LIVE_WIDTH_MAX = 160 };

/* The figures to draw. */
struct live_facts {
    const char *workload, *guard;
    int64_t elapsed_us, duration_us; /* duration 0: until the requests are done */
    uint64_t completed, planned;     /* planned 0: not bounded */
    double rates[LIVE_RATES_MAX];    /* requests per second, oldest first */
    int n_rates;
    int64_t p50_us, p99_us, p999_us; /* -1: too few answers yet */
    uint64_t accepted, errors, retries, dropped;
    bool has_stock;
    int64_t initial, stock, sold; /* of a sale's item, as the service says */
};

/* Lines of at most width columns, each ending in \n. Returns how many. */
int live_compose(const struct live_facts *facts, int width, char out[LIVE_TEXT_MAX]);

struct live {
    int lines; /* on the terminal now */
    int64_t last_us, asked_us;
    uint64_t last_completed;
    struct live_facts facts;
};

/* Draws the current figures. Asks the service for the stock twice a second at most. */
void live_draw(struct live *live, const struct run *run, const struct load_progress *now);
/* Removes it. */
void live_clear(struct live *live);

#endif
