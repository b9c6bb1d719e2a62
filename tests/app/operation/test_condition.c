/* If-Match and If-None-Match: what is a list of entity tags, and which version of a row it names.
 */
#include "condition.h"
#include "tests.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Copied to memory without a NUL behind it, so that reading beyond the end is noticed. */
static const char *copy(const char *text)
{
    if (text == NULL)
        return NULL;
    char *ret = malloc(strlen(text) + (strlen(text) == 0));
    assert_non_null(ret);
    memcpy(ret, text, strlen(text));
    return ret;
}

static const char *take(const char *match, const char *none, struct condition *ret)
{
    const char *m = copy(match), *n = copy(none);
    memset(ret, 0x55, sizeof *ret);
    const char *wrong = condition_read(m, m ? strlen(match) : 0, n, n ? strlen(none) : 0, ret);
    free((void *)(uintptr_t)m);
    free((void *)(uintptr_t)n);
    return wrong;
}

/* versions: those of 0 to 12 and INT64_MAX for which it holds; 13: INT64_MAX. */
enum { MOST = 13 };
#define BIT(version) (1u << (version))
#define ALL          (BIT(MOST + 1) - 1)

static uint32_t held(const struct condition *condition)
{
    uint32_t bits = 0;
    for (int i = 0; i <= MOST; i++)
        bits |= condition_holds(condition, i == MOST ? INT64_MAX : i) ? BIT(i) : 0;
    return bits;
}

static const struct {
    const char *match, *none;
    uint32_t versions;
    bool protects;
} good[] = {
    {NULL, NULL, ALL, false},
    {NULL, "*", BIT(0), true},
    {"*", NULL, ALL & ~BIT(0), false},
    {"\"1\"", NULL, BIT(1), true},
    {"\"12\"", NULL, BIT(12), true},
    {"\"1\",\"2\"", NULL, BIT(1) | BIT(2), true},
    {" \t\"1\" \t,\t \"2\" ", NULL, BIT(1) | BIT(2), true},
    {",, \"3\" ,,", NULL, BIT(3), true},
    {"\"9223372036854775807\"", NULL, BIT(MOST), true},
    /* a tag that no row has */
    {"W/\"1\"", NULL, 0, true},
    {"W/\"1\", \"2\"", NULL, BIT(2), true},
    {"\"\"", NULL, 0, true},
    {"\"0\"", NULL, 0, true},
    {"\"01\"", NULL, 0, true},
    {"\"+1\"", NULL, 0, true},
    {"\"-1\"", NULL, 0, true},
    {"\"1a\"", NULL, 0, true},
    {"\"*\"", NULL, 0, true},
    {"\"9223372036854775808\"", NULL, 0, true},
    {"\"18446744073709551617\"", NULL, 0, true}, /* 1, if it overflowed */
    {"\"a,b\", \"4\"", NULL, BIT(4), true},      /* a comma within a tag */
    {"\"\xc3\xa9\", \"4\"", NULL, BIT(4), true},
    {"\"x\",\"y\",\"z\",\"4\",\"5\"", NULL, BIT(4) | BIT(5), true},
    {NULL, "\"1\"", ALL & ~BIT(1), false},
    {NULL, "W/\"1\", \"2\"", ALL & ~(BIT(1) | BIT(2)), false},
};

TEST_THAT(a_list_names_versions)
{
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct condition condition;
        const char *wrong = take(good[i].match, good[i].none, &condition);
        if (wrong != NULL || held(&condition) != good[i].versions ||
            condition_protects(&condition) != good[i].protects)
            fail_msg("case %zu: %s, versions %x", i, wrong ? wrong : "good", held(&condition));
    }
}

static const char *const bad[] = {
    "",        " ",          ",",           ", ,",      "1",           "\"1",
    "1\"",     "\"",         "W/1",         "W\"1\"",   "w/\"1\"",     "W/ \"1\"",
    "\"1\"\"", "\"1\"\"2\"", "\"1\" \"2\"", "\"1\", 2", "\"1\", *",    "*, \"1\"",
    "**",      "\"1\";",     "'1'",         "\"a\"b\"", "\"a\x7f\"",   "\"1\",\"2\",\"3\"",
    "W/",      "\"1\", W/",  "\"1 \"",      "\"a\tb\"", "\"1\",,,\"2", "*\"",
};

TEST_THAT(what_is_no_list_is_refused)
{
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct condition condition;
        if (take(bad[i], NULL, &condition) == NULL)
            fail_msg("If-Match: %s is taken", bad[i]);
        if (take(NULL, bad[i], &condition) == NULL)
            fail_msg("If-None-Match: %s is taken", bad[i]);
    }
}

TEST_THAT(both_at_once_are_refused)
{
    struct condition condition;
    assert_non_null(take("\"1\"", "*", &condition));
    assert_non_null(take("*", "*", &condition));
}

TEST_THAT(the_tag_of_a_version_names_it)
{
    static const int64_t versions[] = {1, 2, 10, INT64_MAX};
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        char tag[CONDITION_TAG_MAX];
        struct condition condition;
        condition_tag(versions[i], tag);
        assert_null(take(tag, NULL, &condition));
        assert_true(condition_holds(&condition, versions[i]));
        assert_false(condition_holds(&condition, versions[i] - 1));
    }
}
