#include "demo.h"
#include "compare.h"
#include "progress.h"
#include "sandbox.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    DEMO_INSTANCES = 2,
    DEMO_BUYERS = 2000,
    DEMO_STOCK = 100,
    DEMO_CONNECTIONS = 64,
    DEMO_ACCOUNTS = 4,
    DEMO_CHANGES = 50 * DEMO_CONNECTIONS,
    DEMO_PAIRS = 100,
    DEMO_TIMEOUT_MS = 30000
};

static const char *const demo_guards[] = {
    "none", "mutex", "redis-set", "redis-token", "redis-reentrant", "redis-fair", "sql-atomic"};

const char *demo_seckilld(const struct options *options, char *buffer, size_t size)
{
    if (options->seckilld != NULL) {
        snprintf(buffer, size, "%s", options->seckilld);
    } else {
        ssize_t length = readlink("/proc/self/exe", buffer, size - sizeof "seckilld");
        buffer[length < 0 ? 0 : length] = '\0';
        char *slash = strrchr(buffer, '/');
        strcpy(slash == NULL ? buffer : slash + 1, "seckilld");
    }
    if (access(buffer, X_OK) == 0)
        return buffer;
    fprintf(stderr, "loadgen: no service at %s; build it, or name it with --seckilld\n", buffer);
    return NULL;
}

/* Two instances on one SQLite file; lanes off: each request takes its own lock, as in textbooks. */
static int start_services(struct sandbox *sandbox, const char *binary, const char *redis_url,
                          const char *db_name, int n, struct options *options)
{
    char db[SANDBOX_TEXT_MAX + 64], instance[16], message[256];
    snprintf(db, sizeof db, "sqlite:%s/%s.db", sandbox_dir(sandbox), db_name);
    options->n_targets = 0;
    for (int i = 0; i < n; i++) {
        const char *args[] = {"--db",    db,           "--db-shared", "--sync",  "normal",
                              "--lanes", "off",        "--redis",     redis_url, "--workers",
                              "32",      "--instance", instance,      NULL};
        snprintf(instance, sizeof instance, "shop-%d", i + 1);
        struct sandbox_server *server = sandbox_seckilld(sandbox, binary, args);
        if (server == NULL)
            return -1;
        if (load_target_parse(server->url, &options->targets[i], message, sizeof message) != 0) {
            fprintf(stderr, "loadgen: %s\n", message);
            return -1;
        }
        options->n_targets++;
    }
    return 0;
}

/* The demo is a comparison with everything decided, but for the guards if they were given. */
static void decide(const struct options *given, struct options *ret)
{
    *ret = *given;
    ret->connections = DEMO_CONNECTIONS;
    ret->threads = 1;
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

static int run_workloads(struct report *report, const struct options *options)
{
    struct remote_service service;
    char message[REMOTE_MESSAGE_MAX];
    if (remote_describe(options, &service, message) != 0) {
        fprintf(stderr, "loadgen: %s\n", message);
        return -1;
    }
    int result = compare_add(report, options, &workload_sale, &service);
    if (result == 0)
        result = compare_add(report, options, &workload_accounts, &service);
    remote_forget(&service);
    return result;
}

static int perform(struct sandbox *sandbox, const char *binary, struct options *options,
                   struct report *report)
{
    progress_step(options, "starting a private Redis and %d instances of the service",
                  DEMO_INSTANCES);
    struct sandbox_server *redis = sandbox_redis(sandbox, NULL);
    if (redis == NULL ||
        start_services(sandbox, binary, redis->url, "demo", DEMO_INSTANCES, options) != 0)
        return -1;
    progress_clear(options);
    return run_workloads(report, options);
}

int demo_run(const struct options *given)
{
    char path[4096];
    struct options options;
    struct sandbox *sandbox = NULL;
    const char *binary = demo_seckilld(given, path, sizeof path);
    struct report *report = calloc(1, sizeof *report);
    int status = EXIT_FAILURE;
    if (binary == NULL || report == NULL || sandbox_open(&sandbox) != 0)
        goto out;
    decide(given, &options);
    report->options = &options;
    report->workload = "demo";
    environment_read(&report->environment);
    int result = perform(sandbox, binary, &options, report);
    /* Stopped before the report, so that a Ctrl-C while reading leaves nothing behind. */
    sandbox_close(sandbox);
    sandbox = NULL;
    if (report->n_runs > 0 && report_write(report) != 0)
        result = -1;
    status = compare_exit_status(report);
    if (result != 0 && status != COMPARE_INTERRUPTED)
        status = EXIT_FAILURE;
out:
    sandbox_close(sandbox);
    if (report != NULL)
        report_free(report);
    free(report);
    return status;
}
