/* redis-readwrite: readers together, a writer alone, a lease for each, on Redisson's keys. */
#include "lock_hooks.h"
#include "lateness.h"
#include "lock_world.h"
#include "process.h"
#include "tests.h"
#include "two_clients.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD   "redis-readwrite"
#define KEY     "lock:item:1"
#define CHANNEL "redisson_rwlock:{lock:item:1}"
/* A thread of a Redisson client; it has entered twice. */
#define REDISSON "285475da-9152-4c83-822a-67ee2f116a79:52"
#define TIMEOUT  "{" KEY "}:" REDISSON ":rwlock_timeout"

enum { LONG_MS = 20000, SOON_MS = 2000, SHORT_MS = 300, READERS = 8 };

static int open_clients(void **state)
{
    (void)state;
    return two_clients_open(GUARD);
}

static lk_status enter(lk_client *by, lk_mode mode, int64_t lease_ms, int64_t wait_ms,
                       lk_hold *hold)
{
    lk_request request = {.key = KEY, .mode = mode, .lease_ms = lease_ms, .wait_ms = wait_ms};
    return lk_acquire(by, &request, hold);
}

#define READ(by, hold)  enter((by), LK_SHARED, 0, 0, (hold))
#define WRITE(by, hold) enter((by), LK_EXCLUSIVE, 0, 0, (hold))

/* -- exclusion ----------------------------------------------------------------------------------
 */

GROUP_FIXTURE(world_open, world_close);
TEST_FIXTURE(open_clients, two_clients_close);

TEST_THAT(readers_share_and_keep_a_writer_out)
{
    lk_hold readers[READERS], writer;
    for (int i = 0; i < READERS; i++)
        assert_int_equal(READ(i % 2 ? client : other, &readers[i]), LK_OK);
    for (int i = 0; i < READERS; i++) {
        assert_int_equal(WRITE(client, &writer), LK_TIMEOUT);
        assert_int_equal(lk_release(&readers[i]), LK_OK);
    }
    assert_int_equal(WRITE(client, &writer), LK_OK);
    assert_int_equal(lk_release(&writer), LK_OK);
    assert_int_equal(world_ask("DBSIZE"), 1); /* the fence counter */
}

TEST_THAT(writer_keeps_readers_and_writers_out)
{
    lk_hold writer, second;
    assert_int_equal(WRITE(client, &writer), LK_OK);
    assert_int_equal(READ(other, &second), LK_TIMEOUT);
    assert_int_equal(WRITE(other, &second), LK_TIMEOUT);
    assert_int_equal(READ(client, &second), LK_TIMEOUT); /* no downgrade either */
    assert_int_equal(lk_release(&writer), LK_OK);
    assert_int_equal(READ(other, &second), LK_OK);
    assert_int_equal(WRITE(other, &writer), LK_TIMEOUT); /* no upgrade */
    assert_int_equal(lk_release(&second), LK_OK);
}

TEST_THAT(fences_rise_over_readers_and_writers)
{
    lk_hold first, second, writer;
    assert_int_equal(READ(client, &first), LK_OK);
    assert_int_equal(READ(other, &second), LK_OK);
    assert_true(second.fence > first.fence);
    lk_release(&first);
    lk_release(&second);
    assert_int_equal(WRITE(client, &writer), LK_OK);
    assert_true(writer.fence > second.fence);
    lk_release(&writer);
}

TEST_THAT(lock_of_another_kind_keeps_both_modes_out_and_is_left_alone)
{
    lk_hold hold;
    world_ask("SET " KEY " somebody PX %d", LONG_MS);
    assert_int_equal(READ(client, &hold), LK_TIMEOUT);
    assert_int_equal(WRITE(client, &hold), LK_TIMEOUT);
    assert_int_equal(world_ask("STRLEN " KEY), strlen("somebody"));
    world_ask("DEL " KEY);
    world_ask("HSET " KEY " owner 1"); /* a key of redis-reentrant: a hash without a mode */
    assert_int_equal(READ(client, &hold), LK_TIMEOUT);
    assert_int_equal(world_ask("HLEN " KEY), 1);
}

TEST_THAT(reader_who_waits_for_a_lock_of_another_kind_comes_when_its_lease_ends)
{
    lk_hold hold;
    world_ask("SET " KEY " somebody PX %d", SHORT_MS);
    int64_t start_ms = test_now_ms();
    assert_int_equal(enter(client, LK_SHARED, 0, LONG_MS, &hold), LK_OK);
    assert_true(ended_within(start_ms, SHORT_MS + SOON_MS));
    assert_int_equal(lk_release(&hold), LK_OK);
}

/* -- leases -------------------------------------------------------------------------------------
 */

TEST_THAT(lock_lives_as_long_as_the_longest_reader)
{
    lk_hold brief, lasting;
    assert_int_equal(enter(client, LK_SHARED, LONG_MS, 0, &lasting), LK_OK);
    assert_int_equal(enter(other, LK_SHARED, SOON_MS, 0, &brief), LK_OK);
    assert_true(world_ask("PTTL " KEY) > SOON_MS);
    assert_int_equal(lk_release(&lasting), LK_OK);
    assert_in_range(world_ask("PTTL " KEY), 1, SOON_MS);
    assert_int_equal(lk_extend(&brief, LONG_MS), LK_OK);
    assert_true(world_ask("PTTL " KEY) > SOON_MS);
    assert_int_equal(lk_release(&brief), LK_OK);
}

TEST_THAT(reader_who_shortens_its_lease_leaves_the_others_theirs)
{
    lk_hold a, b;
    assert_int_equal(enter(client, LK_SHARED, LONG_MS, 0, &a), LK_OK);
    assert_int_equal(enter(other, LK_SHARED, LONG_MS, 0, &b), LK_OK);
    assert_int_equal(lk_extend(&a, SOON_MS), LK_OK);
    assert_true(world_ask("PTTL " KEY) > SOON_MS);
    assert_int_equal(lk_extend(&b, SOON_MS), LK_OK);
    assert_in_range(world_ask("PTTL " KEY), 1, SOON_MS);
    lk_release(&a);
    lk_release(&b);
}

/* B's lease ends while A still reads. B must learn it, and must not delay a writer after A has
 * left. */
TEST_THAT(reader_whose_time_is_over_is_told_so_and_holds_nobody_up)
{
    lk_hold a, b, writer;
    char timeout[512];
    assert_int_equal(READ(client, &a), LK_OK);
    assert_int_equal(enter(other, LK_SHARED, SHORT_MS, 0, &b), LK_OK);
    snprintf(timeout, sizeof timeout, "{" KEY "}:%s:rwlock_timeout:1", b.token);
    assert_int_equal(world_ask("EXISTS %s", timeout), 1);
    assert_int_equal(lk_confirm(&b), LK_OK);
    assert_true(world_becomes(0, SOON_MS, "EXISTS %s", timeout));
    assert_int_equal(lk_confirm(&b), LK_LOST);
    assert_int_equal(lk_confirm(&a), LK_OK);
    assert_int_equal(WRITE(other, &writer), LK_TIMEOUT);
    assert_int_equal(lk_release(&a), LK_OK);
    assert_int_equal(WRITE(other, &writer), LK_OK);
    assert_int_equal(lk_release(&b), LK_LOST);
    assert_int_equal(lk_confirm(&writer), LK_OK);
    assert_int_equal(lk_release(&writer), LK_OK);
}

TEST_THAT(late_release_of_a_reader_tidies_up_and_keeps_the_others)
{
    lk_hold a, b, writer;
    assert_int_equal(READ(client, &a), LK_OK);
    assert_int_equal(enter(other, LK_SHARED, SHORT_MS, 0, &b), LK_OK);
    assert_true(world_becomes(3, SOON_MS, "DBSIZE")); /* lock, counter, a's lease */
    assert_int_equal(lk_release(&b), LK_LOST);
    assert_int_equal(world_ask("HLEN " KEY), 2); /* mode, a */
    assert_true(world_ask("PTTL " KEY) > SOON_MS);
    assert_int_equal(WRITE(other, &writer), LK_TIMEOUT);
    assert_int_equal(lk_release(&a), LK_OK);
}

/* -- Redisson -----------------------------------------------------------------------------------
 */

/* The hash has this value in the field. */
static void expect_field(const char *want, const char *field)
{
    char text[64];
    world_ask_text(text, sizeof text, "HGET " KEY " %s", field);
    assert_string_equal(text, want);
}

TEST_THAT(holders_stand_where_redisson_looks_for_them)
{
    lk_hold hold;
    assert_int_equal(READ(client, &hold), LK_OK);
    expect_field("read", "mode");
    expect_field("1", hold.token);
    assert_int_equal(world_ask("EXISTS {" KEY "}:%s:rwlock_timeout:1", hold.token), 1);
    assert_int_equal(world_ask("HLEN " KEY), 2); /* as its unlocking counts */
    assert_int_equal(lk_release(&hold), LK_OK);
    assert_int_equal(WRITE(client, &hold), LK_OK);
    expect_field("write", "mode");
    assert_int_equal(world_ask("HEXISTS " KEY " %s:write", hold.token), 1);
    assert_int_equal(world_ask("HLEN " KEY), 2);
    assert_int_equal(lk_release(&hold), LK_OK);
}

TEST_THAT(reader_of_redisson_is_joined_and_keeps_its_lease)
{
    lk_hold reader, writer;
    world_ask("HSET " KEY " mode read " REDISSON " 2");
    world_ask("PEXPIRE " KEY " %d", SOON_MS);
    world_ask("SET " TIMEOUT ":1 1 PX %d", SHORT_MS);
    world_ask("SET " TIMEOUT ":2 1 PX %d", SOON_MS);
    assert_int_equal(READ(client, &reader), LK_OK);
    assert_int_equal(WRITE(client, &writer), LK_TIMEOUT);
    assert_int_equal(lk_release(&reader), LK_OK);
    expect_field("2", REDISSON);
    assert_in_range(world_ask("PTTL " KEY), 1, SOON_MS);
    assert_int_equal(WRITE(client, &writer), LK_TIMEOUT);
    assert_int_equal(enter(client, LK_EXCLUSIVE, 0, LONG_MS, &writer), LK_OK); /* its lease ends */
    assert_int_equal(lk_release(&writer), LK_OK);
}

/* Such a number comes from another program, or is another guard's fence; it is no count of entries.
 */
TEST_THAT(large_numbers_in_a_hash_do_not_hold_redis_up)
{
    lk_lock_info info;
    lk_hold writer;
    world_ask("HSET " KEY " mode read " REDISSON " 1 #fence 1000000000000");
    world_ask("SET " TIMEOUT ":1 1 PX %d", LONG_MS);
    assert_int_equal(lk_inspect(client, KEY, &info), LK_OK);
    assert_int_equal(info.holders, 1);
    assert_int_equal(lk_force_release(client, KEY), LK_OK);
    assert_int_equal(world_ask("EXISTS " TIMEOUT ":1"), 0);
    assert_int_equal(WRITE(client, &writer), LK_OK);
    assert_int_equal(lk_release(&writer), LK_OK);
}

TEST_THAT(writer_of_redisson_is_waited_for_and_its_message_heard)
{
    struct hooked hooked;
    lk_client *waiting = world_client(GUARD, &(lk_options){.env = hook(&hooked)});
    struct asker reader = {.client = waiting, .key = KEY, .mode = LK_SHARED, .wait_ms = LONG_MS};
    world_ask("HSET " KEY " mode write " REDISSON ":write 1");
    world_ask("PEXPIRE " KEY " %d", LONG_MS);
    asker_start(&reader);
    assert_true(wait_until(refused_twice, &hooked, LONG_MS));
    int64_t start_ms = test_now_ms();
    world_ask("DEL " KEY);
    assert_int_equal(world_ask("PUBLISH " CHANNEL " 1"), 1);
    assert_int_equal(asker_join(&reader), LK_OK);
    assert_true(ended_within(start_ms, SOON_MS));
    assert_int_equal(lk_release(&reader.hold), LK_OK);
    lk_close(waiting);
}
