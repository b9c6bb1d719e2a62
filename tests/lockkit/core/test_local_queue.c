/* The local queue of a client's waiters: lk_options.local_queue. */
#include "line_rig.h"
#include "process.h"
#include "tests.h"
#include "tries.h"
#include <string.h>

enum { TRIES = 10, QUICK_MS = 2 };

static const lk_options patient = {.retry_min_ms = LINE_FAR_MS, .retry_max_ms = LINE_FAR_MS};
static const lk_options quick = {.retry_max_ms = QUICK_MS};

TEST_THAT(only_the_first_in_line_asks_the_server)
{
    line_open(quick);
    line.client->env.point = tries_note;
    tries_begin(LINE_KEY);
    fake_take(&line.fake, LINE_KEY, "another process", 0);
    for (int i = 0; i < LINE_MAX_WAITERS; i++)
        line_join(LINE_FAR_MS, 0);
    int enough = tries_made() + TRIES; /* all are in the queue now */
    assert_true(wait_until(tries_reached, &enough, LINE_PATIENCE_MS));
    int threads = tries_threads();
    fake_free(&line.fake, LINE_KEY);
    line_serve_all();
    assert_int_equal(threads, 1);
}

TEST_THAT(the_line_is_served_in_order_of_arrival)
{
    line_open(quick);
    assert_int_equal(line_take(0), LK_OK);
    for (int i = 0; i < LINE_MAX_WAITERS; i++)
        line_join(LINE_FAR_MS, 0);
    uint64_t fence = line.hold.fence;
    assert_int_equal(lk_release(&line.hold), LK_OK);
    line_serve_all();
    for (int i = 0; i < LINE_MAX_WAITERS; i++)
        assert_int_equal(line.waiters[i].hold.fence, ++fence);
}

TEST_THAT(a_release_wakes_the_first_out_of_its_back_off)
{
    line_open(patient);
    assert_int_equal(line_take(0), LK_OK);
    struct asker *first = line_join(10 * LINE_FAR_MS, 0), *second = line_join(10 * LINE_FAR_MS, 0);
    assert_int_equal(lk_release(&line.hold), LK_OK);
    assert_true(wait_until(line_has_ended, first, LINE_PATIENCE_MS));
    assert_int_equal(asker_join(first), LK_OK);
    assert_false(asker_ended(second)); /* only the first */
    assert_int_equal(lk_release(&first->hold), LK_OK);
    assert_true(wait_until(line_has_ended, second, LINE_PATIENCE_MS));
    assert_int_equal(asker_join(second), LK_OK);
    assert_int_equal(second->hold.attempts, 1); /* asked once, after its wake-up */
    assert_int_equal(lk_release(&second->hold), LK_OK);
    lk_close(line.client);
}

/* The queue does not hide that a lost lock lets in a second holder. */
TEST_THAT(a_lock_that_vanished_lets_the_next_in_beside_its_holder)
{
    line_open(quick);
    assert_int_equal(line_take(0), LK_OK);
    struct asker *first = line_join(LINE_FAR_MS, 0), *second = line_join(LINE_FAR_MS, 0);
    fake_free(&line.fake, LINE_KEY);
    assert_true(wait_until(line_has_ended, first, LINE_PATIENCE_MS));
    fake_free(&line.fake, LINE_KEY); /* the second is now first and polls by itself */
    assert_true(wait_until(line_has_ended, second, LINE_PATIENCE_MS));
    assert_int_equal(asker_join(first), LK_OK);
    assert_int_equal(asker_join(second), LK_OK);
    assert_int_equal(lk_check(&line.hold, NULL), LK_OK); /* the loss is not known yet */
    assert_int_equal(lk_release(&line.hold), LK_LOST);
    assert_int_equal(lk_release(&first->hold), LK_LOST);
    assert_int_equal(lk_release(&second->hold), LK_OK);
    lk_close(line.client);
}

/* -- leaving ------------------------------------------------------------------------------------
 */

TEST_THAT(a_waiter_leaves_the_line_at_its_deadline_after_one_try)
{
    enum { WAIT_MS = 2000 };
    line_open(patient);
    assert_int_equal(line_take(0), LK_OK);
    struct asker *first = line_join(10 * LINE_FAR_MS, 0), *second = line_join(WAIT_MS, 0),
                 *third = line_join(10 * LINE_FAR_MS, 0);
    assert_int_equal(asker_join(second), LK_TIMEOUT);
    assert_true(second->took_ms >= WAIT_MS);
    assert_int_equal(second->hold.attempts, 1);
    assert_int_equal(local_queue_sleepers(line.client, LINE_KEY), 2);
    assert_int_equal(lk_release(&line.hold), LK_OK); /* the queue is still linked correctly */
    assert_int_equal(asker_join(first), LK_OK);
    assert_int_equal(lk_release(&first->hold), LK_OK);
    assert_int_equal(asker_join(third), LK_OK);
    assert_int_equal(lk_release(&third->hold), LK_OK);
    lk_close(line.client);
}

static bool asked_thrice(void *arg)
{
    (void)arg;
    return line_stats().attempts >= 3;
}

TEST_THAT(a_first_that_gives_up_makes_the_next_one_ask)
{
    line_open(patient);
    fake_take(&line.fake, LINE_KEY, "another process", 0);
    struct asker *first = line_join(2000, 0), *second = line_join(10 * LINE_FAR_MS, 0);
    assert_int_equal(asker_join(first), LK_TIMEOUT);
    assert_int_equal(first->hold.attempts, 2);
    assert_true(wait_until(asked_thrice, NULL, LINE_PATIENCE_MS));
    fake_free(&line.fake, LINE_KEY);
    assert_int_equal(line_take(0), LK_OK);
    assert_int_equal(lk_release(&line.hold), LK_OK); /* wakes the first waiter */
    assert_int_equal(asker_join(second), LK_OK);
    assert_int_equal(lk_release(&second->hold), LK_OK);
    lk_close(line.client);
}

static atomic_bool is_away;

static enum fake_fault away(struct fake *fake, enum fake_call call, uint64_t n)
{
    (void)fake;
    (void)n;
    return call == FAKE_TRY && atomic_load(&is_away) ? FAKE_AWAY : FAKE_NONE;
}

static bool was_refused(void *arg)
{
    (void)arg;
    return line_stats().refusals > 0;
}

/* A waiter does not wait for the timeouts of the waiters before it. */
TEST_THAT(a_server_that_is_away_is_told_to_the_whole_line)
{
    /* The first polls soon; the others would not poll for minutes. */
    line_open((lk_options){.retry_min_ms = 1, .retry_max_ms = LINE_FAR_MS, .spin_us = -1});
    line.fake.fault = away;
    assert_int_equal(line_take(0), LK_OK);
    for (int i = 0; i < LINE_MAX_WAITERS; i++)
        line_join(10 * LINE_FAR_MS, 0);
    assert_true(wait_until(was_refused, NULL, LINE_PATIENCE_MS));
    atomic_store(&is_away, true);
    for (int i = 1; i < LINE_MAX_WAITERS; i++)
        assert_int_equal(asker_join(&line.waiters[i]), LK_UNAVAILABLE);
    assert_false(asker_ended(&line.waiters[0])); /* the server went away during its wait */
    atomic_store(&is_away, false);
    assert_int_equal(lk_release(&line.hold), LK_OK);
    assert_int_equal(asker_join(&line.waiters[0]), LK_OK);
    assert_int_equal(lk_release(&line.waiters[0].hold), LK_OK);
    lk_close(line.client);
}

/* -- requests that do not queue -----------------------------------------------------------------
 */

/* A single try, and an owner that may hold the key already, must not queue behind others. */
TEST_THAT(no_wait_and_an_owner_pass_the_line)
{
    lk_hold hold;
    line_open(patient);
    fake_take(&line.fake, LINE_KEY, "another process", 0);
    struct asker *first = line_join(10 * LINE_FAR_MS, 0);
    assert_int_equal(line_take(0), LK_TIMEOUT);
    assert_true(wait_until(was_refused, NULL, LINE_PATIENCE_MS));
    fake_free(&line.fake, LINE_KEY);
    lk_request request = {.key = LINE_KEY, .owner = "worker-1", .wait_ms = 10 * LINE_FAR_MS};
    assert_int_equal(lk_acquire(line.client, &request, &hold), LK_OK);
    assert_int_equal(hold.attempts, 1);
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_int_equal(asker_join(first), LK_OK);
    assert_int_equal(lk_release(&first->hold), LK_OK);
    lk_close(line.client);
}

static bool has_line(uint32_t caps)
{
    struct fake fake;
    lk_provider provider = fake_provider;
    provider.info.caps = caps;
    fake_init(&fake, 7);
    lk_client *client = fake_open(&fake, &provider, &(lk_options){.local_queue = true});
    bool has = client->queue != NULL;
    lk_close(client);
    return has;
}

TEST_THAT(a_guard_that_is_fair_or_knows_no_owner_has_no_line)
{
    uint32_t caps = fake_provider.info.caps;
    assert_true(has_line(caps));
    assert_false(has_line(caps | LK_CAP_FAIR));
    assert_false(has_line(caps & ~(uint32_t)LK_CAP_OWNER));
}
