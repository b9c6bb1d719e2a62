/* The levels are true of the code as it is: all schedules of each level are recorded anew on real
 * servers, and judged here from their events and ledger rows alone. */
#include "program.h"
#include "sandbox.h"
#include "shop.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <cmocka.h>

enum { RECORD_MS = 280000, PATH_LONGEST = 400, MOVES_MAX = 64 };

static struct sandbox *sandbox;
static json_t *all;

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text != NULL ? text : "";
}

static json_int_t figure(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static const json_t *at(const json_t *array, size_t i)
{
    return json_array_get(array, i);
}

/* Levels that are made of others have no tree. */
static const json_t *tree_of(const json_t *level)
{
    return json_object_get(level, "tree");
}

/* -- a second reader of a run -------------------------------------------------------------------
 */

/* Events with these; *ret: the index of the last one. */
static size_t count(const json_t *run, const char *who, const char *point, size_t *ret)
{
    const json_t *events = json_object_get(run, "events");
    size_t n = 0;
    for (size_t i = 0; i < json_array_size(events); i++)
        if (strcmp(json_string_value(at(at(events, i), 1)), who) == 0 &&
            strcmp(json_string_value(at(at(events, i), 2)), point) == 0) {
            n++;
            *ret = i;
        }
    return n;
}

/* What the accepted requests leave, from the level's own amounts. */
static json_int_t expected(const json_t *level, const json_t *run)
{
    const json_t *subject =
        json_object_get(json_object_get(all, "subjects"), text_of(level, "subject"));
    const char *who;
    json_t *amount;
    json_int_t sum = figure(subject, "start");
    size_t ignored;
    json_object_foreach(json_object_get(subject, "amounts"), who, amount)
    {
        if (count(run, who, "answer 201", &ignored) > 0)
            sum += json_integer_value(amount);
    }
    return sum;
}

/* The value of the last ledger row: what the row of the account says. */
static json_int_t written(const json_t *level, const json_t *run)
{
    const json_t *rows = json_object_get(run, "rows"), *subject;
    subject = json_object_get(json_object_get(all, "subjects"), text_of(level, "subject"));
    if (json_array_size(rows) == 0)
        return figure(subject, "start");
    return json_integer_value(at(at(rows, json_array_size(rows) - 1), 2));
}

/* Moves, without ends of leases, up to the write that starts from a version which is no longer the
 * row's: -1: there is none. */
static int moves_to_loss(const json_t *run)
{
    const json_t *rows = json_object_get(run, "rows"), *ends = json_object_get(run, "ends");
    const char *moves = text_of(run, "moves");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        size_t event = 0;
        if (json_integer_value(at(at(rows, i), 3)) == (json_int_t)i + 1)
            continue; /* the creation makes version 1, and each row adds one */
        assert_true(count(run, json_string_value(at(at(rows, i), 0)), "committed", &event) > 0);
        int n = 0;
        for (size_t k = 0; k < strlen(moves); k++) {
            n += moves[k] != 'L';
            if (json_integer_value(at(ends, k)) > (json_int_t)event)
                return n;
        }
    }
    return -1;
}

/* -- the tests ---------------------------------------------------------------------------------
 */

static void each_level_is_as_its_data_say(void **state)
{
    size_t i, k, levels = 0;
    json_t *level, *run;
    (void)state;
    json_array_foreach(json_object_get(all, "levels"), i, level)
    {
        json_int_t losing = 0, fewest = 0;
        const json_t *runs = json_object_get(tree_of(level), "runs");
        if (tree_of(level) == NULL)
            continue;
        json_array_foreach(runs, k, run)
        {
            const bool loses = written(level, run) != expected(level, run);
            const int n = moves_to_loss(run);
            assert_int_equal(figure(run, "final"), written(level, run));
            assert_int_equal(figure(run, "expected"), expected(level, run));
            assert_int_equal(loses, n >= 0);
            assert_int_equal(loses, figure(run, "lost_updates") > 0);
            losing += loses;
            if (loses && (fewest == 0 || n < fewest))
                fewest = n;
        }
        if (losing != figure(level, "losing") || fewest != figure(level, "fewest") ||
            (json_int_t)json_array_size(runs) != figure(level, "schedules"))
            fail_msg("%s: %zu schedules, %lld lose, with %lld moves at the fewest",
                     text_of(level, "id"), json_array_size(runs), (long long)losing,
                     (long long)fewest);
        assert_int_equal(figure(tree_of(level), "fewest"), fewest);
        levels++;
    }
    assert_int_equal(levels, 9);
}

static size_t common(const char *a, const char *b)
{
    size_t n = 0;
    while (a[n] != '\0' && a[n] == b[n])
        n++;
    return n;
}

/* The schedules are all different, and two runs with the same first moves have the same events up
 * to there. */
static void the_same_moves_have_the_same_effect(void **state)
{
    size_t i, k, m, compared = 0;
    json_t *level, *run, *other;
    (void)state;
    json_array_foreach(json_object_get(all, "levels"), i, level)
    {
        const json_t *runs = json_object_get(tree_of(level), "runs");
        json_array_foreach(runs, k, run)
        {
            json_array_foreach(runs, m, other)
            {
                const char *a = text_of(run, "moves"), *b = text_of(other, "moves");
                const size_t n = common(a, b);
                if (m >= k)
                    break;
                assert_true(n < strlen(a) && n < strlen(b));
                if (n == 0)
                    continue;
                assert_true(json_equal(at(json_object_get(run, "ends"), n - 1),
                                       at(json_object_get(other, "ends"), n - 1)));
                compared++;
            }
        }
    }
    assert_true(compared > 1000);
}

/* Under the fence an older holder's write never comes after a newer one's. */
static void under_the_fence_the_ledgers_fences_never_fall(void **state)
{
    size_t i, k, m, refused = 0, ignored;
    json_t *level, *run, *row;
    (void)state;
    json_array_foreach(json_object_get(all, "levels"), i, level)
    {
        if (strcmp(text_of(level, "id"), "paused-holder-fence") != 0)
            continue;
        json_array_foreach(json_object_get(tree_of(level), "runs"), k, run)
        {
            json_int_t last = 0;
            json_array_foreach(json_object_get(run, "rows"), m, row)
            {
                assert_true(json_integer_value(at(row, 4)) >= last);
                last = json_integer_value(at(row, 4));
            }
            refused += count(run, "A", "answer 503 lock-lost", &ignored);
        }
    }
    assert_true(refused > 0);
}

/* -- set-up ------------------------------------------------------------------------------------
 */

static int open_levels(void **state)
{
    char file[PATH_LONGEST], log[PATH_LONGEST];
    int status = -1;
    (void)state;
    if (sandbox_open(&sandbox) != 0)
        return -1;
    snprintf(file, sizeof file, "%s/levels.json", sandbox_dir(sandbox));
    snprintf(log, sizeof log, "%s/levels.log", sandbox_dir(sandbox));
    const char *const args[] = {shop_binary("loadgen"), "levels", "--json", file, NULL};
    if (!program_ends(program_start(args, log, NULL), RECORD_MS, &status) || !WIFEXITED(status) ||
        WEXITSTATUS(status) != 0) {
        fprintf(stderr, "loadgen levels ended with status %d\n", status);
        return -1;
    }
    all = json_load_file(file, 0, NULL);
    return all != NULL ? 0 : -1;
}

static int close_levels(void **state)
{
    (void)state;
    json_decref(all);
    sandbox_close(sandbox);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_level_is_as_its_data_say),
        cmocka_unit_test(the_same_moves_have_the_same_effect),
        cmocka_unit_test(under_the_fence_the_ledgers_fences_never_fall),
    };
    return cmocka_run_group_tests(tests, open_levels, close_levels);
}
