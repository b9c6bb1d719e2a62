/* The recipes of app/, db/ and lockkit/ work as pasted. See tests/README.md, Recipes. */
#include "recipe.h"

/* A recipe that only seems to be followed would prove nothing. */
TEST_THAT(a_recipe_that_does_not_work_is_refused)
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

TEST_THAT(a_new_operation)
{
    follow("app/README.md", "a new operation");
}

TEST_THAT(a_new_guard)
{
    follow("lockkit/README.md", "a new guard");
}

TEST_THAT(a_new_column)
{
    follow("db/README.md", "a new column");
}

TEST_THAT(a_new_engine_of_the_store)
{
    follow("db/README.md", "a new engine of the store");
}
