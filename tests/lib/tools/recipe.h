/* Runs a recipe of a README exactly as written: see tests/README.md, Recipes. */
#ifndef RECIPE_H
#define RECIPE_H

#include "tests.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Fails the test unless the recipe works as pasted. */
static inline void follow(const char *readme, const char *title)
{
    char command[256];
    snprintf(command, sizeof command, "tests/recipe.sh %s '%s' 2>&1", readme, title);
    assert_int_equal(system(command), 0);
}

#endif
