/* .ci/check-layers finds each way to break the table .layers. In copies of the sources. */
#include "tests.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/test-layers-XXXXXX";

static int run(const char *command)
{
    char line[1024];
    snprintf(line, sizeof line, "cd %s/copy && %s", folder, command);
    return system(line);
}

static int copy_tree(void **state)
{
    char line[512];
    (void)state;
    snprintf(
        line, sizeof line,
        "rm -rf %s/copy && mkdir %s/copy && "
        "git ls-files -z -- .ci .layers app lockkit db loadgen | xargs -0 cp --parents -t %s/copy",
        folder, folder, folder);
    return system(line) == 0 && run("git init -q . && git add .") == 0 ? 0 : -1;
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int remove_folder(void **state)
{
    char line[64];
    (void)state;
    snprintf(line, sizeof line, "rm -rf %s", folder);
    return system(line);
}

/* After this change of the copy the check fails and says so. */
static void expect(const char *change, const char *message)
{
    char look[256];
    assert_int_equal(run(change), 0);
    snprintf(look, sizeof look, ".ci/check-layers >out 2>&1; [ $? = 1 ] && grep -q '%s' out",
             message);
    if (run(look) != 0) {
        run("cat out");
        fail_msg("not found: %s", message);
    }
}

GROUP_FIXTURE(make_folder, remove_folder);
TEST_FIXTURE(copy_tree, NULL);

TEST_THAT(the_tree_as_it_is_passes)
{
    assert_int_equal(run(".ci/check-layers"), 0);
}

TEST_THAT(an_upward_include_fails)
{
    expect("echo '#include \"service.h\"' >>lockkit/base/thread.c && git add .",
           "lockkit/base includes service.h of app/service");
}

TEST_THAT(an_upward_include_is_not_made_right_by_the_table)
{
    expect("echo '#include \"service.h\"' >>lockkit/base/thread.c && git add . &&"
           " sed -i 's|^sees/lockkit/base :=.*|& app/service|' .layers",
           "lockkit/base stands below app/service");
}

TEST_THAT(an_include_that_the_table_does_not_name_fails)
{
    expect("echo '#include \"lockkit.h\"' >>db/db_read.c && git add .",
           "a file of db includes lockkit.h of lockkit");
}

TEST_THAT(an_entry_that_no_include_needs_fails)
{
    expect("sed -i 's|^sees/lockkit/cmd :=.*|& lockkit/base|' .layers",
           "no file of lockkit/cmd needs lockkit/base");
}

TEST_THAT(a_function_declared_by_hand_fails)
{
    expect("echo 'extern int service_open(void);' >>db/db_read.c",
           "db/db_read.c declares a function of another file by hand");
}

TEST_THAT(a_folder_without_a_row_fails)
{
    expect("mkdir app/attic && echo >app/attic/attic.c && git add .",
           "app/attic/attic.c is in a folder that .layers does not name");
}
