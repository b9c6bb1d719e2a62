#include "serve.h"
#include "beside.h"
#include "follow_command.h"
#include "remote.h"
#include "sandbox_process.h"
#include "serve_servers.h"
#include "steady.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LOOK_EVERY_MS = 200,
    SAMPLE_STOCK = 100,
    SAMPLE_BALANCE = 1000000,
    USABLE_MS = 20000, /* until the guards of the servers that run can be used */
    USABLE_AGAIN_MS = 50,
    OPTION_MAX = SERVE_ADDRESS_MAX + 32,
    LOG_MAX = 4096
};

/* The servers. What strikes instance 0 and Redis node 0 leaves the others alone. */
struct world {
    struct serve_servers locks;
    struct sandbox *sandbox;               /* of the service and the class */
    struct sandbox_server *service, *peer; /* two instances on one store */
    struct sandbox_server *classroom;      /* NULL: no class follows */
    char store[SANDBOX_TEXT_MAX + 32];
    int64_t locks_ms; /* steady_ms() when the lock servers had started */
    bool cut;         /* the wire between the service and Redis */
};

/* Of both instances: requests can be held at points, each request takes its own lock, and there is
 * a thread for each request that a sale of the arena may have waiting or held. */
static const char *const both[] = {"--db-shared", "--sync=normal", "--lab", "--lanes=off",
                                   "--workers=96"};
enum { N_BOTH = sizeof both / sizeof both[0] };

/* The second instance. Only sales of the arena, which are spread over both, ask it. */
static int start_peer(struct world *world, const char *binary)
{
    char options[SERVE_KINDS][OPTION_MAX];
    const char *args[4 + N_BOTH + SERVE_KINDS + 1] = {"--db", world->store, "--instance", "second"};
    size_t n = 4;
    for (size_t i = 0; i < N_BOTH; i++)
        args[n++] = both[i];
    for (size_t i = 0; serve_servers_option(&world->locks, i, options[i], OPTION_MAX); i++)
        args[n++] = options[i];
    world->peer = sandbox_seckilld(world->sandbox, binary, args);
    return world->peer != NULL ? 0 : -1;
}

/* Starts the service at the user's address. sandbox_seckilld() would take any free port. */
static int start_service(struct world *world, const struct options *options, const char *binary)
{
    char option[OPTION_MAX];
    const struct load_target *target = &options->targets[0];
    struct sandbox_server *server =
        sandbox_add(world->sandbox, "seckilld", sandbox_seckilld_answers);
    if (server == NULL)
        return -1;
    server->port = target->port;
    snprintf(server->url, sizeof server->url, "http://%s", options->listen);
    sandbox_arg(server, "%s", binary);
    sandbox_arg(server, "--listen");
    sandbox_arg(server, "%s", options->listen);
    sandbox_arg(server, "--db=%s", world->store);
    sandbox_arg(server, "--demo");
    sandbox_arg(server, "--demo-peers=%s", world->peer->url);
    for (size_t i = 0; i < N_BOTH; i++)
        sandbox_arg(server, "%s", both[i]);
    for (size_t i = 0; serve_servers_option(&world->locks, i, option, sizeof option); i++)
        sandbox_arg(server, "%s", option);
    world->service = server;
    return sandbox_start(server);
}

/* Copies what the process has printed so far. */
static size_t read_log(const struct sandbox_server *server, char *ret, size_t size)
{
    FILE *log = fopen(server->log, "re");
    size_t n = 0;
    if (log != NULL) {
        n = fread(ret, 1, size - 1, log);
        fclose(log);
    }
    ret[n] = '\0';
    return n;
}

static bool class_is_served(struct sandbox_server *server)
{
    char text[LOG_MAX];
    const size_t n = read_log(server, text, sizeof text);
    return n > 0 && text[n - 1] == '\n' && strstr(text, FOLLOW_READY) != NULL;
}

/* A process of its own, without our environment: it knows neither the service nor its token. */
static int start_classroom(struct world *world, const struct options *options)
{
    char self[4096];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    struct sandbox_server *server = sandbox_add(world->sandbox, "classroom", class_is_served);
    if (n < 0 || server == NULL)
        return -1;
    self[n] = '\0';
    sandbox_arg(server, "env");
    sandbox_arg(server, "-i");
    sandbox_arg(server, "%s", self);
    sandbox_arg(server, "follow");
    if (options->site != NULL)
        sandbox_arg(server, "--site=%s", options->site);
    if (options->follow != NULL)
        sandbox_arg(server, "--listen=%s", options->follow);
    world->classroom = server;
    return sandbox_start(server);
}

static void greet_class(const struct sandbox_server *server)
{
    char text[LOG_MAX];
    if (server == NULL || read_log(server, text, sizeof text) == 0)
        return;
    printf("\n%s", text);
    fflush(stdout);
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

/* Until GET /v1/guards says that each guard can be used whose server runs: a lock server that
 * answers may not be connected yet. Returns -1 with a message if that fails. */
static int await_guards(const struct options *options, const struct world *world)
{
    const int64_t until_ms = steady_ms() + USABLE_MS;
    struct remote_service service;
    char message[REMOTE_MESSAGE_MAX];
    for (;;) {
        size_t n;
        if (remote_describe(options, &service, message) != 0) {
            fprintf(stderr, "loadgen: %s\n", message);
            return -1;
        }
        const bool usable = serve_servers_usable(&world->locks, service.guards, &n);
        const size_t all = json_array_size(service.guards);
        remote_forget(&service);
        if (usable || steady_ms() > until_ms || atomic_load(options->stop)) {
            printf("%zu of %zu guards can be used.\n", n, all);
            return 0;
        }
        steady_sleep_ms(USABLE_AGAIN_MS);
    }
}

static void tell_servers(const struct world *world, int64_t begun_ms)
{
    const int64_t now_ms = steady_ms();
    const long long service =
        serve_servers_memory(world->service) + serve_servers_memory(world->peer);
    printf("Started in %.1f s, the lock servers at the same time:\n",
           (double)(now_ms - begun_ms) / 1000);
    serve_servers_print(&world->locks);
    printf("  %-11s %5.1f s  %4.0f MB  two instances: %s, %s\n\n", "seckilld",
           (double)(now_ms - world->locks_ms) / 1000, (double)service / 1e6, world->service->url,
           world->peer->url);
}

static void greet(const struct options *options, const struct sandbox_server *server,
                  const struct sandbox_server *redis)
{
    printf("Open %s/ in a browser: the live page (the service's log: %s)\n\n"
           "Step through a lost update: %s/web/steps.html\n"
           "Every guard whose server runs, at once, and one fault for all of them:\n"
           "  %s/web/arena.html\n"
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
           "  REDISCLI_AUTH=$(cat %s/password) redis-cli -u %s monitor\n\n"
           "Ctrl-C stops everything%s%s.\n",
           server->url, server->log, server->url, server->url, server->url, server->url,
           program_invocation_name, server->url, sandbox_dir(redis->sandbox), redis->url,
           options->dir != NULL ? "; the store stays in " : "",
           options->dir != NULL ? options->dir : "");
    fflush(stdout);
}

/* Cut: no answer comes, and the service is not told. Redis itself is paused, so an uncut wire
 * costs nothing. Leases still end by the clock. Unlike with a pulled cable, commands sent while it
 * is cut are done afterwards: a lock may be granted to a client that has given up. */
static void set_wire(struct world *world, bool cut)
{
    if (sandbox_signal(serve_servers_redis(&world->locks), cut ? SIGSTOP : SIGCONT) == 0)
        world->cut = cut;
}

/* Cuts or restores the wire as the page wants. */
static void keep_wire(const struct options *options, struct world *world)
{
    bool wished;
    if (remote_keep_wire(options, world->cut, &wished) != 0 || wished == world->cut)
        return;
    set_wire(world, wished);
    remote_keep_wire(options, world->cut, &wished); /* report it: the page waits for it */
}

/* A lesson may have killed an instance. */
static int keep_alive(struct world *world, struct sandbox_server *server)
{
    if (sandbox_alive(server))
        return 0;
    fprintf(stderr, "loadgen: the service has ended, and is started again\n");
    if (world->cut) /* with a cut wire it would not become ready */
        set_wire(world, false);
    return sandbox_restart(server);
}

static int wait_for_end(const struct options *options, struct world *world)
{
    while (!atomic_load(options->stop)) {
        if (keep_alive(world, world->service) != 0 || keep_alive(world, world->peer) != 0)
            return EXIT_FAILURE;
        keep_wire(options, world);
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

static int start_world(struct world *world, const struct options *options, const char *binary)
{
    if (serve_servers_start(&world->locks) != 0 || atomic_load(options->stop) ||
        sandbox_open(&world->sandbox) != 0)
        return -1;
    world->locks_ms = steady_ms();
    snprintf(world->store, sizeof world->store, "sqlite:%s/seckill.db",
             options->dir != NULL ? options->dir : sandbox_dir(world->sandbox));
    if (options->follows && start_classroom(world, options) != 0)
        return -1;
    return start_peer(world, binary) == 0 ? start_service(world, options, binary) : -1;
}

int serve_run(const struct options *given)
{
    char path[4096];
    const int64_t begun_ms = steady_ms();
    struct options options = *given;
    struct world world = {.sandbox = NULL};
    int status = EXIT_FAILURE;
    const char *binary =
        beside("loadgen", "seckilld", "--seckilld", given->seckilld, X_OK, path, sizeof path);
    if (binary == NULL || prepare(&options) != 0)
        return EXIT_FAILURE;
    printf("Starting lock servers and two instances of the service ...\n");
    fflush(stdout);
    if (start_world(&world, &options, binary) == 0 && make_samples(&options) == 0 &&
        await_guards(&options, &world) == 0) {
        tell_servers(&world, begun_ms);
        greet(&options, world.service, serve_servers_redis(&world.locks));
        greet_class(world.classroom);
        status = wait_for_end(&options, &world);
    } else if (atomic_load(options.stop)) {
        status = EXIT_SUCCESS; /* Ctrl-C */
    }
    sandbox_close(world.sandbox); /* first: a lock server without clients ends at once */
    serve_servers_close(&world.locks);
    return status;
}
