/* The tables of guards in README.md (letters) and lockkit/README.md (names) match the code's
 * claims. README.md stays short. */
#include "guard.h"
#include "tests.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_MAX = 1 << 20, ROW_MAX = 512, LINES_MAX = 220, WORDS_MAX = 2300 };
enum { GLOSSARY_MAX = 40, LOCKKIT_WORDS_MAX = 3100 };

/* Tests run at the top of the checkout. */
static char *read_page(const char *name)
{
    char *page = malloc(PAGE_MAX);
    FILE *file = fopen(name, "re");
    assert_non_null(page);
    assert_non_null(file);
    page[fread(page, 1, PAGE_MAX - 1, file)] = '\0';
    fclose(file);
    return page;
}

static void append(char row[ROW_MAX], const char *separator, const char *text)
{
    size_t n = strlen(row);
    snprintf(row + n, ROW_MAX - n, "%s%s", separator, text);
}

/* "| `redis-set` | exclusive, distributed, lease | its weakness |" */
static void row_by_name(const struct guard *guard, char ret[ROW_MAX])
{
    const lk_cap_info *caps = lk_cap_list();
    snprintf(ret, ROW_MAX, "| `%s` |", guard->info->name);
    const char *separator = " ";
    for (size_t i = 0; i < LK_CAP_COUNT; i++) {
        if ((guard->info->caps & caps[i].bit) == 0)
            continue;
        append(ret, separator, caps[i].name);
        separator = ", ";
    }
    append(ret, guard->info->caps ? " | " : " nothing | ", guard->info->weakness);
    append(ret, " |", "");
}

/* "| `redis-set` | D L | its weakness |" */
static void row_by_letter(const struct guard *guard, char ret[ROW_MAX])
{
    static const struct {
        uint64_t caps;
        const char *letter;
    } letters[] = {{LK_CAP_DISTRIBUTED, "D"}, {LK_CAP_LEASE | LK_CAP_SESSION, "L"},
                   {LK_CAP_RENEW, "R"},       {LK_CAP_FENCE, "F"},
                   {LK_CAP_FAIR, "Q"},        {LK_CAP_WAKES, "W"}};
    bool any = false;
    snprintf(ret, ROW_MAX, "| `%s` |", guard->info->name);
    for (size_t i = 0; i < sizeof letters / sizeof letters[0]; i++) {
        if ((guard->info->caps & letters[i].caps) == 0)
            continue;
        append(ret, " ", letters[i].letter);
        any = true;
    }
    append(ret, any ? " | " : " - | ", guard->info->weakness);
    append(ret, " |", "");
}

static void expect_rows(const char *name, void (*row_of)(const struct guard *, char *))
{
    static struct config config;
    char *page = read_page(name);
    snprintf(config.guard, sizeof config.guard, "none");
    struct guards *guards;
    assert_int_equal(guards_open(&config, &seams_none, &guards), 0);
    int missing = 0;
    const struct guard *guard;
    for (size_t i = 0; (guard = guard_at(guards, i)) != NULL; i++) {
        char row[ROW_MAX];
        row_of(guard, row);
        if (!strstr(page, row)) {
            print_message("%s lacks the row\n%s\n", name, row);
            missing++;
        }
    }
    guards_close(guards);
    free(page);
    assert_int_equal(missing, 0);
}

TEST_THAT(readme_shows_each_guards_claims_by_letter)
{
    expect_rows("README.md", row_by_letter);
}

TEST_THAT(lockkits_page_names_each_guards_claims)
{
    expect_rows("lockkit/README.md", row_by_name);
}

TEST_THAT(readme_is_short)
{
    char *page = read_page("README.md");
    int lines = 0, words = 0;
    for (const char *at = page; *at; at++) {
        lines += *at == '\n';
        words += !isspace((unsigned char)*at) && (at[1] == '\0' || isspace((unsigned char)at[1]));
    }
    free(page);
    assert_in_range(lines, 100, LINES_MAX);
    assert_in_range(words, 1000, WORDS_MAX);
}

TEST_THAT(lockkits_page_and_its_glossary_are_short)
{
    char *page = read_page("lockkit/README.md");
    const char *glossary = strstr(page, "\n## Glossary\n");
    assert_non_null(glossary);
    int words = 0, entries = -1; /* the head of the table is no entry */
    for (const char *at = glossary; (at = strstr(at, "\n| ")) != NULL; at += 3)
        entries++;
    for (const char *at = page; *at; at++)
        words += !isspace((unsigned char)*at) && (at[1] == '\0' || isspace((unsigned char)at[1]));
    free(page);
    assert_in_range(entries, 20, GLOSSARY_MAX);
    assert_in_range(words, 1000, LOCKKIT_WORDS_MAX);
}
