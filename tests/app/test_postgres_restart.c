/*
 * PostgreSQL is shut down cleanly and restarted repeatedly under load, as by pg_ctl restart -m fast
 * (SIGINT to the postmaster). The service goes on and is soon ready again. SQL finds every change
 * that was answered with success.
 *
 * RESTART_ROUNDS: number of restarts (default 5). READY_MS: bound on the time until it is ready, to
 * which the machine's lateness adds (default 15000; 2000 is promised).
 */
#include "lateness.h"
#include "service_rig.h"
#include "tests.h"

#include <libpq-fe.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CLIENTS = 6, FIRST = 1000000, WAIT_US = 1000000, ACCEPTED_MIN = 20, READY_MS = 15000 };

static struct sandbox_server *postgres;
static atomic_bool stop;
static atomic_int accepted; /* of all clients */

static int set_up(void **state)
{
    if (rig_open(state) != 0)
        return -1;
    postgres = sandbox_postgres(rig.sandbox, NULL);
    return postgres ? 0 : -1;
}

static void sleep_ms(int64_t ms)
{
    nanosleep(&(struct timespec){.tv_nsec = ms * 1000000}, NULL);
}

/* A client that repeats a request with the same key until it is answered 201. */
struct client {
    pthread_t thread;
    char account[16];
    int asked; /* keys 1 to asked were answered 201 */
};

static void *run_client(void *arg)
{
    struct client *client = arg;
    struct op op;
    op_make(&op, OP_CHANGE_BALANCE, client->account, "", -1, 1);
    while (!atomic_load(&stop)) {
        char *body = op.answer.body;
        size_t room = op.answer.body_room;
        struct op next = op; /* reuses the memory for the answer */
        next.answer = (struct answer){.body = body, .body_room = room};
        snprintf(next.key, sizeof next.key, "%s-%d", client->account, client->asked + 1);
        next.deadline_us = now_us() + WAIT_US;
        for (size_t i = 0; i < OP_POINT_COUNT; i++)
            next.point_us[i] = 0;
        op = next;
        if (op_run(rig.service, &op) == 201) {
            client->asked++;
            atomic_fetch_add(&accepted, 1);
        } else {
            sleep_ms(5);
        }
    }
    return NULL;
}

static void wait_for_accepted(int more)
{
    const int wanted = atomic_load(&accepted) + more;
    while (atomic_load(&accepted) < wanted)
        sleep_ms(1);
}

/* Restarts the server. Returns the time from its start until the service is ready. */
static int64_t restart_ms(void)
{
    struct op op;
    assert_int_equal(sandbox_signal(postgres, SIGINT), 0);
    while (sandbox_alive(postgres))
        sleep_ms(1);
    assert_int_equal(sandbox_restart(postgres), 0);
    const int64_t start_us = now_us();
    while (op_run(rig.service, op_make(&op, OP_READY, "", "", 0, 0)) != 200)
        sleep_ms(5);
    return (now_us() - start_us) / 1000;
}

static int64_t ask(PGconn *sql, const char *text)
{
    PGresult *result = PQexec(sql, text);
    assert_int_equal(PQresultStatus(result), PGRES_TUPLES_OK);
    int64_t value = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return value;
}

static void expect_all_there(const struct client *clients)
{
    PGconn *sql = PQconnectdb(postgres->url);
    assert_int_equal(PQstatus(sql), CONNECTION_OK);
    for (int i = 0; i < CLIENTS; i++) {
        char text[256];
        snprintf(text, sizeof text,
                 "SELECT count(DISTINCT txn_id) FROM ledger WHERE txn_id IN (SELECT '%s-' || n"
                 " FROM generate_series(1, %d) AS n)",
                 clients[i].account, clients[i].asked);
        assert_int_equal(ask(sql, text), clients[i].asked);
    }
    PQfinish(sql);
    assert_true(audit_is_clean(rig.service));
}

GROUP_FIXTURE(set_up, rig_close);

TEST_THAT_WITH(every_answer_outlives_the_restarts, NULL, rig_clear)
{
    const char *text = getenv("RESTART_ROUNDS");
    const char *ready = getenv("READY_MS");
    const int rounds = text ? atoi(text) : 5;
    struct client clients[CLIENTS];
    struct op op;
    int64_t longest_ms = 0;
    rig_reset("redis-token");
    snprintf(rig.config.db, sizeof rig.config.db, "%s", postgres->url);
    assert_int_equal(rig_start(), 0);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (struct client){.asked = 0};
        snprintf(clients[i].account, sizeof clients[i].account, "a%d", i);
        assert_int_equal(
            op_run(rig.service, op_put_account(&op, clients[i].account, FIRST, "redis-token")),
            200);
        assert_int_equal(pthread_create(&clients[i].thread, NULL, run_client, &clients[i]), 0);
    }
    for (int round = 0; round < rounds; round++) {
        wait_for_accepted(ACCEPTED_MIN); /* under load */
        const int64_t ms = restart_ms();
        longest_ms = ms > longest_ms ? ms : longest_ms;
        assert_true(took_at_most(ms, ready ? atoi(ready) : READY_MS));
    }
    wait_for_accepted(ACCEPTED_MIN);
    atomic_store(&stop, true);
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(clients[i].thread, NULL);
    expect_all_there(clients);
    print_message("%d restarts, %d answers, ready again within %lld ms\n", rounds,
                  atomic_load(&accepted), (long long)longest_ms);
}
