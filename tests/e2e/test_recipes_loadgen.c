/* The recipes of loadgen/README.md work as pasted. See tests/README.md, Recipes. */
#include "recipe.h"

static void a_new_hazard_row(void **state)
{
    (void)state;
    follow("loadgen/README.md", "a new hazard row");
}

static void a_new_workload(void **state)
{
    (void)state;
    follow("loadgen/README.md", "a new workload");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_hazard_row),
        cmocka_unit_test(a_new_workload),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
