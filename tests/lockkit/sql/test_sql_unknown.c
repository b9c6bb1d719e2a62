/* Rows without a lease, on PostgreSQL. The outcome of an unanswered try is found out and undone, so
 * no lock stays for ever while all processes live. */
#include "lock_hooks.h"
#include "lock_world.h"
#include "process.h"
#include "sandbox_proxy.h"
#include "tests.h"

#include <stdio.h>

#define KEY "lock:item:1"

enum { COMMAND_MS = 700, SOON_MS = 20000 };

static const lk_options options = {.command_timeout_ms = COMMAND_MS};

static int64_t rows(void)
{
    return world_sql("SELECT count(*) FROM lockkit.rows", NULL);
}

static bool has_no_rows(void *unused)
{
    (void)unused;
    return rows() == 0;
}

static bool nothing_is_owed(void *client)
{
    lk_stats stats = world_stats(client);
    return stats.pending == stats.pending_done;
}

/* Another client gets the lock after the pending releases. */
static void expect_free(lk_client *client)
{
    lk_hold hold;
    lk_client *other = world_client("sql-unique-forever", NULL);
    assert_true(wait_until(nothing_is_owed, client, SOON_MS));
    assert_int_equal(rows(), 0);
    assert_int_equal(lk_try_acquire(other, KEY, &hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(other);
}

GROUP_FIXTURE(world_open, world_close);
TEST_FIXTURE(world_empty, NULL);

/* The client can record one unanswered statement per connection. */
TEST_THAT(largest_pool_is_served)
{
    char endpoint[WORLD_ENDPOINTS_MAX], url[WORLD_ENDPOINTS_MAX + 16];
    lk_client *client;
    lk_hold hold;
    world->endpoints(endpoint, sizeof endpoint, 0);
    snprintf(url, sizeof url, "%s?pool=1024", endpoint);
    assert_int_equal(lk_open("sql-unique-forever", url, NULL, &client, NULL), LK_OK);
    assert_int_equal(lk_try_acquire(client, KEY, &hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    lk_close(client);
}

TEST_THAT(release_that_a_crash_of_the_server_swallowed_is_repeated)
{
    lk_hold hold;
    lk_client *client = world_client("sql-unique-forever", &options);
    assert_int_equal(lk_try_acquire(client, KEY, &hold), LK_OK);
    world_kill();
    lk_status released = lk_release(&hold);
    world_restart();
    assert_true(released == LK_UNKNOWN || released == LK_UNAVAILABLE);
    assert_true(wait_until(has_no_rows, NULL, SOON_MS));
    expect_free(client);
    lk_close(client);
}

static void cut_both_ways(void *proxy)
{
    proxy_drop(proxy, PROXY_TO_SERVER, true);
    proxy_drop(proxy, PROXY_TO_CLIENT, true);
}

/* The answer is lost, and so is the clean-up. */
TEST_THAT(attempt_whose_answer_was_lost_is_taken_back_when_the_server_is_heard_again)
{
    lk_hold hold;
    struct hooked hooked;
    struct proxy *proxy = proxy_open(world->port());
    assert_non_null(proxy);
    const lk_options hooks = {.command_timeout_ms = COMMAND_MS, .env = hook(&hooked)};
    lk_client *client =
        world_warm(world_client_at("sql-unique-forever", proxy_port(proxy), &hooks));
    hooked.point = LK_POINT_CLEANUP;
    hooked.call = cut_both_ways;
    hooked.arg = proxy;
    proxy_lose_answer(proxy, KEY, 1, PROXY_CUT);
    lk_status status = lk_try_acquire(client, KEY, &hold);
    int64_t left = rows();
    hooked.point = NULL;
    proxy_drop(proxy, PROXY_TO_SERVER, false);
    proxy_drop(proxy, PROXY_TO_CLIENT, false);
    proxy_cut(proxy);
    bool gone = wait_until(has_no_rows, NULL, SOON_MS);
    bool settled = wait_until(nothing_is_owed, client, SOON_MS);
    lk_close(client);
    proxy_close(proxy);
    assert_int_equal(status, LK_UNKNOWN);
    assert_int_equal(left, 1);
    assert_true(gone && settled);
}

static bool waits_in_its_commit(void *unused)
{
    (void)unused;
    return world_sql("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'", NULL) >
           0;
}

static bool waits_no_more(void *unused)
{
    return !waits_in_its_commit(unused);
}

static bool needs_standby(void *unused)
{
    (void)unused;
    return world_sql("SELECT length(current_setting('synchronous_standby_names'))", NULL) > 0;
}

static bool needs_none(void *unused)
{
    return !needs_standby(unused);
}

static void need_standby(bool on)
{
    world_sql(on ? "ALTER SYSTEM SET synchronous_standby_names = 'nobody'"
                 : "ALTER SYSTEM RESET synchronous_standby_names",
              NULL);
    world_sql("SELECT pg_reload_conf()", NULL);
    assert_true(wait_until(on ? needs_standby : needs_none, NULL, SOON_MS));
}

/* While the commit waits for a standby, its row is not visible. Without the undo the row would
 * appear when a standby connects, long after the try was given up. */
TEST_THAT(attempt_that_waits_in_its_commit_leaves_no_row_behind)
{
    lk_hold hold;
    lk_client *client = world_warm(world_client("sql-unique-forever", &options));
    need_standby(true);
    lk_status status = lk_try_acquire(client, KEY, &hold);
    bool settled = wait_until(nothing_is_owed, client, SOON_MS);
    need_standby(false);
    assert_int_equal(status, LK_UNKNOWN);
    assert_true(settled);
    assert_true(wait_until(waits_no_more, NULL, SOON_MS));
    expect_free(client);
    lk_close(client);
}

int main(void)
{
    world = &family_postgres;
    return tests_run();
}
