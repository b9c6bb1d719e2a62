#include "page_rig.h"

#include <assert.h>
#include <stdio.h>
#include <sys/stat.h>

enum { ARGS_MAX = 16, SCRIPT_MAX = 512, PATH_LONGEST = 600 };

int page_open(struct page_rig *rig, const char *const *args)
{
    const char *all[ARGS_MAX + 1] = {"--lanes=off", "--sync=normal"};
    *rig = (struct page_rig){.browser.session = ""};
    for (size_t n = 2; *args != NULL; args++) {
        assert(n < ARGS_MAX);
        all[n++] = *args;
    }
    return shop_open(&rig->shop, all) == 0 ? browser_open(&rig->browser, rig->shop.sandbox) : -1;
}

int page_close(struct page_rig *rig)
{
    browser_close(&rig->browser);
    const bool well = shop_stop(rig->shop.service);
    shop_close(&rig->shop);
    return well ? 0 : -1;
}

bool page_go(struct page_rig *rig, const char *path)
{
    char url[PATH_LONGEST];
    snprintf(url, sizeof url, "%s%s", rig->shop.service->url, path);
    browser_go(&rig->browser, url);
    return browser_await(&rig->browser,
                         "document.body.dataset.ready === 'yes' && "
                         "/live|已连接/.test(document.getElementById('connection').textContent)",
                         PAGE_WAIT_MS);
}

void page_click(struct page_rig *rig, const char *selector)
{
    char script[SCRIPT_MAX];
    snprintf(script, sizeof script, "document.querySelector('%s').click();", selector);
    json_decref(browser_run(&rig->browser, script));
}

void page_choose(struct page_rig *rig, const char *selector, const char *value)
{
    char script[SCRIPT_MAX];
    snprintf(script, sizeof script,
             "const input = document.querySelector('%s'); input.value = '%s';"
             "input.dispatchEvent(new Event('change', { bubbles: true }));",
             selector, value);
    json_decref(browser_run(&rig->browser, script));
}

bool page_picture(struct page_rig *rig, const char *name, int width, int height)
{
    char folder[512], file[PATH_LONGEST];
    snprintf(folder, sizeof folder, "%s", shop_binary("page"));
    mkdir(folder, 0777);
    snprintf(file, sizeof file, "%s/%s.png", folder, name);
    browser_size(&rig->browser, width, height);
    if (!browser_await(&rig->browser,
                       "location.protocol === 'file:' || " /* which has no script to redraw them */
                       "[...document.querySelectorAll('.chart')].every(chart => "
                       "chart.viewBox.baseVal.width === chart.clientWidth)",
                       PAGE_WAIT_MS))
        return false;
    browser_picture(&rig->browser, file);
    return true;
}
