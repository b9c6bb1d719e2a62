/* Whole runs against services in miniature, in this process. */
#ifndef RUN_RIG_H
#define RUN_RIG_H

#include "run.h"
#include "fake_service.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STOCK = 30, BUYERS = 50, PATIENCE_MS = 20000, SHORT_PATIENCE_MS = 300 };

static struct options options;
static struct fake_service *fakes[2];
static int n_fakes;

static inline void add_fake(const struct fake_options *fake)
{
    char message[256];
    fakes[n_fakes] = fake_start(fake);
    assert_non_null(fakes[n_fakes]);
    assert_int_equal(load_target_parse(fake_url(fakes[n_fakes]), &options.targets[n_fakes], message,
                                       sizeof message),
                     0);
    options.n_targets = ++n_fakes;
}

static inline int reset(void **state)
{
    (void)state;
    options = (struct options){.connections = 8,
                               .repeat = 1,
                               .threads = 1,
                               .timeout_ms = 5000,
                               .patience_ms = PATIENCE_MS,
                               .seed = 7,
                               .requests_max = OPTIONS_REQUESTS_MAX,
                               .stock = STOCK,
                               .buyers = BUYERS,
                               .accounts = 4,
                               .quiet = true};
    return 0;
}

static inline int stop_fakes(void **state)
{
    (void)state;
    while (n_fakes > 0)
        fake_stop(fakes[--n_fakes]);
    return 0;
}

/* The run's figures are kept, its memory is not. */
static inline int attempt(const struct workload *workload, const char *guard, struct run *ret)
{
    struct remote_service service;
    char message[REMOTE_MESSAGE_MAX];
    assert_int_equal(remote_describe(&options, &service, message), 0);
    int result = run_once(&options, workload, &service, guard, NULL, ret);
    remote_forget(&service);
    run_free(ret);
    return result;
}

static inline struct run perform(const struct workload *workload, const char *guard)
{
    static struct run run;
    int result = attempt(workload, guard, &run);
    if (result != 0)
        print_error("%s\n", run.message);
    assert_int_equal(result, 0);
    return run;
}

static inline struct run perform_with(const struct workload *workload, struct fake_defects defects)
{
    add_fake(&(struct fake_options){.defects = defects});
    return perform(workload, "redis-token");
}

#endif
