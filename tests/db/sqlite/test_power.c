/*
 * Power cuts. Each world is a store on power_vfs.h that lives several lives: orderly ends, kills at
 * any write or flush, flushes that fail, power cuts that become the next life. At random moments an
 * image is taken of what a power cut would leave then. Each image is opened as a next start would:
 *
 *   - SQLite's own check of the file finds nothing, and the audit nothing either;
 *   - every change is there whose answer was given or found stored before that moment; where not
 *     each commit is flushed (DB_SYNC_NORMAL), none that came before one that is there is gone.
 *
 * POWER_IMAGES: how many, by default 600. POWER_SEED: of the first world.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "power_world.h"

enum { LIVES = 6 /* of a world at most */ };

/* The last place is for the end of the life. */
static void at_any_moment(void)
{
    if (world.n_taken < TAKEN - 1 && power_random((uint32_t)world.one_in) == 0)
        take_image();
}

/* Of some lives the flushes fail for a while, most are killed. */
static void plan_life(void)
{
    pthread_mutex_lock(&power_mutex);
    power_thaw();
    power.victim = world.file;
    power.habit = (enum power_habit)power_random(HABITS);
    if (power_loses_all || power_random(3) != 0)
        power.kill_at = 1 + power_random(world.shared ? 900 : 500);
    if (power_random(2) == 0) {
        power.fail_from = 1 + power_random(world.shared ? 100 : 30);
        power.fail_to = power.fail_from + 1 + power_random(6);
    }
    world.one_in = 10 + (int)power_random(40);
    power.moment = at_any_moment;
    pthread_mutex_unlock(&power_mutex);
}

static void live(void)
{

    plan_life();
    if (!open_store())
        return;
    if (world.normal) /* a cut, or a failed flush, may have taken the last ones */
        memset(world.told, 0, sizeof world.told);
    tell_what_is_stored();
    for (int n = 1 + (int)power_random(24); n > 0 && !power.frozen; n--)
        if (world.n_changes + ACCOUNTS <= CHANGES)
            change(1 + (int)power_random(ACCOUNTS));
    if (power_random(3) == 0) { /* killed while it is at rest */
        pthread_mutex_lock(&power_mutex);
        power.frozen = true;
        pthread_mutex_unlock(&power_mutex);
    }
    close_store();
}

/* Returns what is wrong with one of its images; NULL: nothing. */
static const char *run_world(uint64_t seed)
{
    const char *wrong = NULL;
    power_random_state = seed * 0x9e3779b97f4a7c15u + 1;
    world.normal = power_random(6) == 0;
    start_world(!world.normal && power_random(4) == 0);
    for (int i = 0; i < LIVES && wrong == NULL; i++) {
        world.n_taken = 0;
        live();
        power.moment = NULL;
        world.kills += power.frozen;
        take_image();
        for (int j = 0; j < world.n_taken && wrong == NULL; j++)
            if ((wrong = look_at_image(&world.taken[j])) != NULL)
                print_message("seed %llu, life %d, event %llu, shared %d, habit %d: %s\n",
                              (unsigned long long)seed, i, (unsigned long long)world.taken[j].event,
                              world.shared, power.habit, wrong);
        if (power_random(4) == 0) { /* the power fails now */
            power_restore(&world.taken[world.n_taken - 1].image, world.file);
            world.cuts++;
        }
        for (int j = 0; j < world.n_taken; j++)
            power_image_free(&world.taken[j].image);
    }
    power_forget(world.file);
    return wrong;
}

/* -- tests ------------------------------------------------------------------------------------ */

static uint64_t number_or(const char *name, uint64_t other)
{
    const char *value = getenv(name);
    return value ? strtoull(value, NULL, 10) : other;
}

static void what_was_told_survives_a_power_cut(void **state)
{
    (void)state;
    const uint64_t goal = number_or("POWER_IMAGES", 600);
    uint64_t seed = number_or("POWER_SEED", 1), worlds = 0, violations = 0;
    power.slip = SLIP_NONE;
    for (; world.images < goal; seed++, worlds++)
        violations += run_world(seed) != NULL;
    print_message(
        "%llu images of %llu worlds, %llu told changes in them; %llu kills, %llu power "
        "cuts, %llu failed flushes, %llu changes refused, %llu unknown; %llu violations\n",
        (unsigned long long)world.images, (unsigned long long)worlds,
        (unsigned long long)world.told_in_images, (unsigned long long)world.kills,
        (unsigned long long)world.cuts, (unsigned long long)power.flushes_failed,
        (unsigned long long)world.refused, (unsigned long long)world.unknown,
        (unsigned long long)violations);
    assert_true(world.kills > 0 && power.flushes_failed > 0 && world.told_in_images > 0);
    assert_int_equal(0, violations);
}

static void planted_slips_are_found(void **state)
{
    static const char *const names[] = {"", "the log is never flushed", "the file is never flushed",
                                        "nothing is settled"};
    (void)state;
    for (int slip = 1; slip <= SLIP_NOT_SETTLED; slip++) {
        uint64_t seed = 1;
        power.slip = (enum power_slip)slip;
        power_loses_all = true; /* and so soon */
        while (run_world(seed) == NULL)
            assert_true(++seed < 200);
        print_message("%s: found in world %llu\n", names[slip], (unsigned long long)seed);
    }
    power.slip = SLIP_NONE;
    power_loses_all = false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_told_survives_a_power_cut),
        cmocka_unit_test(planted_slips_are_found),
    };
    if (power_install() != SQLITE_OK)
        return 1;
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
