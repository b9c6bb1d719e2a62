/* Faults of instances, lock servers and the wires between them. */
#include "sandbox_process.h"
#include "steady.h"
#include "torture_faults.h"

#include <glob.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

enum { SPARE_FILES = 4, HOUR_MS = 3600000, STANDS_MS = 20 };

typedef bool fault_function(struct torture_world *world, const struct torture_strike *strike);

static struct torture_process *instance(struct torture_world *world,
                                        const struct torture_strike *strike)
{
    return &world->instance[strike->who % world->plan->is.instances];
}

static struct torture_process *lock_server(struct torture_world *world,
                                           const struct torture_strike *strike)
{
    return world->n_locks == 0 ? NULL : &world->locks[strike->who % (uint32_t)world->n_locks];
}

/* -- instances --------------------------------------------------------------------------------- */

static bool kill_instance(struct torture_world *world, const struct torture_strike *strike)
{
    return torture_kill(instance(world, strike), strike->for_ms);
}

static bool pause_instance(struct torture_world *world, const struct torture_strike *strike)
{
    return torture_stop(instance(world, strike), strike->for_ms);
}

static bool restart_instance(struct torture_world *world, const struct torture_strike *strike)
{
    return torture_end(instance(world, strike), SIGINT, strike->for_ms);
}

static int open_files(pid_t pid)
{
    char pattern[64];
    glob_t found = {0};
    snprintf(pattern, sizeof pattern, "/proc/%d/fd/*", (int)pid);
    int n = glob(pattern, GLOB_NOSORT, NULL, &found) == 0 ? (int)found.gl_pathc : 0;
    globfree(&found);
    return n;
}

static bool take_files(struct torture_world *world, const struct torture_strike *strike)
{
    struct torture_process *process = instance(world, strike);
    struct rlimit limit;
    if (process->state != RUNS || prlimit(process->server->pid, RLIMIT_NOFILE, NULL, &limit) != 0)
        return false;
    limit.rlim_cur = (rlim_t)(open_files(process->server->pid) + (int)strike->chance % SPARE_FILES);
    return prlimit(process->server->pid, RLIMIT_NOFILE, &limit, NULL) == 0;
}

static bool give_files(struct torture_world *world, const struct torture_strike *strike)
{
    struct torture_process *process = instance(world, strike);
    struct rlimit limit;
    if (process->server->pid != 0 &&
        prlimit(process->server->pid, RLIMIT_NOFILE, NULL, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        prlimit(process->server->pid, RLIMIT_NOFILE, &limit, NULL);
    }
    return true;
}

/* The instance dies, and one of its servers in the same moment. */
static bool kill_both(struct torture_world *world, const struct torture_strike *strike)
{
    bool postgres = world->postgres.server != NULL && strike->chance % 2 == 0;
    struct torture_process *server = postgres ? &world->postgres : lock_server(world, strike);
    if (server == NULL || world->failover_sandbox != NULL)
        server = world->postgres.server != NULL ? &world->postgres : NULL;
    if (server == NULL) /* it has no server: it dies again while it starts */
        return torture_kill(instance(world, strike), 0);
    if (server == &world->postgres)
        torture_store_unstrike(world, strike);
    bool first = torture_kill(server, strike->for_ms);
    return torture_kill(instance(world, strike), strike->for_ms / 2) && first;
}

/* -- lock servers ------------------------------------------------------------------------------ */

static bool kill_locks(struct torture_world *world, const struct torture_strike *strike)
{
    return torture_kill(lock_server(world, strike), strike->for_ms);
}

static bool pause_locks(struct torture_world *world, const struct torture_strike *strike)
{
    return torture_stop(lock_server(world, strike), strike->for_ms);
}

/* A server that stands still or is down is not asked. */
static bool command(const struct torture_process *process, const char *text)
{
    if (process == NULL || process->state != RUNS)
        return false;
    redisReply *reply = sandbox_redis_ask(process->server, text);
    bool done = reply != NULL && reply->type != REDIS_REPLY_ERROR;
    freeReplyObject(reply);
    return done;
}

static bool flush(struct torture_world *world, const struct torture_strike *strike)
{
    struct torture_process *process = lock_server(world, strike);
    if (process == NULL || process->state != RUNS)
        return false;
    if (world->plan->is.guard->servers == SERVERS_MEMCACHED)
        return sandbox_answers(NULL, process->server->port, "flush_all\r\n", "OK", 500);
    return command(process, "FLUSHALL");
}

static bool evict(struct torture_world *world, const struct torture_strike *strike)
{
    struct torture_process *process = lock_server(world, strike);
    bool evicted = command(process, "CONFIG SET maxmemory-policy allkeys-random") &&
                   command(process, "CONFIG SET maxmemory 1") && !command(process, "SET x 1");
    command(process, "CONFIG SET maxmemory 0");
    return evicted;
}

/* A client of the locks, beside the instances. NULL: a server of theirs is down. */
static lk_client *hand_of(struct torture_world *world)
{
    const struct torture_settings *is = &world->plan->is;
    const lk_options options = {.command_timeout_ms = 200};
    for (int i = 0; i < world->n_locks; i++)
        if (world->locks[i].state != RUNS && is->guard->servers != SERVERS_REDLOCK)
            return NULL;
    if (world->postgres.server != NULL && world->postgres.state != RUNS)
        return NULL;
    if (world->hand == NULL &&
        lk_open(is->guard->name, world->endpoints, &options, &world->hand, NULL) != LK_OK)
        world->hand = NULL;
    return world->hand;
}

static bool delete_lock(struct torture_world *world, const struct torture_strike *strike)
{
    const struct torture_settings *is = &world->plan->is;
    char key[32];
    lk_client *hand = hand_of(world);
    if (strike->chance % 3 == 0)
        snprintf(key, sizeof key, "lock:account:u%u", strike->who % is->accounts);
    else
        snprintf(key, sizeof key, "lock:item:i%u", strike->who % is->items);
    return hand != NULL && lk_force_release(hand, key) == LK_OK;
}

bool torture_lock_stands(struct torture_world *world)
{
    lk_lock_info first, second;
    if (world->plan->is.guard->servers == SERVERS_NONE)
        return false;
    lk_client *hand = hand_of(world);
    if (hand == NULL || lk_inspect(hand, "lock:item:i0", &first) != LK_OK || first.token[0] == '\0')
        return false;
    steady_sleep_ms(STANDS_MS);
    return lk_inspect(hand, "lock:item:i0", &second) == LK_OK &&
           strcmp(first.token, second.token) == 0;
}

static bool pause_clients(struct torture_world *world, const struct torture_strike *strike)
{
    char text[64];
    snprintf(text, sizeof text, "CLIENT PAUSE %u ALL", strike->for_ms);
    return command(lock_server(world, strike), text);
}

/* Forward, and never back: a lock set by a clock that is an hour ahead would stay for an hour. */
static bool leap(struct torture_world *world, const struct torture_strike *strike)
{
    const struct torture_process *process = lock_server(world, strike);
    world->ahead_us += (int64_t)(1 + strike->chance) * HOUR_MS;
    return process != NULL && sandbox_set_clock(process->server, world->ahead_us) == 0;
}

/* -- wires ------------------------------------------------------------------------------------- */

static struct proxy *lock_wire(struct torture_world *world, const struct torture_strike *strike)
{
    uint32_t n = (uint32_t)world->n_locks;
    return n == 0 ? NULL
                  : world->lock_wires[strike->who % world->plan->is.instances][strike->chance % n];
}

static bool cut(struct torture_world *world, const struct torture_strike *strike)
{
    struct proxy *wire = lock_wire(world, strike);
    if (wire != NULL)
        proxy_cut(wire);
    return wire != NULL;
}

static enum proxy_way way_of(const struct torture_strike *strike)
{
    return strike->chance % 2 == 0 ? PROXY_TO_SERVER : PROXY_TO_CLIENT;
}

static bool half_cut(struct torture_world *world, const struct torture_strike *strike)
{
    struct proxy *wire = lock_wire(world, strike);
    if (wire != NULL)
        proxy_drop(wire, way_of(strike), true);
    return wire != NULL;
}

/* What was lost leaves a stream with a gap, so it cannot go on. */
static bool mend_half(struct torture_world *world, const struct torture_strike *strike)
{
    struct proxy *wire = lock_wire(world, strike);
    if (wire != NULL) {
        proxy_drop(wire, way_of(strike), false);
        proxy_cut(wire);
    }
    return true;
}

static bool delay(struct torture_world *world, const struct torture_strike *strike)
{
    struct proxy *wire = lock_wire(world, strike);
    if (wire != NULL)
        proxy_delay(wire, 1 + strike->chance % 200);
    return wire != NULL;
}

static bool end_delay(struct torture_world *world, const struct torture_strike *strike)
{
    struct proxy *wire = lock_wire(world, strike);
    if (wire != NULL)
        proxy_delay(wire, 0);
    return true;
}

/* -- failovers --------------------------------------------------------------------------------- */

static bool is_master(const struct torture_process *process)
{
    redisReply *reply = process->state == RUNS ? sandbox_redis_ask(process->server, "ROLE") : NULL;
    bool master = reply != NULL && reply->elements > 0 && reply->element[0]->str != NULL &&
                  strcmp(reply->element[0]->str, "master") == 0;
    freeReplyObject(reply);
    return master;
}

static int leader(struct torture_world *world, const struct torture_strike *strike)
{
    if (world->plan->is.topology == THREE)
        return sandbox_zookeeper_leader(&world->ensemble);
    for (int i = 0; i < world->n_locks; i++) {
        int at = (int)((strike->who + (uint32_t)i) % (uint32_t)world->n_locks);
        if (is_master(&world->locks[at]))
            return at;
    }
    return -1;
}

/* One at a time: the last copy is not killed. */
static bool fail_over(struct torture_world *world, const struct torture_strike *strike)
{
    for (int i = 0; i < world->n_locks; i++)
        if (world->locks[i].state != RUNS)
            return false;
    int at = leader(world, strike);
    return at >= 0 && torture_kill(&world->locks[at], strike->for_ms);
}

/* Asked while the killed server is still down: does another one lead in its place? */
static bool see_failover(struct torture_world *world, const struct torture_strike *strike)
{
    int leaders = 0;
    for (int i = 0; i < world->n_locks && world->plan->is.topology != THREE; i++)
        leaders += is_master(&world->locks[i]);
    if (world->plan->is.topology == THREE)
        leaders = leader(world, strike) >= 0;
    world->failovers +=
        leaders == (world->plan->is.topology == CLUSTER ? SANDBOX_CLUSTER_MASTERS : 1);
    return true;
}

void torture_leave_broken(struct torture_world *world)
{
    int minority = (world->n_locks - 1) / 2;
    for (int i = 0; i < minority; i++) {
        torture_kill(&world->locks[i], 0);
        world->locks[i].until_us = INT64_MAX;
    }
}

/* -- the table --------------------------------------------------------------------------------- */

static const struct {
    fault_function *strike, *heal; /* heal NULL: it ends by itself */
} functions[TORTURE_FAULTS] = {
    [TORTURE_KILL] = {kill_instance, NULL},
    [TORTURE_PAUSE] = {pause_instance, NULL},
    [TORTURE_RESTART] = {restart_instance, NULL},
    [TORTURE_FEW_FILES] = {take_files, give_files},
    [TORTURE_DOUBLE_KILL] = {kill_both, NULL},
    [TORTURE_LOCKS_KILL] = {kill_locks, NULL},
    [TORTURE_LOCKS_PAUSE] = {pause_locks, NULL},
    [TORTURE_FLUSH] = {flush, NULL},
    [TORTURE_DELETE] = {delete_lock, NULL},
    [TORTURE_EVICT] = {evict, NULL},
    [TORTURE_CLIENT_PAUSE] = {pause_clients, NULL},
    [TORTURE_CLOCK] = {leap, NULL},
    [TORTURE_CUT] = {cut, NULL},
    [TORTURE_HALF_CUT] = {half_cut, mend_half},
    [TORTURE_DELAY] = {delay, end_delay},
    [TORTURE_FAILOVER] = {fail_over, see_failover},
};

bool torture_strike(struct torture_world *world, const struct torture_strike *strike)
{
    fault_function *function = functions[strike->fault].strike;
    return function != NULL ? function(world, strike) : torture_store_strike(world, strike);
}

bool torture_unstrike(struct torture_world *world, const struct torture_strike *strike)
{
    fault_function *function = functions[strike->fault].heal;
    if (function != NULL)
        return function(world, strike);
    return functions[strike->fault].strike != NULL || torture_store_unstrike(world, strike);
}
