/* Each message of a PostgreSQL server is replaced by a wrong one. The process goes on, each call
 * returns, and the lock can be acquired again. */
#include "sandbox.h"
#include "lockkit.h"
#include "pg_liar.h"
#include "process.h"
#include "tests.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MESSAGES_MAX = 100, TIMEOUT_MS = 300, LEASE_MS = 200, FREE_MS = 10000, SOON_MS = 60000 };

static struct sandbox *sandbox;
static struct sandbox_server *server;

static int set_up(void **state)
{
    (void)state;
    if (sandbox_open(&sandbox) != 0)
        return -1;
    server = sandbox_postgres(sandbox, NULL);
    return server ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    sandbox_close(sandbox);
    return 0;
}

static lk_status hold_once(lk_client *client, int64_t wait_ms)
{
    const lk_request request = {.key = "lock:1", .wait_ms = wait_ms, .lease_ms = LEASE_MS};
    lk_lock_info info;
    lk_hold hold;
    lk_status status = lk_acquire(client, &request, &hold);
    if (status == LK_OK) {
        lk_confirm(&hold);
        lk_inspect(client, "lock:1", &info);
        status = lk_release(&hold);
    }
    return status;
}

/* A busy machine may take longer for a connection than a command has. */
static lk_status hold_soon(lk_client *client)
{
    int64_t until_ms = test_now_ms() + SOON_MS;
    lk_status status;
    do
        status = hold_once(client, FREE_MS);
    while (status != LK_OK && test_now_ms() < until_ms);
    return status;
}

static void each_call_ends(const char *guard)
{
    char url[128];
    lk_client *client;
    lk_error error;
    const lk_options options = {.command_timeout_ms = TIMEOUT_MS, .lease_ms = LEASE_MS};
    struct pg_liar *liar = pg_liar_open(server->port);
    assert_non_null(liar);
    snprintf(url, sizeof url, "postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable",
             pg_liar_port(liar));
    if (lk_open(guard, url, &options, &client, &error) != LK_OK)
        fail_msg("%s: %s", guard, error.message);
    assert_int_equal(LK_OK, hold_soon(client));
    int uses = 0;
    for (int lie = 0; lie < PG_LIES; lie++) {
        for (int n = 1, told = 1; told > 0; n++, uses++) {
            assert_true(n < MESSAGES_MAX);
            pg_liar_arm(liar, (enum pg_lie)lie, n);
            hold_once(client, 0);
            told = pg_liar_disarm(liar);
            /* A lock that remains after a lie ends with its lease or connection. After a surplus
             * answer the error may show only now. */
            lk_status status = hold_soon(client);
            if (status != LK_OK)
                fail_msg("%s: after lie %d in place of message %d: %s", guard, lie, n,
                         lk_status_text(status));
        }
    }
    print_message("%s: %d lies\n", guard, uses);
    lk_close(client);
    pg_liar_close(liar);
}

GROUP_FIXTURE(set_up, tear_down);

TEST_THAT(a_lock_row_survives_whatever_the_server_says)
{
    each_call_ends("sql-unique");
}

TEST_THAT(an_advisory_lock_survives_whatever_the_server_says)
{
    each_call_ends("pg-advisory");
}

TEST_THAT(an_advisory_transaction_survives_whatever_the_server_says)
{
    each_call_ends("pg-advisory-xact");
}
