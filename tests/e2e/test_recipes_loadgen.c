/* The recipes of loadgen/README.md work as pasted. See tests/README.md, Recipes. */
#include "recipe.h"

TEST_THAT(a_new_hazard_row)
{
    follow("loadgen/README.md", "a new hazard row");
}

TEST_THAT(a_new_workload)
{
    follow("loadgen/README.md", "a new workload");
}
