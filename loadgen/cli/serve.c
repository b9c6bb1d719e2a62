#include "serve.h"
#include "beside.h"
#include "remote.h"
#include "sandbox_process.h"
#include "steady.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LOOK_EVERY_MS = 200, SAMPLE_STOCK = 100, SAMPLE_BALANCE = 1000000 };

/* Starts the service at the user's address. sandbox_seckilld() would take any free port. */
static struct sandbox_server *start_service(struct sandbox *sandbox, const struct options *options,
                                            const char *binary, const struct sandbox_server *redis)
{
    const struct load_target *target = &options->targets[0];
    struct sandbox_server *server = sandbox_add(sandbox, "seckilld", sandbox_seckilld_answers);
    if (server == NULL)
        return NULL;
    server->port = target->port;
    snprintf(server->url, sizeof server->url, "http://%s", options->listen);
    sandbox_arg(server, "%s", binary);
    sandbox_arg(server, "--listen");
    sandbox_arg(server, "%s", options->listen);
    sandbox_arg(server, "--db");
    sandbox_arg(server, "sqlite:%s/seckill.db",
                options->dir != NULL ? options->dir : sandbox_dir(sandbox));
    sandbox_arg(server, "--redis");
    sandbox_arg(server, "%s", redis->url);
    sandbox_arg(server, "--demo");
    sandbox_arg(server, "--lab");       /* requests can be stepped through */
    sandbox_arg(server, "--lanes=off"); /* each request has its own lock, which the page shows */
    return sandbox_start(server) == 0 ? server : NULL;
}

static int make_samples(const struct options *options)
{
    struct options sample = *options;
    char message[REMOTE_MESSAGE_MAX];
    sample.stock = SAMPLE_STOCK;
    if (remote_put_item(&sample, "1", "redis-token", 0, NULL, message) == 0 &&
        remote_put_account(&sample, "12345", "redis-token", SAMPLE_BALANCE, NULL, message) == 0)
        return 0;
    fprintf(stderr, "loadgen: %s\n", message);
    return -1;
}

static void greet(const struct options *options, const struct sandbox_server *server,
                  const struct sandbox_server *redis)
{
    printf("Open %s/ in a browser: the live page (the service's log: %s)\n\n"
           "Step through a lost update: %s/web/steps.html\n"
           "Buy one piece of item 1:\n"
           "  curl -s %s/v1/items/1/orders -H 'Content-Type: application/json' \\\n"
           "    -H 'Idempotency-Key: my-first-order' -d '{\"user_id\":\"u42\",\"quantity\":1}'\n"
           "Take 200 from account 12345:\n"
           "  curl -s %s/v1/accounts/12345/transactions -H 'Content-Type: application/json' \\\n"
           "    -H 'Idempotency-Key: my-first-payment' -d '{\"amount\":-200,"
           "\"reason\":\"payment\"}'\n"
           "Sell it out, with and without a lock:\n"
           "  %s sale --url %s --guards none,redis-token\n"
           "Watch the locks come and go:\n"
           "  redis-cli -u %s monitor\n\n"
           "Ctrl-C stops everything%s%s.\n",
           server->url, server->log, server->url, server->url, server->url, program_invocation_name,
           server->url, redis->url, options->dir != NULL ? "; the store stays in " : "",
           options->dir != NULL ? options->dir : "");
    fflush(stdout);
}

/* The connection between the service and Redis. */
struct wire {
    struct sandbox_server *redis;
    bool cut;
};

/* Cut: no answer comes, and the service is not told. Redis itself is paused, so an uncut wire
 * costs nothing. Leases still end by the clock. Unlike with a pulled cable, commands sent while it
 * is cut are done afterwards: a lock may be granted to a client that has given up. */
static void set_wire(struct wire *wire, bool cut)
{
    if (sandbox_signal(wire->redis, cut ? SIGSTOP : SIGCONT) == 0)
        wire->cut = cut;
}

/* Cuts or restores the wire as the page wants. */
static void keep_wire(const struct options *options, struct wire *wire)
{
    bool wished;
    if (remote_keep_wire(options, wire->cut, &wished) != 0 || wished == wire->cut)
        return;
    set_wire(wire, wished);
    remote_keep_wire(options, wire->cut, &wished); /* report it: the page waits for it */
}

static int wait_for_end(const struct options *options, struct sandbox_server *server,
                        struct wire *wire)
{
    while (!atomic_load(options->stop)) {
        /* A lesson may have killed the service. */
        if (!sandbox_alive(server)) {
            fprintf(stderr, "loadgen: the service has ended, and is started again\n");
            if (wire->cut) /* with a cut wire it would not become ready */
                set_wire(wire, false);
            if (sandbox_restart(server) != 0)
                return EXIT_FAILURE;
        }
        keep_wire(options, wire);
        steady_sleep_ms(LOOK_EVERY_MS);
    }
    printf("\nstopping\n");
    return EXIT_SUCCESS;
}

static int prepare(struct options *options)
{
    char url[300], message[256];
    if (options->dir != NULL && mkdir(options->dir, 0777) != 0 && errno != EEXIST) {
        fprintf(stderr, "loadgen: cannot make the folder %s: %s\n", options->dir, strerror(errno));
        return -1;
    }
    snprintf(url, sizeof url, "http://%s", options->listen);
    if (load_target_parse(url, &options->targets[0], message, sizeof message) != 0) {
        fprintf(stderr, "loadgen: --listen: %s\n", message);
        return -1;
    }
    options->n_targets = 1;
    if (sandbox_port_taken(options->targets[0].port)) {
        fprintf(stderr,
                "loadgen: port %d is taken; choose another one with --listen HOST:PORT, or "
                "make serve LISTEN=HOST:PORT\n",
                options->targets[0].port);
        return -1;
    }
    return 0;
}

int serve_run(const struct options *given)
{
    char path[4096];
    struct options options = *given;
    struct sandbox *sandbox = NULL;
    struct sandbox_server *server;
    struct wire wire = {.cut = false};
    int status = EXIT_FAILURE;
    const char *binary =
        beside("loadgen", "seckilld", "--seckilld", given->seckilld, X_OK, path, sizeof path);
    if (binary == NULL || prepare(&options) != 0 || sandbox_open(&sandbox) != 0)
        return EXIT_FAILURE;
    wire.redis = sandbox_redis(sandbox, NULL);
    server = wire.redis == NULL ? NULL : start_service(sandbox, &options, binary, wire.redis);
    if (server != NULL && make_samples(&options) == 0) {
        greet(&options, server, wire.redis);
        status = wait_for_end(&options, server, &wire);
    }
    sandbox_close(sandbox);
    return status;
}
