/* cmocka, and tests that register themselves where they are written:
 *
 *     GROUP_FIXTURE(open_servers, close_servers); // once, around all tests of the program
 *     TEST_FIXTURE(empty_servers, NULL);          // around each TEST_THAT of the program
 *
 *     TEST_THAT(a_claim_in_words)
 *     {
 *         assert_true(...);
 *     }
 *
 * Each line may be left out, and each function may be NULL. The tests run in the order of the file.
 * A program without a main() gets that of tests_main.c. Its own main() ends with "return
 * tests_run();". */
#ifndef TESTS_H
#define TESTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* A test of the program, with `void **state`. */
#define TEST_THAT(name) TESTS_TEST(name, NULL, NULL, .has_fixture_of_program = true)

/* The same with its own setup and teardown, instead of those of TEST_FIXTURE. */
#define TEST_THAT_WITH(name, setup, teardown) TESTS_TEST(name, setup, teardown, .is_group = false)

/* Setup and teardown of each TEST_THAT of the program, wherever this stands. */
#define TEST_FIXTURE(setup, teardown) TESTS_CALL(tests_fixture(setup, teardown))

/* Setup and teardown of all tests together that stand in no TEST_GROUP. */
#define GROUP_FIXTURE(setup, teardown) TESTS_CALL(tests_group_fixture(setup, teardown))

/* The tests from here to the next TEST_GROUP run as a group of this name, with its own fixture.
 * Where several TEST_GROUP stand together, the tests below them run once in each. */
#define TEST_GROUP(label, setup_function, teardown_function)                                       \
    TESTS_ENTER(__COUNTER__, .is_group = true, .name = label, .setup = setup_function,             \
                .teardown = teardown_function)                                                     \
    struct tests_entry

/* Runs all tests, group by group. Returns how many have failed. */
int tests_run(void);

/* Runs all tests as one group of this name. Returns how many have failed. */
int tests_run_as(const char *name, CMFixtureFunction setup, CMFixtureFunction teardown);

/* -- what the macros need ------------------------------------------------------------------- */

struct tests_entry {
    int place; /* in the file */
    bool is_group, has_fixture_of_program;
    const char *name;
    CMUnitTestFunction test;
    CMFixtureFunction setup, teardown;
    struct tests_entry *next;
};

void tests_enter(struct tests_entry *entry);
void tests_fixture(CMFixtureFunction setup, CMFixtureFunction teardown);
void tests_group_fixture(CMFixtureFunction setup, CMFixtureFunction teardown);

/* A function that runs before main(). */
#define TESTS_BEFORE_MAIN(number) TESTS_BEFORE_MAIN_(number)
#define TESTS_BEFORE_MAIN_(number)                                                                 \
    static __attribute__((constructor)) void tests_before_main_##number(void)

#define TESTS_CALL(call)                                                                           \
    TESTS_BEFORE_MAIN(__COUNTER__)                                                                 \
    {                                                                                              \
        call;                                                                                      \
    }                                                                                              \
    struct tests_entry

#define TESTS_ENTER(number, ...)                                                                   \
    TESTS_BEFORE_MAIN(number)                                                                      \
    {                                                                                              \
        static struct tests_entry entry = {.place = __COUNTER__, __VA_ARGS__};                     \
        tests_enter(&entry);                                                                       \
    }

#define TESTS_TEST(name_of_test, setup_function, teardown_function, ...)                           \
    static void name_of_test(void **state);                                                        \
    TESTS_ENTER(__COUNTER__, .name = #name_of_test, .test = name_of_test, .setup = setup_function, \
                .teardown = teardown_function, __VA_ARGS__)                                        \
    static void name_of_test(void **state __attribute__((unused)))

#endif
