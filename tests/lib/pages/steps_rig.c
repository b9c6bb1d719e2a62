#include "steps_rig.h"

#include <stdio.h>

enum { PATH_LONGEST = 300, SEEN_LONGEST = 400 };

bool steps_go(const char *query)
{
    char path[PATH_LONGEST];
    snprintf(path, sizeof path, "/web/steps.html?%s", query);
    return page_go(path) &&
           browser_await(&page.browser, "document.querySelectorAll('.actor').length > 1",
                         PAGE_WAIT_MS);
}

bool steps_move(const char *name, const char *where)
{
    char key[2] = {(char)(name[0] | 0x20), '\0'}, seen[SEEN_LONGEST];
    snprintf(seen, sizeof seen,
             "(() => { const actor = document.querySelector('[data-name=%s]');"
             "return actor.dataset.state === '%s' || "
             "actor.querySelector('.here')?.dataset.point === '%s'; })()",
             name, where, where);
    browser_type(&page.browser, key);
    if (browser_await(&page.browser, seen, PAGE_WAIT_MS))
        return true;
    fprintf(stderr, "%s did not come to %s\n", name, where);
    return false;
}

bool steps_moves(const char *name, const char *const *points)
{
    for (; *points != NULL; points++)
        if (!steps_move(name, *points))
            return false;
    return true;
}

bool steps_state_is(const char *name, const char *state)
{
    char seen[SEEN_LONGEST];
    snprintf(seen, sizeof seen, "document.querySelector('[data-name=%s]').dataset.state === '%s'",
             name, state);
    return browser_await(&page.browser, seen, PAGE_WAIT_MS);
}

bool steps_world_is(const char *what, const char *text)
{
    char seen[SEEN_LONGEST];
    snprintf(seen, sizeof seen,
             "document.querySelector('#world [data-is=%s]').textContent === '%s'", what, text);
    return browser_await(&page.browser, seen, PAGE_WAIT_MS);
}

bool steps_verdict_is(const char *state, const char *word)
{
    char seen[SEEN_LONGEST];
    snprintf(seen, sizeof seen,
             "document.getElementById('verdict').dataset.state === '%s' && "
             "document.getElementById('verdict').textContent.includes('%s')",
             state, word);
    return browser_await(&page.browser, seen, PAGE_WAIT_MS);
}
