/* README's table of guards says what the code claims: one row per guard, its claims by name. */
#include "guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { README_MAX = 1 << 20, ROW_MAX = 512 };

/* "| `redis-set` | exclusive, distributed, lease | " */
static void row_of(const struct guard *guard, char ret[ROW_MAX])
{
    const lk_cap_info *caps = lk_cap_list();
    int n = snprintf(ret, ROW_MAX, "| `%s` |", guard->info->name);
    const char *separator = " ";
    for (size_t i = 0; i < LK_CAP_COUNT; i++) {
        if ((guard->info->caps & caps[i].bit) == 0)
            continue;
        n += snprintf(ret + n, (size_t)(ROW_MAX - n), "%s%s", separator, caps[i].name);
        separator = ", ";
    }
    snprintf(ret + n, (size_t)(ROW_MAX - n), "%s| %s |", guard->info->caps ? " " : " nothing ",
             guard->info->weakness);
}

static void table_says_what_each_guard_claims(void **state)
{
    (void)state;
    char *readme = malloc(README_MAX);
    assert_non_null(readme);
    FILE *file = fopen("README.md", "re"); /* tests run at the top of the checkout */
    assert_non_null(file);
    size_t length = fread(readme, 1, README_MAX - 1, file);
    readme[length] = '\0';
    fclose(file);

    static struct config config;
    snprintf(config.guard, sizeof config.guard, "none");
    struct guards *guards;
    assert_int_equal(guards_open(&config, &guards), 0);
    int missing = 0;
    const struct guard *guard;
    for (size_t i = 0; (guard = guard_at(guards, i)) != NULL; i++) {
        char row[ROW_MAX];
        row_of(guard, row);
        if (!strstr(readme, row)) {
            print_message("README.md lacks the row\n%s\n", row);
            missing++;
        }
    }
    guards_close(guards);
    free(readme);
    assert_int_equal(missing, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_says_what_each_guard_claims),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
