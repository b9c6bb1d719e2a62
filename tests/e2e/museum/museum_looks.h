/* The looks of the museum under axe-core, the accessibility checker. */
#ifndef MUSEUM_LOOKS_H
#define MUSEUM_LOOKS_H

#include "museum_rig.h"
#include "shop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static char *axe; /* its source: the Makefile has put it into the build folder */

/* What axe-core finds wrong, in each language and colour scheme, on a screen and on a phone. */
static inline size_t looks_findings(const char *page, int width, bool dark)
{
    assert_true(museum_go(page));
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

/* Group set-up and tear-down of the museum, with the checker. */
static inline int looks_open(void **state)
{
    FILE *file = fopen(shop_binary("axe.min.js"), "re");
    size_t size = 0;
    const bool read = file != NULL && getdelim(&axe, &size, '\0', file) > 0;
    if (file != NULL)
        fclose(file);
    return read ? museum_open(state) : -1;
}

static inline int looks_close(void **state)
{
    free(axe);
    return museum_close(state);
}

#endif
