/* The words of the pages: both languages have the same ones, with the same values in them, and the
 * Chinese ones have no English left. */
#include "page_rig.h"
#include "tests.h"

#include <stdio.h>

static struct browser *const browser = &page.browser;

/* Lists what this function body finds: (section, name, en, zh) -> a finding or undefined. en and zh
 * are undefined where the language has no such word. Prints the findings and returns their number.
 */
static size_t findings(const char *body)
{
    char script[2000];
    size_t i;
    json_t *finding;
    snprintf(
        script, sizeof script,
        "const find = (section, name, en, zh) => { %s };"
        "return Promise.all(['en', 'zh'].map(lang => import(`/web/words_${lang}.js`))).then("
        "([{ words: en }, { words: zh }]) =>"
        "  [...new Set([...Object.keys(en), ...Object.keys(zh)])].flatMap(section =>"
        "    [...new Set([...Object.keys(en[section] ?? {}), ...Object.keys(zh[section] ?? {})])]"
        "    .map(name => [section, name, find(section, name, en[section]?.[name],"
        "      zh[section]?.[name])]))"
        "  .filter(([, , found]) => found !== undefined).map(each => each.join(' ')));",
        body);
    json_t *list = browser_run(browser, script);
    json_array_foreach(list, i, finding)
    {
        fprintf(stderr, "%s\n", json_string_value(finding));
    }
    const size_t n = json_array_size(list);
    json_decref(list);
    return n;
}

GROUP_FIXTURE(page_open_lab, page_close);

TEST_THAT(both_languages_have_the_same_words)
{
    assert_true(page_go("/?lang=en"));
    assert_int_equal(findings("if (!en || !zh) return `en: ${en}, zh: ${zh}`;"), 0);
    assert_true(browser_is(browser, "import('/web/words_en.js').then(({ words }) =>"
                                    " Object.keys(words.page).length > 60)"));
}

TEST_THAT(a_word_has_the_same_values_in_both_languages)
{
    assert_int_equal(
        findings("const values = word => [...new Set(word.match(/\\{\\w+\\}/g))].sort().join();"
                 "if (values(en) !== values(zh)) return `${values(en)} and ${values(zh)}`;"),
        0);
}

/* Names of things are the same in every language: of programs, commands and options, of the two
 * requests, of units. */
TEST_THAT(chinese_has_no_english_left)
{
    assert_int_equal(
        findings(
            "const names = "
            "/\\{\\w+\\}|--[\\w-]+|\\b(?:Redis|JSON|ZooKeeper|PostgreSQL|SQLite|SQL|DEL|"
            "GET|SET|UUID|QPS|token|fencing|key|kill|SIGKILL|lab|make|serve|loadgen|seckilld|demo|"
            "on|off|"
            "p50|p90|p99|s|ms|A|B|C)\\b/g;"
            "const rest = zh.replace(names, '').match(/[A-Za-z]+/g);"
            "if (rest) return `${rest.join(' ')}: ${zh}`;"),
        0);
}

/* The settings of a sale stand in one row on a wide screen, whatever the language. */
TEST_THAT(the_settings_of_a_sale_do_not_wrap)
{
    browser_size(browser, 1280, 720);
    for (int i = 0; i < 2; i++) {
        assert_true(page_go(i == 0 ? "/?lang=en" : "/?lang=zh"));
        assert_true(browser_is(
            browser, "[...document.querySelectorAll('#sides fieldset')].every((side) => new Set("
                     "[...side.querySelectorAll('label')].map((label) => Math.round("
                     "label.getBoundingClientRect().bottom))).size === 1)"));
    }
}
