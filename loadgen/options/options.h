/* What the command line asked for. One struct for all subcommands; each reads its own part. */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "load.h"
#include "threshold.h"

#include <argp.h>

enum {
    OPTIONS_GUARDS_MAX = 24,
    OPTIONS_GUARD_TEXT_MAX = 25, /* bytes of a guard's name with its NUL */
    OPTIONS_COMMAND_MAX = 1024,
    OPTIONS_HEADERS_MAX = 16,
    OPTIONS_REPEAT_MAX = 25,
    OPTIONS_RUNS_MAX = 5 * OPTIONS_GUARDS_MAX, /* guards times --repeat */
    OPTIONS_FAIL_IF_MAX = 8,
    OPTIONS_REPORTS_MAX = 2 * OPTIONS_REPEAT_MAX,
    OPTIONS_REQUESTS_MAX = 1 << 22 /* requests of one run: each is remembered until the verdict */
};

struct expectation {
    char guard[OPTIONS_GUARD_TEXT_MAX];
    bool safe;
};

enum options_choice { CHOICE_NONE, CHOICE_OFF, CHOICE_ON };

/* sale: what the item is under, beside its guard. 0 and NONE: as the service is configured. */
struct sale_terms {
    int64_t lease_ms;
    enum options_choice watchdog; /* of that lease; NONE: off */
    enum options_choice fence, lanes;
};

enum { OPTIONS_RUN_ID_MAX = 16 }; /* bytes, with its NUL */

struct options {
    char command[OPTIONS_COMMAND_MAX]; /* the command line, for reports */

    struct load_target targets[LOAD_TARGETS_MAX];
    int n_targets;
    char guards[OPTIONS_GUARDS_MAX][OPTIONS_GUARD_TEXT_MAX];
    int n_guards; /* 0: the service's default */
    struct expectation expectations[OPTIONS_GUARDS_MAX];
    int n_expectations;

    bool mode_given; /* else the workload's own */
    enum load_mode mode;
    enum load_arrivals arrivals;
    double rate, ramp_from; /* per second */
    int64_t warmup_ms;
    int connections, threads, pipeline;
    int64_t duration_ms;   /* 0: until the requests are done */
    uint64_t requests;     /* 0: the workload's own number, or requests_max when there is a duration
                              and the mode is not burst */
    uint64_t requests_max; /* OPTIONS_REQUESTS_MAX; a rate and its duration ask for no more */
    int64_t timeout_ms;
    int64_t patience_ms; /* a request is retried, or its outcome looked for, at most this long */
    uint64_t seed;

    int64_t stock, buyers, accounts;
    struct sale_terms terms;
    char run_id[OPTIONS_RUN_ID_MAX]; /* of the only run; "": random */
    int pairs;                       /* accounts: textbook pairs tried until one loses */
    double duplicates_pct, abandon_pct;
    bool allow_dropped; /* work that is due and never sent is no error */

    struct threshold thresholds[THRESHOLDS_MAX];
    int n_thresholds;
    int64_t abort_after_ms; /* a threshold broken later than this ends the load; 0: never */

    const char *token_file;                   /* NULL: none */
    const char *json, *html, *csv;            /* NULL: not wanted; json "-": stdout */
    const char *reports[OPTIONS_REPORTS_MAX]; /* compare: files of --json; A, B, A, B ... */
    int n_reports;
    int fail_if[OPTIONS_FAIL_IF_MAX]; /* compare: metrics (compare.h) that must not have got worse
                                       */
    int n_fail_if;
    int repeat;          /* each guard so many times, in turn: A B A B */
    const char *history; /* written by a run, read by check; NULL: none */
    const char *audit;   /* check: NULL: none */
    bool quiet, no_color;

    const char *seckilld, *dir, *listen;          /* demo, serve */
    const char *lab, *demo, *levels;              /* site: recordings; its folder is dir */
    const char *level;                            /* levels: NULL: all */
    bool follows;                                 /* serve: a class follows, too */
    const char *site, *follow;                    /* the site; HOST:PORT of the class, or NULL */
    const char *method, *body;                    /* http; NULL: GET, or POST with a body */
    const char *headers[OPTIONS_HEADERS_MAX + 1]; /* http: "Name: value", NULL-terminated */

    atomic_bool *stop; /* set by Ctrl-C */
};

/* A subcommand: its options are parsed by its own argp, so that --help shows what it takes. */
struct command {
    const char *name, *summary;
    const char *doc; /* of --help, as argp takes it: before the options \v after them */
    const struct argp *argp;
    int (*run)(const struct options *options); /* returns the exit status */
};

/* Fills *ret from the arguments after the subcommand's name. Exits with 2 on a usage error, with 0
 * after --help, as argp does. argv[0] is the name shown ("loadgen sale"). */
void options_parse(const struct command *command, int argc, char **argv, struct options *ret);

/* Adds one URL to state->input's targets; for options_split(). */
void options_add_url(struct argp_state *state, const char *part, size_t length);

/* What the load engine is asked to do. */
struct load_options options_load(const struct options *options, enum load_mode mode);
/* Has Ctrl-C been pressed? */
bool options_stopped(const struct options *options);

/* "burst", "rate", "ramp", "closed" */
const char *options_mode_text(enum load_mode mode);
/* "even", "poisson" */
const char *options_arrivals_text(enum load_arrivals arrivals);

/* Flags of several commands are told apart by keys beyond any character. */
enum { OPTIONS_KEYS_OWN = 256, OPTIONS_KEYS_ENGINE = 512, OPTIONS_KEYS_HTTP = 768 };

extern const struct argp options_engine_argp;  /* a child of those that send load */
extern const struct argp options_load_argp;    /* sale, accounts, transfers */
extern const struct argp options_demo_argp;    /* demo */
extern const struct argp options_serve_argp;   /* serve */
extern const struct argp options_check_argp;   /* check */
extern const struct argp options_compare_argp; /* compare */
extern const struct argp options_levels_argp;  /* levels */
extern const struct argp options_site_argp;    /* site */
extern const struct argp options_follow_argp;  /* follow */

#endif
