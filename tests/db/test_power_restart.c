/* What a killed or failed process leaves in the log is put on the disk by the next one
 * (db/sqlite_settle.c), before anything is told of it or written behind it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "power_world.h"

static void a_commit_killed_before_its_flush_is_flushed_by_the_next_start(void **state)
{
    (void)state;
    power_loses_all = true;
    start_world(false);
    assert_true(open_store());
    change(1);
    pthread_mutex_lock(&power_mutex);
    power.kill_at_flush = true;
    pthread_mutex_unlock(&power_mutex);
    change(1);
    close_store();
    assert_true(power.frozen);
    assert_false(world.told[1]);

    power_thaw();
    assert_true(open_store());
    tell_what_is_stored();
    assert_true(world.told[1]); /* as the kernel has it */
    assert_null(look_after_cut());
    close_store();
    power_forget(world.file);
    power_loses_all = false;
}

static void nothing_is_appended_behind_what_a_failed_flush_has_lost(void **state)
{
    (void)state;
    power_loses_all = true;
    start_world(false);
    assert_true(open_store());
    change(1);
    power.habit = HABIT_CLEAN;
    power.fail_from = power.flushes + 1;
    power.fail_to = UINT64_MAX;
    change(1);
    assert_int_equal(1, world.unknown);
    close_store();

    power_thaw(); /* the disk is well again */
    assert_true(open_store());
    change(1);
    assert_true(world.told[2]);
    assert_null(look_after_cut());
    close_store();
    power_forget(world.file);
    power_loses_all = false;
    world.unknown = 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_commit_killed_before_its_flush_is_flushed_by_the_next_start),
        TEST(nothing_is_appended_behind_what_a_failed_flush_has_lost),
    };
    if (power_install() != SQLITE_OK)
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
