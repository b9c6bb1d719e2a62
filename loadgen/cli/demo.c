#include "demo.h"
#include "beside.h"
#include "judged_command.h"
#include "progress.h"
#include "sandbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    DEMO_INSTANCES = 2,
    DEMO_BUYERS = 3000, /* long enough for two instances to overlap often: a weak lock oversells by
                           dozens on any machine, by 750 at most */
    DEMO_STOCK = 2250,
    DEMO_CONNECTIONS = 64,
    DEMO_ACCOUNTS = 4,
    DEMO_PAIRS = 100,
    DEMO_TIMEOUT_MS = 30000,
    DEMO_SPACE_BYTES = 48 * 1024 * 1024 /* several times the need */
};

struct demo {
    struct options options, single;
    struct report *report;
    bool in_memory;
    struct sandbox *sandbox;
    struct sandbox_server *services[DEMO_INSTANCES];
};

static const char *const demo_guards[] = {
    "none", "mutex", "redis-set", "redis-token", "redis-reentrant", "redis-fair", "sql-atomic"};

/* Compares guards, not disks: a store in memory keeps the demo short. True: it is in memory. */
static bool prefer_memory(void)
{
    static const char memory[] = "/dev/shm";
    struct statvfs space;
    if (getenv("TMPDIR") == NULL && access(memory, W_OK) == 0 && statvfs(memory, &space) == 0 &&
        (uint64_t)space.f_bavail * space.f_frsize >= DEMO_SPACE_BYTES)
        return setenv("TMPDIR", memory, 1) == 0;
    return false;
}

/* Starts instances on one SQLite file. Lanes are off: each request takes its own lock, as in
 * textbooks. */
static int start_services(struct demo *demo, const char *binary, const char *redis_url)
{
    char db[SANDBOX_TEXT_MAX + 64], instance[16], message[256];
    snprintf(db, sizeof db, "sqlite:%s/demo.db", sandbox_dir(demo->sandbox));
    for (int i = 0; i < DEMO_INSTANCES; i++) {
        const char *args[] = {"--db", db,        "--db-shared", "--sync",     "normal", "--lanes",
                              "off",  "--redis", redis_url,     "--instance", instance, NULL};
        snprintf(instance, sizeof instance, "shop-%d", i + 1);
        demo->services[i] = sandbox_seckilld(demo->sandbox, binary, args);
        if (demo->services[i] == NULL)
            return -1;
        if (load_target_parse(demo->services[i]->url, &demo->options.targets[i], message,
                              sizeof message) != 0) {
            fprintf(stderr, "loadgen: %s\n", message);
            return -1;
        }
    }
    demo->options.n_targets = DEMO_INSTANCES;
    return 0;
}

/* Sets all options of the demo. Only guards that were given are kept. */
static void decide(const struct options *given, struct options *ret)
{
    *ret = *given;
    ret->connections = DEMO_CONNECTIONS;
    ret->buyers = DEMO_BUYERS;
    ret->stock = DEMO_STOCK;
    ret->accounts = DEMO_ACCOUNTS;
    ret->pairs = DEMO_PAIRS;
    ret->timeout_ms = DEMO_TIMEOUT_MS;
    if (ret->n_guards > 0)
        return;
    for (size_t i = 0; i < sizeof demo_guards / sizeof *demo_guards; i++)
        snprintf(ret->guards[ret->n_guards++], OPTIONS_GUARD_TEXT_MAX, "%s", demo_guards[i]);
}

static int compare(struct demo *demo, const struct options *options,
                   const struct workload *workload)
{
    struct remote_service service;
    char message[REMOTE_MESSAGE_MAX];
    if (remote_describe(options, &service, message) != 0) {
        fprintf(stderr, "loadgen: %s\n", message);
        return -1;
    }
    int result = judged_add(demo->report, options, workload, &service);
    remote_forget(&service);
    return result;
}

/* The counter-proof to the failure of the in-process lock: the same lock with one instance only. */
static int judge_single_instance(struct demo *demo)
{
    struct options *single = &demo->single;
    *single = demo->options;
    single->n_targets = 1;
    single->n_guards = 0;
    for (int i = 0; i < demo->options.n_guards; i++)
        if (strcmp(demo->options.guards[i], "mutex") == 0)
            snprintf(single->guards[single->n_guards++], OPTIONS_GUARD_TEXT_MAX, "mutex");
    return single->n_guards == 0 ? 0 : compare(demo, single, &workload_sale);
}

/* Reports services that died, before the sandbox closes and removes their logs. */
static void tell_deaths(struct demo *demo)
{
    for (int i = 0; i < DEMO_INSTANCES; i++)
        if (demo->services[i] != NULL && !sandbox_alive(demo->services[i]))
            fprintf(stderr, "loadgen: the service %s has ended by itself\n",
                    demo->services[i]->name);
}

static int perform(struct demo *demo, const char *binary)
{
    progress_step(&demo->options, "starting a private Redis and %d instances of the service",
                  DEMO_INSTANCES);
    struct sandbox_server *redis = sandbox_redis(demo->sandbox, NULL);
    if (redis == NULL || start_services(demo, binary, redis->url) != 0)
        return -1;
    progress_clear(&demo->options);
    int result = compare(demo, &demo->options, &workload_sale);
    if (result == 0)
        result = judge_single_instance(demo);
    if (result == 0)
        result = compare(demo, &demo->options, &workload_accounts);
    if (result != 0)
        tell_deaths(demo);
    return result;
}

static int run_to_report(struct demo *demo, const char *binary)
{
    struct report *report = demo->report;
    report->options = &demo->options;
    report->workload = "demo";
    environment_read(&report->environment);
    snprintf(report->store, sizeof report->store,
             "one SQLite file shared by %d instances, in %s; synchronous=NORMAL", DEMO_INSTANCES,
             demo->in_memory ? "memory (/dev/shm)" : "a temporary folder");
    int result = perform(demo, binary);
    /* Closed before the report, so that a Ctrl-C while reading leaves nothing behind. */
    sandbox_close(demo->sandbox);
    demo->sandbox = NULL;
    if (report->n_runs > 0 && report_write(report) != 0)
        result = -1;
    int status = judged_exit_status(report);
    return result != 0 && status != EXIT_INTERRUPTED ? EXIT_FAILURE : status;
}

int demo_run(const struct options *given)
{
    char path[4096];
    struct demo *demo = calloc(1, sizeof *demo);
    const char *binary =
        beside("loadgen", "seckilld", "--seckilld", given->seckilld, X_OK, path, sizeof path);
    int status = EXIT_FAILURE;
    if (demo == NULL || binary == NULL)
        goto out;
    decide(given, &demo->options);
    if (judged_check_expectations(&demo->options, "") != 0) {
        status = EXIT_USAGE;
        goto out;
    }
    demo->in_memory = prefer_memory();
    demo->report = calloc(1, sizeof *demo->report);
    if (demo->report == NULL || sandbox_open(&demo->sandbox) != 0)
        goto out;
    status = run_to_report(demo, binary);
    report_free(demo->report);
out:
    if (demo != NULL)
        free(demo->report);
    free(demo);
    return status;
}
