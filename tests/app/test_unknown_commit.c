/*
 * Commits with an unknown outcome, on a real PostgreSQL, under every lock, on two instances. Some
 * commits stall: a COMMIT arrives late, waits for an absent standby, or its process is stopped.
 * Others lose their connection at a random moment. SQL then finds no fork in the ledger, every
 * balance equal to the sum of its rows, and every change that was answered with success.
 *
 * UNKNOWN_ROUNDS: rounds of each account, with and without lanes (default 1).
 */
#include "business.h"
#include "keeper.h"
#include "service_private.h"
#include "sandbox_proxy.h"
#include "all_servers.h"
#include "pg_standby.h"
#include "service_rig.h"
#include "tests.h"

#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    FIRST = 1000000,
    OPS = 3, /* of each instance in a round */
    ACCOUNTS_MAX = 64,
    WAIT_US = 4000000,
    RETRIES = 100,
    HELD_TRIES = 10000,
    CONTROL_ROUNDS = 20
};

/* The first three faults stall a commit. */
enum fault { LATE_COMMIT, ABSENT_STANDBY, STOPPED_PROCESS, RESET, FAULTS };

static struct all_servers servers;
static struct proxy *proxy; /* between the first instance and its store */
static PGconn *sql;
static struct config configs[2];
static struct service *services[2];
static unsigned seed = 1;

static struct account {
    char id[DB_ID_MAX + 1];
    const char *guard;
    bool alone; /* its guard excludes only within one process */
} accounts[ACCOUNTS_MAX];
static size_t n_accounts;

static unsigned random_below(unsigned n)
{
    return (unsigned)rand_r(&seed) % n;
}

static void sleep_us(int64_t us)
{
    nanosleep(&(struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000}, NULL);
}

static int64_t ask(const char *text)
{
    PGresult *result = PQexec(sql, text);
    ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK)
        fail_msg("%s: %s", text, PQerrorMessage(sql));
    int64_t value = PQntuples(result) > 0 ? strtoll(PQgetvalue(result, 0, 0), NULL, 10) : 0;
    PQclear(result);
    return value;
}

/* -- servers and instances ----------------------------------------------------------------------
 */

static int set_up(void **state)
{
    (void)state;
    if (sandbox_open(&rig.sandbox) != 0 || !all_servers_open(rig.sandbox, &servers))
        return -1;
    rig.redis = servers.redis[0];
    proxy = proxy_open(servers.postgres->port);
    sql = PQconnectdb(servers.postgres->url);
    return proxy && PQstatus(sql) == CONNECTION_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    PQfinish(sql);
    if (proxy)
        proxy_close(proxy);
    sandbox_close(rig.sandbox);
    return 0;
}

static void open_instance(int i, bool lanes)
{
    rig_reset("redis-token");
    struct config *config = &configs[i];
    *config = rig.config;
    config->lanes = lanes;
    snprintf(config->instance, sizeof config->instance, "i%d", i);
    snprintf(config->redis, sizeof config->redis, "%s", servers.redis_urls);
    snprintf(config->memcached, sizeof config->memcached, "%s", servers.memcached->url);
    snprintf(config->zookeeper, sizeof config->zookeeper, "%s", servers.zookeeper.url);
    snprintf(config->lock_db, sizeof config->lock_db, "%s", servers.postgres->url);
    snprintf(config->db, sizeof config->db,
             "postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable&pool=20",
             i == 0 ? proxy_port(proxy) : servers.postgres->port);
    assert_int_equal(service_open(config, &business, &rig.seams, &services[i]), 0);
}

static void add_account(const lk_provider_info *guard, bool fenced, bool lanes)
{
    struct account *account = &accounts[n_accounts++];
    struct op op;
    snprintf(account->id, sizeof account->id, "%s-%s-%s", guard->name,
             fenced ? "fenced" : "unfenced", lanes ? "lanes" : "single");
    account->guard = guard->name;
    account->alone = !(guard->caps & LK_CAP_DISTRIBUTED);
    op_put_account(&op, account->id, FIRST, guard->name);
    op.fence = fenced;
    if (op_run(services[1], &op) != 200)
        fail_msg("PUT %s: %s", account->id, op.answer.body);
}

static void open_instances(bool lanes)
{
    const lk_provider_info *guard;
    for (int i = 0; i < 2; i++)
        open_instance(i, lanes);
    n_accounts = 0;
    for (size_t i = 0; (guard = lk_provider_at(i)) != NULL; i++) {
        if (!(guard->caps & LK_CAP_EXCLUSIVE))
            continue;
        add_account(guard, false, lanes);
        if (guard->caps & LK_CAP_FENCE)
            add_account(guard, true, lanes);
    }
}

static void close_instances(void)
{
    for (int i = 0; i < 2; i++) {
        assert_true(service_drain(services[i], 60000));
        service_close(services[i]);
        services[i] = NULL;
    }
}

/* -- faults -------------------------------------------------------------------------------------
 */

static void set_standby(const char *name)
{
    assert_true(pg_standby_set(servers.postgres->url, name));
}

/* The pid of the backend whose COMMIT is held. 0: the proxy held another piece, of a new
 * connection.
 */
static pid_t wait_until_held(void)
{
    for (int i = 0; proxy_held(proxy) == 0 && i < HELD_TRIES; i++)
        sleep_us(200);
    pid_t pid = (pid_t)ask("SELECT pid FROM pg_stat_activity WHERE backend_xid IS NOT NULL"
                           " AND state = 'idle in transaction' AND application_name = 'seckilld'");
    if (pid == 0)
        proxy_let_go(proxy);
    return pid;
}

/* Called before the first instance's operations. */
static void prepare_fault(enum fault fault)
{
    if (fault == LATE_COMMIT || fault == STOPPED_PROCESS)
        proxy_hold(proxy, "COMMIT", 1);
    if (fault == ABSENT_STANDBY)
        set_standby("nobody");
}

/* Called during the operations. False: the fault did not take effect. */
static bool begin_fault(enum fault fault, pid_t *ret_stopped)
{
    if (fault == ABSENT_STANDBY) {
        int tries = 0;
        while (ask("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
                   " AND application_name = 'seckilld'") == 0) {
            if (++tries == HELD_TRIES)
                return false; /* none commits: all were refused, as their lock server was late */
            sleep_us(500);
        }
        proxy_cut(proxy);
    } else if (fault == RESET) {
        sleep_us(random_below(4000));
        proxy_cut(proxy);
    } else {
        pid_t process = wait_until_held();
        if (process == 0)
            return false;
        if (fault == STOPPED_PROCESS)
            kill(*ret_stopped = process, SIGSTOP);
        proxy_hang_up(proxy);
        if (fault == STOPPED_PROCESS)
            proxy_let_go(proxy); /* its COMMIT waits in the socket until it continues */
    }
    return true;
}

static void end_fault(enum fault fault, pid_t stopped)
{
    sleep_us(fault == STOPPED_PROCESS ? 500000 : random_below(20000));
    if (fault == ABSENT_STANDBY)
        set_standby("");
    if (fault == LATE_COMMIT)
        proxy_let_go(proxy);
    if (stopped)
        kill(stopped, SIGCONT);
}

/* -- a round ------------------------------------------------------------------------------------
 */

static void make(struct op *op, const struct account *account, int number)
{
    op_make(op, OP_CHANGE_BALANCE, account->id, "", -1, number);
    op->deadline_us = now_us() + WAIT_US;
}

/* Repeats the request with the same key until it is answered 201. */
static void insist(struct service *service, struct op *op, const struct account *account,
                   int number)
{
    for (int i = 0; op->answer.status != 201; i++) {
        if (i == RETRIES)
            fail_msg("%s: %s", account->id, op->answer.body);
        sleep_us(op->answer.problem == PROBLEM_UNAVAILABLE ? 20000 : 1000);
        make(op, account, number);
        op_run(service, op);
    }
}

/* Opens the instance's connections. */
static void warm_up(const struct account *account, int number)
{
    struct op ops[OPS];
    for (int i = 0; i < OPS; i++)
        make(&ops[i], account, number + i);
    ops_run(services[0], ops, OPS);
    for (int i = 0; i < OPS; i++)
        insist(services[0], &ops[i], account, number + i);
}

/* False: the fault did not take effect. */
static bool run_round(const struct account *account, enum fault fault, int round)
{
    struct op ops[2][OPS];
    struct service *other = services[account->alone ? 0 : 1];
    int number = round * 3 * OPS;
    pid_t stopped = 0;
    warm_up(account, number + 2 * OPS);
    for (int i = 0; i < 2 * OPS; i++)
        make(&ops[i / OPS][i % OPS], account, number + i);
    prepare_fault(fault);
    ops_submit(services[0], ops[0], OPS);
    if (fault == RESET)
        ops_submit(other, ops[1], OPS);
    bool took_effect = begin_fault(fault, &stopped);
    if (fault != RESET)
        ops_submit(other, ops[1], OPS);
    end_fault(fault, stopped);
    ops_wait(ops[0], OPS);
    ops_wait(ops[1], OPS);
    proxy_hold(proxy, "COMMIT", 0);
    for (int i = 0; i < 2 * OPS; i++)
        insist(i < OPS ? services[0] : other, &ops[i / OPS][i % OPS], account, number + i);
    return took_effect;
}

#define CHANGES "FROM ledger WHERE kind <> 'reset' AND resource NOT LIKE 'shop:%'"

static int64_t lost_updates(void)
{
    return ask("SELECT coalesce(sum(n - 1), 0) FROM (SELECT count(*) AS n " CHANGES
               " GROUP BY resource, epoch, version_before HAVING count(*) > 1) AS forks") +
           ask("SELECT count(*) FROM accounts AS a WHERE balance <> initial_balance + (SELECT"
               " coalesce(sum(delta), 0) FROM ledger AS l WHERE l.resource = 'account:' || a.id"
               " AND l.epoch = a.epoch AND kind <> 'reset')");
}

GROUP_FIXTURE(set_up, tear_down);

TEST_THAT(no_update_is_lost_when_a_commit_is_not_answered)
{
    const char *text = getenv("UNKNOWN_ROUNDS");
    int each = text ? atoi(text) : 1, rounds = 0, of[FAULTS] = {0};
    for (int lanes = 1; lanes >= 0; lanes--) {
        open_instances(lanes == 1);
        for (int i = 0; i < each * (int)n_accounts; i++, rounds++) {
            const struct account *account = &accounts[(size_t)i % n_accounts];
            enum fault fault = rounds % 2 ? RESET : (enum fault)(rounds / 2 % RESET);
            of[fault] += run_round(account, fault, rounds);
            if (lost_updates() != 0)
                fail_msg("%s: an update was lost, fault %d, round %d", account->id, (int)fault,
                         rounds);
        }
        close_instances();
    }
    assert_int_equal(ask("SELECT count(DISTINCT (resource, txn_id)) " CHANGES),
                     rounds * 3 * OPS); /* each operation was finally answered 201 */
    assert_int_equal(ask("SELECT count(*) " CHANGES), rounds * 3 * OPS);
    for (int fault = 0; fault < FAULTS; fault++)
        assert_true(of[fault] > 0);
    print_message("%d rounds: %d late, %d standby, %d stopped, %d reset; 0 lost updates\n", rounds,
                  of[LATE_COMMIT], of[ABSENT_STANDBY], of[STOPPED_PROCESS], of[RESET]);
}

TEST_THAT(without_the_cure_an_update_is_lost_at_once)
{
    rig.seams.forgets_unknown = true;
    open_instances(false);
    const struct account *account = accounts;
    while (strcmp(account->id, "redis-set-unfenced-single") != 0)
        account++;
    int round = 0;
    while (lost_updates() == 0 && round < CONTROL_ROUNDS)
        run_round(account, LATE_COMMIT, 1000000 + round++);
    assert_true(lost_updates() > 0);
    print_message("lost update in round %d of the control\n", round);
    close_instances();
}
