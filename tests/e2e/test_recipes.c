/* The recipes of app/, db/ and lockkit/ work as pasted. See tests/README.md, Recipes. */
#include "recipe.h"

static void a_new_operation(void **state)
{
    (void)state;
    follow("app/README.md", "a new operation");
}

static void a_new_guard(void **state)
{
    (void)state;
    follow("lockkit/README.md", "a new guard");
}

static void a_new_column(void **state)
{
    (void)state;
    follow("db/README.md", "a new column");
}

static void a_new_engine_of_the_store(void **state)
{
    (void)state;
    follow("db/README.md", "a new engine of the store");
}

/* A recipe that only seems to be followed would prove nothing. */
static void a_recipe_that_does_not_work_is_refused(void **state)
{
    static const char *const wrong[] = {
        "```c\\nx\\n```", /* goes nowhere */
        "In `Makefile`, after the line `no such line`:\\n\\n```c\\nx\\n```",
        "New file `Makefile`:\\n\\n```c\\nx\\n```",         /* is there */
        "```sh\\nfalse\\ntrue\\n```",                       /* a command fails */
        "In `a`, after the line `x`:\\n\\n```\\nx\\n```\\n" /* the fourth file */
        "In `b`, after the line `x`:\\n\\n```\\nx\\n```\\n"
        "In `c`, after the line `x`:\\n\\n```\\nx\\n```\\n"
        "In `d`, after the line `x`:\\n\\n```\\nx\\n```",
        "No block.",
    };
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char command[1024];
        snprintf(command, sizeof command,
                 "readme=$(mktemp) && printf '## Recipe: x\\n\\n%%b\\n' '%s' >$readme &&"
                 " ! tests/recipe.sh $readme x 2>&1; code=$?; rm -f $readme; exit $code",
                 wrong[i]);
        if (system(command) != 0)
            fail_msg("followed: %s", wrong[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_recipe_that_does_not_work_is_refused),
        cmocka_unit_test(a_new_operation),
        cmocka_unit_test(a_new_guard),
        cmocka_unit_test(a_new_column),
        cmocka_unit_test(a_new_engine_of_the_store),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
