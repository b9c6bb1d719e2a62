/*
 * Power cuts. A world is a store on power_vfs.h with several lives. A life ends cleanly, by a kill
 * at any write or flush, or by a power cut; flushes may fail. On a shared file two processes take
 * turns, and one goes on if the other is killed. At random moments an image of a power cut is
 * taken. Each image is then opened as the next start would open it:
 *
 *   - SQLite's integrity check and the audit find no error;
 *   - every change that was acknowledged or found stored before the image is there. With
 *     DB_SYNC_NORMAL the last changes may be missing, but none before one that is there.
 *
 * POWER_IMAGES: images per test (default 300). POWER_SEED: seed of the first world.
 */
#include <stdint.h>

#include "power_world.h"
#include "tests.h"

enum { LIVES = 6 /* per world, at most */ };

/* Takes an image at random. Leaves places for a sharer that goes on, and one for the life's end. */
static void at_any_moment(void)
{
    const int room = world.other_store ? TAKEN / 2 : TAKEN - 1;
    if (world.n_taken < room && power_random((uint32_t)world.one_in) == 0)
        take_image();
}

/* In some lives flushes fail for a while; most lives are killed. */
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

/* Two sharers take turns until one is killed. */
static void do_changes(void)
{
    for (int n = 1 + (int)power_random(24); n > 0 && !power.frozen; n--) {
        if (world.other_store && power_random(2) == 0)
            switch_store();
        if (world.n_changes + ACCOUNTS <= CHANGES)
            change(1 + (int)power_random(ACCOUNTS));
    }
}

/* The other sharer goes on; it may be killed, too. */
static void go_on(void)
{
    if (power.frozen)
        outlive();
    else { /* the first ends cleanly */
        close_store();
        switch_store();
    }
    power.kill_at = power_random(2) == 0 ? power.events + 1 + power_random(200) : 0;
    tell_what_is_stored();
    do_changes();
}

static void live(void)
{
    power.moment = NULL;
    power_thaw(); /* the other sharer opens without faults */
    if (world.shared && power_random(4) != 0 && open_store())
        switch_store();
    plan_life();
    if (!open_store()) {
        if (!world.other_store)
            return;
        world.kills += power.frozen;
        power_thaw();
        switch_store();
    }
    if (world.normal) /* a power cut or a failed flush may have lost the last changes */
        memset(world.told, 0, sizeof world.told);
    tell_what_is_stored();
    do_changes();
    if (world.other_store) {
        world.kills += power.frozen;
        go_on();
    }
    if (power_random(3) == 0) { /* killed while idle */
        pthread_mutex_lock(&power_mutex);
        power.frozen = true;
        pthread_mutex_unlock(&power_mutex);
    }
    close_store();
}

/* Returns the defect of one of its images; NULL: none. */
static const char *run_world(uint64_t seed, bool shared)
{
    const char *wrong = NULL;
    power_random_state = seed * 0x9e3779b97f4a7c15u + 1;
    world.normal = !shared && power_random(5) == 0;
    start_world(shared);
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

static void run_worlds(bool shared)
{
    uint64_t seed = number_or("POWER_SEED", 1), worlds = 0, violations = 0;
    const uint64_t goal = number_or("POWER_IMAGES", 300);
    const uint64_t failed_before = power.flushes_failed;
    world.images = world.told_in_images = world.kills = world.outlived = world.cuts =
        world.refused = world.unknown = 0;
    power.slip = SLIP_NONE;
    for (; world.images < goal; seed++, worlds++)
        violations += run_world(seed, shared) != NULL;
    const uint64_t failed = power.flushes_failed - failed_before;
    print_message("%llu images of %llu worlds, %llu told changes in them; %llu kills, %llu of them "
                  "outlived, %llu power cuts, %llu failed flushes, %llu changes refused, %llu "
                  "unknown; %llu violations\n",
                  (unsigned long long)world.images, (unsigned long long)worlds,
                  (unsigned long long)world.told_in_images, (unsigned long long)world.kills,
                  (unsigned long long)world.outlived, (unsigned long long)world.cuts,
                  (unsigned long long)failed, (unsigned long long)world.refused,
                  (unsigned long long)world.unknown, (unsigned long long)violations);
    assert_true(world.kills > 0 && failed > 0 && world.told_in_images > 0);
    assert_true(!shared || world.outlived > 0);
    assert_int_equal(0, violations);
}

GROUP_FIXTURE(make_folder, remove_folder);

TEST_THAT(what_was_told_survives_a_power_cut)
{
    run_worlds(false);
}

TEST_THAT(what_a_sharer_told_survives_a_power_cut)
{
    run_worlds(true);
}

TEST_THAT(planted_slips_are_found)
{
    static const struct {
        const char *name;
        enum power_slip slip;
        bool shared, parts; /* parts: a power cut loses part of the unflushed data; false: all */
    } slips[] = {{"the log is never flushed", SLIP_LOG_NEVER_FLUSHED, false, false},
                 {"the file is never flushed", SLIP_FILE_NEVER_FLUSHED, false, false},
                 {"nothing is settled", SLIP_NOT_SETTLED, false, false},
                 {"a shared file is never flushed", SLIP_FILE_NEVER_FLUSHED, true, false},
                 {"a shared file's journal is never flushed", SLIP_LOG_NEVER_FLUSHED, true, true},
                 {"a killed sharer leaves no mark", SLIP_NOT_MARKED, true, false},
                 {"what a killed sharer left is not settled", SLIP_NOT_SETTLED, true, false}};
    for (size_t i = 0; i < sizeof slips / sizeof *slips; i++) {
        uint64_t seed = 1;
        power.slip = slips[i].slip;
        power_loses_all = !slips[i].parts;
        while (run_world(seed, slips[i].shared) == NULL)
            assert_true(++seed < 200);
        print_message("%s: found in world %llu\n", slips[i].name, (unsigned long long)seed);
    }
    power.slip = SLIP_NONE;
    power_loses_all = false;
}

int main(void)
{
    if (power_install() != SQLITE_OK)
        return 1;
    return tests_run();
}
