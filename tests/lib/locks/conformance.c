#include "conformance.h"
#include "holder.h"
#include "lock_claims.h"
#include "lock_duties.h"
#include "tests.h"

#include <stdio.h>
#include <string.h>

enum { COLUMNS = LK_CAP_COUNT + LOCK_DUTIES, GUARDS_MAX = 16, GENERAL = 4, TEST_NAME_MAX = 80 };

/* The observed result. */
enum verdict { NOT_APPLICABLE, KEPT, BROKEN, FAILED };

struct cell {
    const lk_provider_info *guard;
    size_t column;
    enum verdict verdict;
    char name[TEST_NAME_MAX]; /* of its test */
};

static struct cell table[GUARDS_MAX][COLUMNS];

static bool is_duty(const struct cell *cell)
{
    return cell->column >= LK_CAP_COUNT;
}

static const char *column_name(size_t column)
{
    return column < LK_CAP_COUNT ? lk_cap_list()[column].name
                                 : lock_duties[column - LK_CAP_COUNT].name;
}

static bool is_claimed(const struct cell *cell)
{
    return is_duty(cell) || (cell->guard->caps & lock_claims[cell->column].bit) != 0;
}

static bool applies(const struct cell *cell)
{
    return is_duty(cell) || (~cell->guard->caps & lock_claims[cell->column].needs) == 0;
}

static void try_cell(void **state)
{
    struct cell *cell = *state;
    const lk_provider_info *guard = cell->guard;
    cell->verdict = FAILED; /* stays if an assertion fails */
    world->wipe();
    if (is_duty(cell)) {
        bool tried = lock_duties[cell->column - LK_CAP_COUNT].holds(guard);
        cell->verdict = tried ? KEPT : NOT_APPLICABLE;
        return;
    }
    bool keeps = lock_claims[cell->column].keeps(guard);
    if (keeps != is_claimed(cell))
        fail_msg("%s %s \"%s\" and %s", guard->name, keeps ? "does not claim" : "claims",
                 column_name(cell->column), keeps ? "keeps it" : "breaks it");
    cell->verdict = keeps ? KEPT : BROKEN;
}

/* -- the table itself ----------------------------------------------------------------------------
 */

static void every_capability_has_its_claim_tried(void **state)
{
    (void)state;
    for (size_t i = 0; i < LK_CAP_COUNT; i++)
        assert_int_equal(lock_claims[i].bit, lk_cap_list()[i].bit);
}

static bool is_served(const char *guard)
{
    for (size_t i = 0; lock_families[i] != NULL; i++)
        for (const char *const *name = lock_families[i]->guards; *name != NULL; name++)
            if (strcmp(*name, guard) == 0)
                return true;
    return false;
}

static void every_guard_of_the_family_is_built_in(void **state)
{
    (void)state;
    for (const char *const *name = world->guards; *name != NULL; name++)
        if (lk_provider_find(*name) == NULL)
            fail_msg("the family names %s, which is not built in", *name);
}

/* The mutex guard is no distributed one: two clients of it do not exclude each other (test_mutex).
 */
static void every_distributed_guard_stands_in_a_family(void **state)
{
    (void)state;
    for (size_t i = 0; lk_provider_at(i) != NULL; i++)
        if ((lk_provider_at(i)->caps & LK_CAP_DISTRIBUTED) != 0 &&
            !is_served(lk_provider_at(i)->name))
            fail_msg("no conformance family serves %s", lk_provider_at(i)->name);
}

static void no_guard_claims_what_cannot_apply(void **state)
{
    (void)state;
    for (size_t row = 0; row < GUARDS_MAX && table[row][0].guard != NULL; row++)
        for (size_t i = 0; i < COLUMNS; i++)
            assert_true(applies(&table[row][i]) || !is_claimed(&table[row][i]));
}

static void print_table(void)
{
    static const char *const words[] = {"-", "yes", "no", "FAIL"};
    printf("%-20s %-10s", "guard", "servers");
    for (size_t i = 0; i < COLUMNS; i++)
        printf(" %s", column_name(i));
    printf("\n");
    for (size_t row = 0; row < GUARDS_MAX && table[row][0].guard != NULL; row++) {
        printf("%-20s %-10s", table[row][0].guard->name, world->name);
        for (size_t i = 0; i < COLUMNS; i++)
            printf(" %-*s", (int)strlen(column_name(i)), words[table[row][i].verdict]);
        printf("\n");
    }
    printf("yes: kept; no: its anomaly was shown; -: does not apply\n");
}

/* Fills a row of the table and adds a test for each cell that applies. Returns the number of tests.
 */
static size_t add_row(struct cell *row, const char *guard, struct CMUnitTest *tests)
{
    size_t n = 0;
    for (size_t i = 0; i < COLUMNS; i++) {
        struct cell *cell = &row[i];
        *cell = (struct cell){.guard = lk_provider_find(guard), .column = i};
        if (cell->guard == NULL || !applies(cell))
            continue;
        snprintf(cell->name, sizeof cell->name, "%s_%s_%s", guard,
                 is_claimed(cell) ? "keeps" : "breaks", column_name(i));
        for (char *c = cell->name; *c != '\0'; c++)
            *c = *c == '-' ? '_' : *c;
        tests[n++] = (struct CMUnitTest){cell->name, try_cell, NULL, NULL, cell};
    }
    return n;
}

int conformance_main(int argc, char **argv, const struct lock_family *family)
{
    if (argc > 1)
        return holder_main(argc, argv);
    static struct CMUnitTest tests[GENERAL + GUARDS_MAX * COLUMNS] = {
        cmocka_unit_test(every_capability_has_its_claim_tried),
        cmocka_unit_test(every_guard_of_the_family_is_built_in),
        cmocka_unit_test(every_distributed_guard_stands_in_a_family),
        cmocka_unit_test(no_guard_claims_what_cannot_apply),
    };
    size_t n = GENERAL, rows = 0;
    setvbuf(stdout, NULL, _IOLBF, 0); /* else cmocka's lines on stderr mix with the table */
    world = family;
    for (; family->guards[rows] != NULL && rows < GUARDS_MAX; rows++)
        n += add_row(table[rows], family->guards[rows], tests + n);
    int failed = _cmocka_run_group_tests(family->name, tests, n, world_open, world_close);
    print_table();
    return failed;
}
