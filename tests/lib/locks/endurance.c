#include "endurance.h"
#include "lock_series.h"
#include "process.h"
#include "tests.h"

#include <stdio.h>

enum { GUARDS_MAX = 16, KEY_MAX = 32 };

static const lk_provider_info *guard_at(size_t i)
{
    return i < GUARDS_MAX && world->guards[i] != NULL ? lk_provider_find(world->guards[i]) : NULL;
}

/* All guards run at once, so that the test takes no longer than one guard. */
static void contenders_of_every_guard_exclude_each_other(void **state)
{
    (void)state;
    static struct contest contests[GUARDS_MAX];
    static char keys[GUARDS_MAX][KEY_MAX];
    world->wipe();
    for (size_t i = 0; guard_at(i) != NULL; i++) {
        snprintf(keys[i], KEY_MAX, "lock:item:%zu", i);
        contest_start(&contests[i], guard_at(i), keys[i], test_size(1000, 30000));
    }
    for (size_t i = 0; guard_at(i) != NULL; i++)
        if (!contest_join(&contests[i]))
            fail_msg("%s: two were inside at once", guard_at(i)->name);
}

static void fences_rise_with_every_grant(void **state)
{
    (void)state;
    int64_t grants = world->fast ? test_size(16000, 1000000) : test_size(800, 20000);
    for (size_t i = 0; guard_at(i) != NULL; i++) {
        world->wipe();
        if ((guard_at(i)->caps & LK_CAP_FENCE) != 0 && !series_fences_rise(guard_at(i), grants))
            fail_msg("%s: a fence did not rise", guard_at(i)->name);
    }
}

static void many_pairs_leave_nothing_behind(void **state)
{
    (void)state;
    for (size_t i = 0; guard_at(i) != NULL; i++) {
        world->wipe();
        series_leaves_nothing(guard_at(i), test_size(world->fast ? 4000 : 400, 100000));
    }
}

int endurance_main(const struct lock_family *family, int parts)
{
    static const struct CMUnitTest all[] = {
        cmocka_unit_test(contenders_of_every_guard_exclude_each_other),
        cmocka_unit_test(fences_rise_with_every_grant),
        cmocka_unit_test(many_pairs_leave_nothing_behind),
    };
    struct CMUnitTest tests[sizeof all / sizeof all[0]];
    size_t n = 0;
    for (int i = 0; i < (int)(sizeof all / sizeof all[0]); i++)
        if ((parts & 1 << i) != 0)
            tests[n++] = all[i];
    world = family;
    return _cmocka_run_group_tests(family->name, tests, n, world_open, world_close);
}
