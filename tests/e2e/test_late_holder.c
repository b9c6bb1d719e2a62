/*
 * Late holders by the thousand: two instances sell one item under a fenced lock while the lock is
 * deleted, an instance stands still past its lease, or Redis' clock leaps. Lane turns, batch,
 * guard, engine and the fence's source are drawn anew for each round. The ledger is judged by SQL:
 * two rows that began from one version are a fork. Under the slip "number-only", which compares
 * fences as the store once did, the same rounds must find one.
 *
 * TEST_ROUNDS=N: so many rounds; TEST_SEED=N: other ones.
 */
#include "lockkit.h"
#include "splitmix.h"
#include "process.h"
#include "shop.h"
#include "tests.h"

#include <libpq-fe.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    INSTANCES = 2,
    CLIENTS = 12,
    STOCK = 1000000,
    ROUNDS = 12,
    ROUNDS_FULL = 1000,
    CONTROL_ROUNDS = 20,
    DELETIONS = 20,
    STOPS = 3,
    LEAPS = 6,
    ANSWER_MS = 3000,
    LEASE_MS = 30000,
    SHORT_LEASE_MS = 120, /* for those who stand still */
    SHORT_SESSION_MS = 300
};

enum fault { DELETE, STOP, LEAP, FAULTS };
static const char *const fault_names[] = {"delete", "stop", "leap"};

static const char *const guards[] = {
    "redis-token", "redis-reentrant", "redis-fair",   "redis-readwrite", "redis-semaphore",
    "sql-unique",  "pg-advisory",     "zk-ephemeral", "zk-sequential",   "zk-readwrite"};
enum { GUARDS = sizeof guards / sizeof guards[0] };

static struct {
    struct sandbox *sandbox;
    struct sandbox_server *redis, *postgres, *instances[INSTANCES];
    struct sandbox_zookeeper zookeeper;
    char file[SANDBOX_TEXT_MAX + 16];
    int64_t ahead_us; /* of Redis' clock */
} world;

struct round {
    int number;
    const char *guard, *slip; /* slip: NULL: none */
    enum fault fault;
    bool on_postgres, fence_from_store;
    int turns, batch;
    char id[32], lock[48], path[64];
    atomic_bool over;
    atomic_int accepted, next_key;
    int hits; /* deletions that met a holder; stops; leaps */
    int64_t forks, rows;
};

static uint64_t draw(uint64_t *state, uint64_t below)
{
    *state = splitmix(*state);
    return *state % below;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

static void pause_ms(int64_t ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* -- servers ----------------------------------------------------------------------------------- */

static int open_world(void **state)
{
    char shim[PATH_MAX];
    (void)state;
    if (!realpath(shop_binary("libclockshim.so"), shim) || sandbox_open(&world.sandbox) != 0)
        return -1;
    snprintf(world.file, sizeof world.file, "%s/late.db", sandbox_dir(world.sandbox));
    world.redis = sandbox_redis_with_clock(world.sandbox, shim);
    world.postgres =
        sandbox_postgres(world.sandbox, (const char *const[]){"-c", "max_connections=250", NULL});
    return world.redis && world.postgres ? 0 : -1;
}

static int close_world(void **state)
{
    (void)state;
    sandbox_close(world.sandbox);
    return 0;
}

static int64_t lease_ms(const struct round *round)
{
    return round->fault != STOP          ? LEASE_MS
           : begins(round->guard, "zk-") ? SHORT_SESSION_MS
                                         : SHORT_LEASE_MS;
}

static void start_instance(const struct round *round, int i)
{
    char db[SANDBOX_TEXT_MAX + 32], lease[16], turns[16], batch[16];
    snprintf(db, sizeof db, "%s%s", round->on_postgres ? "" : "sqlite:",
             round->on_postgres ? world.postgres->url : world.file);
    snprintf(lease, sizeof lease, "%d", (int)lease_ms(round));
    snprintf(turns, sizeof turns, "%d", round->turns);
    snprintf(batch, sizeof batch, "%d", round->batch);
    const char *const args[] = {"--db",
                                db,
                                "--redis",
                                world.redis->url,
                                "--zookeeper",
                                world.zookeeper.url,
                                "--lock-db",
                                world.postgres->url,
                                "--guard",
                                round->guard,
                                "--lease-ms",
                                lease,
                                "--lane-turns",
                                turns,
                                "--batch",
                                batch,
                                "--fence-source",
                                round->fence_from_store ? "database" : "lock",
                                "--instance",
                                i == 0 ? "one" : "two",
                                round->on_postgres ? "--sync=full" : "--db-shared",
                                round->slip ? "--lab" : NULL,
                                "--lab-slip",
                                round->slip,
                                NULL};
    const char *seckilld = shop_binary("seckilld");
    struct sandbox_server **server = &world.instances[i];
    if (!*server)
        *server = sandbox_seckilld(world.sandbox, seckilld, args);
    else
        assert_int_equal(sandbox_seckilld_anew(*server, seckilld, args), 0);
    assert_non_null(*server);
}

static void kill_instances(void)
{
    for (int i = 0; i < INSTANCES; i++)
        if (world.instances[i] && sandbox_alive(world.instances[i]))
            sandbox_signal(world.instances[i], SIGKILL);
}

/* -- load -------------------------------------------------------------------------------------- */

struct buyer {
    pthread_t thread;
    struct round *round;
    int port;
};

static void *buy(void *arg)
{
    struct buyer *buyer = arg;
    struct round *round = buyer->round;
    struct client client = {.port = buyer->port, .fd = -1};
    struct reply *reply = malloc(sizeof *reply);
    char key[64];
    while (reply && !atomic_load(&round->over)) {
        snprintf(key, sizeof key, "%s-%d", round->id, atomic_fetch_add(&round->next_key, 1));
        client_call(&client, "POST", round->path, key, "{\"user_id\":\"u\"}", ANSWER_MS, reply);
        if (reply->status == 201)
            atomic_fetch_add(&round->accepted, 1);
    }
    client_close(&client);
    free(reply);
    return NULL;
}

static void put_item(const struct round *round)
{
    char path[64], body[128];
    struct client client = {.port = world.instances[0]->port, .fd = -1};
    struct reply *reply = malloc(sizeof *reply);
    assert_non_null(reply);
    snprintf(path, sizeof path, "/v1/items/%s", round->id);
    snprintf(body, sizeof body, "{\"stock\":%d,\"guard\":\"%s\"}", STOCK, round->guard);
    int status = client_put(&client, path, body, SHOP_WAIT_MS, reply);
    client_close(&client);
    free(reply);
    assert_true(status == 200 || status == 201);
}

/* -- faults ------------------------------------------------------------------------------------ */

static void delete_lock(struct round *round, uint64_t *random)
{
    const char *endpoints = begins(round->guard, "redis-") ? world.redis->url
                            : begins(round->guard, "zk-")  ? world.zookeeper.url
                                                           : world.postgres->url;
    lk_client *client;
    assert_int_equal(lk_open(round->guard, endpoints, NULL, &client, NULL), LK_OK);
    for (int i = 0; i < DELETIONS; i++) {
        round->hits += lk_force_release(client, round->lock) == LK_OK;
        pause_ms((int64_t)draw(random, 12));
    }
    lk_close(client);
}

static void stop_instances(struct round *round, uint64_t *random)
{
    for (int i = 0; i < STOPS; i++) {
        struct sandbox_server *server = world.instances[draw(random, INSTANCES)];
        round->hits += sandbox_signal(server, SIGSTOP) == 0;
        pause_ms(lease_ms(round) + 50 + (int64_t)draw(random, 100));
        sandbox_signal(server, SIGCONT);
        pause_ms((int64_t)draw(random, 100));
    }
}

static void leap_clock(struct round *round, uint64_t *random)
{
    for (int i = 0; i < LEAPS; i++) {
        world.ahead_us += INT64_C(3600000000);
        round->hits += sandbox_set_clock(world.redis, world.ahead_us) == 0;
        pause_ms(10 + (int64_t)draw(random, 40));
    }
}

/* -- one round --------------------------------------------------------------------------------- */

static int64_t ask(const struct round *round, const char *sql)
{
    int64_t number = -1;
    if (round->on_postgres) {
        PGconn *handle = PQconnectdb(world.postgres->url);
        PGresult *result = PQexec(handle, sql);
        if (PQntuples(result) == 1)
            number = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
        PQclear(result);
        PQfinish(handle);
        return number;
    }
    sqlite3 *handle;
    sqlite3_stmt *statement = NULL;
    assert_int_equal(sqlite3_open(world.file, &handle), SQLITE_OK);
    if (sqlite3_prepare_v2(handle, sql, -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW)
        number = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(handle);
    return number;
}

static void judge(struct round *round)
{
    char sql[256];
    snprintf(sql, sizeof sql,
             "SELECT count(*) FROM (SELECT version_before FROM ledger WHERE resource = 'item:%s'"
             " GROUP BY epoch, version_before HAVING count(*) > 1) AS forks",
             round->id);
    round->forks = ask(round, sql);
    snprintf(sql, sizeof sql,
             "SELECT count(*) FROM ledger WHERE resource = 'item:%s' AND delta = -1", round->id);
    round->rows = ask(round, sql);
    snprintf(sql, sizeof sql, "SELECT %d - stock FROM items WHERE id = '%s'", STOCK, round->id);
    int64_t sold = ask(round, sql);
    print_message("%4d %-7s %-15s %-10s turns %d batch %d fence from %-8s %4d accepted, %3d hits, "
                  "%d forks\n",
                  round->number, fault_names[round->fault], round->guard,
                  round->on_postgres ? "PostgreSQL" : "SQLite", round->turns, round->batch,
                  round->fence_from_store ? "database" : "lock", atomic_load(&round->accepted),
                  round->hits, (int)round->forks);
    if (round->forks == 0)
        assert_int_equal(sold, round->rows);
    assert_true(round->forks >= 0 && round->rows >= atomic_load(&round->accepted));
}

static void run_round(struct round *round, uint64_t *random)
{
    static void (*const faults[])(struct round * round, uint64_t * random) = {
        [DELETE] = delete_lock, [STOP] = stop_instances, [LEAP] = leap_clock};
    struct buyer buyers[CLIENTS];
    snprintf(round->id, sizeof round->id, "%s%d", round->slip ? "c" : "r", round->number);
    snprintf(round->lock, sizeof round->lock, "lock:item:%s", round->id);
    snprintf(round->path, sizeof round->path, "/v1/items/%s/orders", round->id);
    for (int i = 0; i < INSTANCES; i++)
        start_instance(round, i);
    put_item(round);
    for (int i = 0; i < CLIENTS; i++) {
        buyers[i] = (struct buyer){.round = round, .port = world.instances[i % INSTANCES]->port};
        assert_int_equal(pthread_create(&buyers[i].thread, NULL, buy, &buyers[i]), 0);
    }
    faults[round->fault](round, random);
    atomic_store(&round->over, true);
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(buyers[i].thread, NULL);
    kill_instances();
    judge(round);
}

static int number_of(const char *name, int64_t otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : (int)otherwise;
}

static void draw_round(struct round *round, uint64_t *random)
{
    static const int batches[] = {1, 2, 4, 16};
    round->guard = guards[draw(random, GUARDS)];
    round->fault = (enum fault)draw(random, FAULTS);
    if (round->fault == LEAP && !begins(round->guard, "redis-"))
        round->fault = DELETE;
    round->on_postgres = draw(random, 4) != 0;
    round->fence_from_store = draw(random, 4) == 0;
    round->turns = 1 + (int)draw(random, 8);
    round->batch = batches[draw(random, sizeof batches / sizeof batches[0])];
}

GROUP_FIXTURE(open_world, close_world);

TEST_THAT(the_number_alone_is_found_out_within_twenty_rounds)
{
    uint64_t random = (uint64_t)number_of("TEST_SEED", 1);
    int64_t forks = 0;
    for (int i = 0; i < CONTROL_ROUNDS && forks == 0; i++) {
        struct round round = {.number = i, .slip = "number-only"};
        round.guard = draw(&random, 2) ? "redis-token" : "redis-reentrant";
        round.fault = (enum fault)draw(&random, FAULTS);
        round.on_postgres = true;
        round.turns = 8;
        round.batch = 1;
        run_round(&round, &random);
        forks = round.forks;
    }
    assert_true(forks > 0);
}

TEST_THAT(no_late_holder_forks_the_ledger)
{
    uint64_t random = (uint64_t)number_of("TEST_SEED", 1);
    int64_t accepted = 0, hits = 0, per_fault[FAULTS] = {0};
    int rounds = number_of("TEST_ROUNDS", test_size(ROUNDS, ROUNDS_FULL));
    assert_int_equal(sandbox_zookeeper(world.sandbox, 1, &world.zookeeper), 0);
    for (int i = 0; i < rounds; i++) {
        struct round round = {.number = i};
        draw_round(&round, &random);
        run_round(&round, &random);
        assert_int_equal(round.forks, 0);
        accepted += atomic_load(&round.accepted);
        hits += round.hits;
        per_fault[round.fault]++;
    }
    print_message("%d rounds (%d delete, %d stop, %d leap), %d accepted, %d hits, 0 forks\n",
                  rounds, (int)per_fault[DELETE], (int)per_fault[STOP], (int)per_fault[LEAP],
                  (int)accepted, (int)hits);
    assert_true(accepted > 0 && hits > 0);
}
