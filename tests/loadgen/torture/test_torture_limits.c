/* What a round of torture allows: more time on a busy machine, and an archive that fails with its
 * server. The archives are commands that fail. */
#include "steady.h"
#include "torture_archive.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/test-torture-XXXXXX";

/* -- time -------------------------------------------------------------------------------------- */

TEST_THAT(a_thread_that_never_waits_for_a_core_is_not_slowed)
{
    const struct torture_pace since = {1000, 500}, until = {3000, 500};
    assert_true(torture_slowdown_of(&since, &until) == 1);
}

TEST_THAT(a_thread_that_waits_twice_as_long_as_it_runs_is_three_times_slower)
{
    const struct torture_pace since = {1000, 500}, until = {3000, 4500};
    assert_true(torture_slowdown_of(&since, &until) == 3);
}

TEST_THAT(a_slowdown_has_a_bound)
{
    const struct torture_pace since = {0, 0}, until = {1, INT64_MAX / 2};
    assert_true(torture_slowdown_of(&since, &until) == TORTURE_SLOWDOWN_MAX);
}

TEST_THAT(a_kernel_that_does_not_tell_gives_no_extra_time)
{
    const struct torture_pace none = {0, 0};
    assert_true(torture_slowdown_of(&none, &none) == 1);
}

TEST_THAT(the_kernel_tells_of_the_calling_thread)
{
    struct torture_pace pace;
    torture_pace_begin(&pace);
    assert_true(pace.run_ns > 0);
    assert_true(torture_slowdown(&pace) >= 1);
}

/* -- archives ---------------------------------------------------------------------------------- */

static struct torture_plan plan = {.is.postgres = true};
static struct sandbox_server database;

/* A command that ends as the text says. */
static void write_command(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", text);
    assert_int_equal(0, fclose(file));
    assert_int_equal(0, chmod(path, 0700));
}

enum machine { IDLE, BUSY };

/* Since the archive began. */
static void set_machine(struct torture_archive *archive, enum machine machine)
{
    torture_pace_begin(&archive->pace);
    if (machine == IDLE)
        archive->pace.run_ns += INT64_MAX / 2;
    else
        archive->pace.wait_ns -= INT64_MAX / 2;
}

static struct torture_archive run_archive(const char *text, enum torture_state state,
                                          enum machine machine)
{
    char command[64];
    snprintf(command, sizeof command, "%s/command", folder);
    write_command(command, text);
    struct torture_world world = {.plan = &plan, .seckilld = command, .shim = ""};
    snprintf(world.dir, sizeof world.dir, "%s", folder);
    world.postgres = (struct torture_process){.server = &database, .state = state};
    assert_true(torture_archive_begin(&world, false));
    set_machine(&world.archive, machine);
    while (!torture_archive_look(&world))
        steady_sleep_ms(1);
    return world.archive;
}

TEST_THAT(an_archive_is_broken_unless_its_server_or_a_busy_machine_excuses_it)
{
    static const struct {
        const char *ends_with;
        enum torture_state server;
        enum machine machine;
        int ended, failed, broken;
    } cases[] = {
        {"exit 0", RUNS, IDLE, 1, 0, 0},        {"exit 1", RUNS, IDLE, 0, 1, 1},
        {"exit 1", DOWN, IDLE, 0, 1, 0},        {"exit 1", RUNS, BUSY, 0, 1, 0},
        {"exit 2", DOWN, BUSY, 0, 1, 1}, /* it calls its file foreign */
        {"kill -SEGV $$", DOWN, BUSY, 0, 1, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct torture_archive archive =
            run_archive(cases[i].ends_with, cases[i].server, cases[i].machine);
        if (archive.ended != cases[i].ended || archive.failed != cases[i].failed ||
            archive.broken != cases[i].broken)
            fail_msg("case %zu: %d ended, %d failed, %d broken", i, (int)archive.ended,
                     (int)archive.failed, (int)archive.broken);
    }
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int remove_folder(void **state)
{
    char path[64];
    (void)state;
    snprintf(path, sizeof path, "%s/command", folder);
    unlink(path);
    snprintf(path, sizeof path, "%s/archive.log", folder);
    unlink(path);
    return rmdir(folder);
}

GROUP_FIXTURE(make_folder, remove_folder);
