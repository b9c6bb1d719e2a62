/* The looks of the museum under axe-core, the accessibility checker. */
#ifndef MUSEUM_LOOKS_H
#define MUSEUM_LOOKS_H

#include "museum_rig.h"
#include "shop.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>

static char *axe; /* its source: the Makefile has put it into the build folder */

/* Takes a list of what is wrong. */
static inline void assert_nothing(json_t *wrong)
{
    size_t i;
    json_t *one;
    json_array_foreach(wrong, i, one)
    {
        fprintf(stderr, "%s\n", json_string_value(one));
    }
    const size_t n = json_array_size(wrong);
    json_decref(wrong);
    assert_int_equal(n, 0);
}

/* What axe-core finds wrong with the page as it stands. */
static inline size_t looks_findings_here(const char *page, int width, bool dark)
{
    browser_size(&museum.browser, width, 800);
    browser_dark(&museum.browser, dark);
    json_decref(browser_run(&museum.browser, axe));
    json_t *list = browser_run(
        &museum.browser,
        "return axe.run(document, { resultTypes: ['violations'] }).then(({ violations }) =>"
        " violations.flatMap(({ id, impact, nodes }) => nodes.map(({ target, any }) =>"
        " `${impact} ${id}: ${target} ${any.map(({ message }) => message)}`)));");
    const size_t n = json_array_size(list);
    for (size_t i = 0; i < n; i++)
        fprintf(stderr, "%s, %d, %s: %s\n", page, width, dark ? "dark" : "light",
                json_string_value(json_array_get(list, i)));
    json_decref(list);
    return n;
}

/* The same, of the page when it is loaded. */
static inline size_t looks_findings(const char *page, int width, bool dark)
{
    assert_true(museum_go(page));
    return looks_findings_here(page, width, dark);
}

struct look {
    const char *page;
    int width;
    bool dark;
};

/* All looks, before it fails: no finding, and nothing beside the page. */
static inline void assert_looks_well(const struct look *looks, size_t n)
{
    size_t findings = 0;
    for (size_t i = 0; i < n; i++) {
        findings += looks_findings(looks[i].page, looks[i].width, looks[i].dark);
        assert_true(
            browser_is(&museum.browser, "document.documentElement.scrollWidth <= innerWidth"));
    }
    assert_int_equal(findings, 0);
}

static inline bool looks_read(void)
{
    FILE *file = fopen(shop_binary("axe.min.js"), "re");
    size_t size = 0;
    const bool read = file != NULL && getdelim(&axe, &size, '\0', file) > 0;
    if (file != NULL)
        fclose(file);
    return read;
}

/* Group set-ups and tear-down of the museum, with the checker. empty: no site is made. */
static inline int looks_open(void **state)
{
    return looks_read() ? museum_open(state) : -1;
}

static inline int looks_open_empty(void **state)
{
    return looks_read() ? museum_open_empty(state) : -1;
}

static inline int looks_close(void **state)
{
    free(axe);
    return museum_close(state);
}

#endif
