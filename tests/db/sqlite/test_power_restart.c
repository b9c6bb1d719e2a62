/* A killed or failed process leaves unflushed data in the log. The next process flushes them
 * (db/sqlite/sqlite_reflush.c) before it reports them or writes behind them. */
#include <stdint.h>

#include "power_world.h"
#include "tests.h"

/* Both functions return the defect after a power cut; NULL: none. */

static const char *killed_before_its_flush(void)
{
    start_world(false);
    assert_true(open_store());
    change(1);
    power.kill_at_flush = 1;
    change(1);
    close_store();
    assert_true(power.frozen);
    assert_false(world.told[1]);

    power_thaw();
    assert_true(open_store());
    tell_what_is_stored();
    assert_true(world.told[1]); /* read from the kernel's cache */
    const char *wrong = look_after_cut();
    close_store();
    power_forget(world.file);
    return wrong;
}

static const char *written_behind_a_failed_flush(void)
{
    start_world(false);
    assert_true(open_store());
    change(1);
    power.habit = HABIT_CLEAN;
    power.fail_from = power.flushes + 1;
    power.fail_to = UINT64_MAX;
    change(1);
    assert_false(world.told[1]);
    close_store();

    power_thaw(); /* the disk works again */
    assert_true(open_store());
    change(1);
    assert_true(world.told[2]);
    const char *wrong = look_after_cut();
    close_store();
    power_forget(world.file);
    return wrong;
}

TEST_THAT(a_commit_killed_before_its_flush_is_flushed_by_the_next_start)
{
    assert_null(killed_before_its_flush());
}

TEST_THAT(nothing_is_appended_behind_what_a_failed_flush_has_lost)
{
    assert_null(written_behind_a_failed_flush());
}

TEST_THAT(without_settling_both_are_lost)
{
    power.slip = SLIP_NOT_SETTLED;
    assert_non_null(killed_before_its_flush());
    assert_non_null(written_behind_a_failed_flush());
}

/* The kernel marks the pages that it could not write as clean. */
TEST_THAT(a_flush_alone_settles_only_what_was_not_flushed)
{
    power.slip = SLIP_ONLY_FLUSHED;
    assert_null(killed_before_its_flush());
    assert_non_null(written_behind_a_failed_flush());
}

/* Opens two sharers. In most tests one is killed in its commit at its fourth flush, that of the
 * journal's end. This end is written, so others see the commit; it is not flushed, so after a power
 * cut the commit would be undone. */
static void start_sharers(void)
{
    start_world(true);
    assert_true(open_store());
    switch_store();
    assert_true(open_store());
}

static void end_sharers(void)
{
    close_store();
    if (world.other_store) {
        switch_store();
        close_store();
    }
    power_forget(world.file);
}

/* Each function returns the defect after a power cut; NULL: none. */

static const char *told_by_a_sharer_that_goes_on(void)
{
    start_sharers();
    power.kill_at_flush = 4;
    change(1);
    assert_true(power.frozen);
    assert_false(world.told[0]);
    outlive();
    tell_what_is_stored();
    assert_true(world.told[0]);
    const char *wrong = look_after_cut();
    end_sharers();
    return wrong;
}

static const char *told_by_a_sharer_beside_a_failed_flush(void)
{
    start_sharers();
    power.habit = HABIT_CLEAN;
    power.fail_from = power.flushes + 4;
    power.fail_to = power.fail_from + 1;
    change(1);
    assert_int_equal(1, world.unknown);
    switch_store();
    tell_what_is_stored();
    assert_true(world.told[0]);
    const char *wrong = look_after_cut();
    end_sharers();
    return wrong;
}

/* The other sharer's own commit is killed at the nth write or flush. */
static const char *cut_within_the_next_commit(uint64_t n, bool *ret_done)
{
    start_sharers();
    power.kill_at_flush = 4;
    change(ACCOUNTS);
    outlive();
    power.kill_at = n;
    change(1);
    *ret_done = !power.frozen;
    const char *wrong = look_after_cut();
    end_sharers();
    return wrong;
}

static const char *cut_within_any_next_commit(void)
{
    bool done = false;
    const char *wrong = NULL;
    power_loses_all = false;
    power_random_state = 1;
    for (uint64_t n = 1; !done && wrong == NULL; n++)
        for (int parts = 0; parts < 3 && wrong == NULL; parts++)
            wrong = cut_within_the_next_commit(n, &done);
    power_loses_all = true;
    return wrong;
}

TEST_THAT(a_sharer_flushes_what_another_one_left_before_it_goes_on)
{
    assert_null(told_by_a_sharer_that_goes_on());
    world.unknown = 0;
    assert_null(told_by_a_sharer_beside_a_failed_flush());
    assert_null(cut_within_any_next_commit());
}

TEST_THAT(without_the_mark_it_tells_and_damages)
{
    power.slip = SLIP_NOT_MARKED;
    assert_non_null(told_by_a_sharer_that_goes_on());
    assert_non_null(cut_within_any_next_commit());
}

TEST_THAT(a_sharer_that_joins_flushes_what_a_killed_one_left)
{
    start_sharers();
    power.kill_at_flush = 4;
    change(1);
    assert_true(power.frozen);
    close_store();
    power_thaw(); /* the other sharer was idle meanwhile */
    assert_true(open_store());
    tell_what_is_stored();
    assert_true(world.told[0]);
    assert_null(look_after_cut());
    end_sharers();
}

TEST_THAT(what_cannot_be_flushed_is_not_opened)
{
    start_world(false);
    assert_true(open_store());
    change(1);
    power.frozen = true;
    close_store();
    power_thaw();
    power.fail_from = 1;
    power.fail_to = UINT64_MAX;
    power.habit = HABIT_CLEAN;
    assert_false(open_store());
    assert_true(power.flushes_failed > 0);
    power_thaw();
    assert_true(open_store());
    tell_what_is_stored();
    assert_true(world.told[0]);
    assert_null(look_after_cut());
    close_store();
    power_forget(world.file);
}

TEST_THAT(an_empty_log_is_no_log)
{
    char name[POWER_NAME];
    start_world(false);
    snprintf(name, sizeof name, "%s-wal", world.file);
    power_create(name)->on_disk = true;
    assert_true(open_store());
    change(1);
    assert_true(world.told[0]);
    assert_null(look_after_cut());
    close_store();
    power_forget(world.file);
}

TEST_THAT(the_log_of_another_program_is_not_touched)
{
    sqlite3 *handle;
    power.victim = world.file;
    assert_int_equal(SQLITE_OK, sqlite3_open(world.file, &handle));
    assert_int_equal(SQLITE_OK, sqlite3_exec(handle, "PRAGMA journal_mode = WAL; CREATE TABLE t(a)",
                                             NULL, NULL, NULL));
    const uint64_t events = power.events;
    assert_false(open_store());
    assert_int_equal(events, power.events);
    sqlite3_close(handle);
    power_forget(world.file);
}

static int setup(void **state)
{
    power.slip = SLIP_NONE;
    power_loses_all = true;
    return make_folder(state);
}

TEST_FIXTURE(setup, remove_folder);

int main(void)
{
    if (power_install() != SQLITE_OK)
        return 1;
    return tests_run();
}
