/*
 * build/torture: a few rounds on real servers hold, a guard that excludes nobody loses, a mistake
 * of the service is found, and what it leaves behind can be read and added up.
 */
#include "program.h"
#include "shop.h"
#include "tests.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { ARGS_MAX = 24, ENDS_WITHIN_MS = 280000, USAGE = 2, BROKEN = 99, OUTPUT_MAX = 20000 };

static struct sandbox *sandbox; /* only for a folder that goes away */
static char folder[SANDBOX_TEXT_MAX + 16], sums[SANDBOX_TEXT_MAX + 32],
    output[SANDBOX_TEXT_MAX + 16];

static int open_folder(void **state)
{
    (void)state;
    if (sandbox_open(&sandbox) != 0)
        return -1;
    snprintf(folder, sizeof folder, "%s/rounds", sandbox_dir(sandbox));
    snprintf(sums, sizeof sums, "%s/sums.json", sandbox_dir(sandbox));
    snprintf(output, sizeof output, "%s/output", sandbox_dir(sandbox));
    return 0;
}

static int close_folder(void **state)
{
    (void)state;
    sandbox_close(sandbox);
    return 0;
}

static const char *said(void)
{
    static char text[OUTPUT_MAX];
    FILE *file = fopen(output, "re");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    fclose(file);
    return text;
}

static int run(const char *const *args)
{
    const char *argv[ARGS_MAX + 1] = {shop_binary("torture"), "--dir", folder, "--json", sums};
    int n = 5, status;
    for (; *args != NULL && n < ARGS_MAX; args++)
        argv[n++] = *args;
    if (!program_ends(program_start(argv, output, NULL), ENDS_WITHIN_MS, &status) ||
        !WIFEXITED(status))
        fail_msg("it did not end: %s", said());
    return WEXITSTATUS(status);
}
#define RUN(...) run((const char *const[]){__VA_ARGS__, NULL})

static int64_t sum(const char *name)
{
    json_t *json = json_load_file(sums, 0, NULL);
    json_t *value = json_object_get(json, name);
    if (!json_is_integer(value))
        fail_msg("%s: no %s", sums, name);
    int64_t number = json_integer_value(value);
    json_decref(json);
    return number;
}

GROUP_FIXTURE(open_folder, close_folder);

TEST_THAT(rounds_hold_and_their_sums_grow)
{
    remove(sums);
    if (RUN("--small", "--guard", "redis-token", "--store", "sqlite", "--seed", "3", "--rounds",
            "1") != 0)
        fail_msg("%s", said());
    int64_t acknowledged = sum("acknowledged");
    assert_true(acknowledged > 0);
    assert_int_equal(sum("next_seed"), 4);
    if (RUN("--small", "--store", "sqlite", "--guard", "sql-row", "--rounds", "1") != 0)
        fail_msg("%s", said());
    assert_int_equal(sum("rounds"), 2);
    assert_int_equal(sum("violations"), 0);
    assert_int_equal(sum("next_seed"), 5);
    assert_true(sum("acknowledged") > acknowledged);
    assert_true(sum("bitten") > 0);
}

/* Each client asks whatever instance it likes, so two holders are soon at work at once. */
TEST_THAT(a_guard_that_excludes_nobody_else_loses)
{
    remove(sums);
    assert_int_equal(RUN("--guard", "none", "--instances", "2", "--store", "sqlite", "--seed", "3",
                         "--rounds", "1"),
                     0);
    assert_non_null(strstr(said(), "loses "));
    assert_int_equal(sum("weak_rounds"), 1);
    assert_int_equal(sum("weak_lost"), 1);
}
