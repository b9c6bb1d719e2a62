#include "tests.h"

#include <stdio.h>
#include <stdlib.h>

enum { TESTS_MAX = 256 /* of a group */ };

struct fixture_functions {
    CMFixtureFunction setup, teardown;
    bool is_set;
};

static struct tests_entry *entries; /* by their place */
static struct fixture_functions of_tests, of_group;

void tests_enter(struct tests_entry *entry)
{
    struct tests_entry **at = &entries;
    while (*at != NULL && (*at)->place <= entry->place)
        at = &(*at)->next;
    entry->next = *at;
    *at = entry;
}

static void set(const char *macro, struct fixture_functions *ret, CMFixtureFunction setup,
                CMFixtureFunction teardown)
{
    if (ret->is_set) {
        fprintf(stderr, "%s stands twice in this program: keep one\n", macro);
        abort();
    }
    *ret = (struct fixture_functions){setup, teardown, true};
}

void tests_fixture(CMFixtureFunction setup, CMFixtureFunction teardown)
{
    set("TEST_FIXTURE", &of_tests, setup, teardown);
}

void tests_group_fixture(CMFixtureFunction setup, CMFixtureFunction teardown)
{
    set("GROUP_FIXTURE", &of_group, setup, teardown);
}

static struct CMUnitTest as_cmocka_test(const struct tests_entry *entry)
{
    struct CMUnitTest test = {.name = entry->name, .test_func = entry->test};
    test.setup_func = entry->has_fixture_of_program ? of_tests.setup : entry->setup;
    test.teardown_func = entry->has_fixture_of_program ? of_tests.teardown : entry->teardown;
    return test;
}

/* Runs the tests from this entry on, up to the next group or, as one group, up to the end. */
static int run(const struct tests_entry *entry, bool to_the_end, const char *name,
               CMFixtureFunction setup, CMFixtureFunction teardown)
{
    static struct CMUnitTest tests[TESTS_MAX];
    size_t n = 0;
    for (; entry != NULL && (to_the_end || !entry->is_group || n == 0); entry = entry->next) {
        if (entry->is_group)
            continue;
        if (n == TESTS_MAX) {
            fprintf(stderr, "group %s has more than %d tests: raise TESTS_MAX\n", name, TESTS_MAX);
            return 1;
        }
        tests[n++] = as_cmocka_test(entry);
    }
    if (n == 0) {
        fprintf(stderr, "group %s has no test: write one with TEST_THAT\n", name);
        return 1;
    }
    return _cmocka_run_group_tests(name, tests, n, setup, teardown);
}

int tests_run_as(const char *name, CMFixtureFunction setup, CMFixtureFunction teardown)
{
    return run(entries, true, name, setup, teardown);
}

int tests_run(void)
{
    int failed = 0;
    if (entries == NULL || !entries->is_group) {
        failed = run(entries, false, "tests", of_group.setup, of_group.teardown);
    } else if (of_group.is_set) {
        fprintf(stderr, "GROUP_FIXTURE is for tests above the first TEST_GROUP: there is none\n");
        failed = 1;
    }
    for (const struct tests_entry *entry = entries; entry != NULL; entry = entry->next)
        if (entry->is_group)
            failed += run(entry->next, false, entry->name, entry->setup, entry->teardown);
    return failed;
}
