#include "page_rig.h"

#include "sandbox_process.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { ARGS_MAX = 16, SCRIPT_MAX = 512, PATH_LONGEST = 600 };

struct page_rig page;

int page_open(const char *const *args)
{
    const char *all[ARGS_MAX + 1] = {"--lanes=off", "--sync=normal"};
    page = (struct page_rig){.browser.session = ""};
    for (size_t n = 2; *args != NULL; args++) {
        assert(n < ARGS_MAX);
        all[n++] = *args;
    }
    return shop_open(&page.shop, all) == 0 ? browser_open(&page.browser, page.shop.sandbox) : -1;
}

int page_open_demo(void **state)
{
    (void)state;
    return page_open((const char *const[]){"--demo", "--lab", NULL});
}

int page_open_lab(void **state)
{
    (void)state;
    return page_open((const char *const[]){"--lab", NULL});
}

/* Its addresses are printed once the service says which guards can be used. */
static bool has_printed_addresses(struct sandbox_server *server)
{
    char line[1024];
    bool result = false;
    FILE *log = fopen(server->log, "re");
    while (log != NULL && !result && fgets(line, sizeof line, log) != NULL)
        result = strncmp(line, "Open http://", strlen("Open http://")) == 0;
    if (log != NULL)
        fclose(log);
    return result;
}

int page_open_serve(void **state)
{
    (void)state;
    page = (struct page_rig){.shop.client.fd = -1, .browser.session = ""};
    if (sandbox_open(&page.shop.sandbox) != 0)
        return -1;
    struct sandbox_server *serve = sandbox_add(page.shop.sandbox, "serve", has_printed_addresses);
    if (serve == NULL)
        return -1;
    serve->ready_ms = PAGE_WAIT_MS; /* it starts a server of each kind */
    serve->port = sandbox_free_port();
    snprintf(serve->url, sizeof serve->url, "http://127.0.0.1:%d", serve->port);
    sandbox_arg(serve, "%s", shop_binary("loadgen"));
    sandbox_arg(serve, "serve");
    sandbox_arg(serve, "--listen=127.0.0.1:%d", serve->port);
    if (sandbox_start(serve) != 0)
        return -1;
    page.shop.service = serve;
    return browser_open(&page.browser, page.shop.sandbox);
}

int page_close(void **state)
{
    (void)state;
    browser_close(&page.browser);
    const bool well = shop_stop(page.shop.service);
    shop_close(&page.shop);
    return well ? 0 : -1;
}

bool page_go(const char *path)
{
    char url[PATH_LONGEST];
    snprintf(url, sizeof url, "%s%s", page.shop.service->url, path);
    browser_go(&page.browser, url);
    return browser_await(&page.browser,
                         "document.body.dataset.ready === 'yes' && "
                         "/live|已连接/.test(document.getElementById('connection').textContent)",
                         PAGE_WAIT_MS);
}

void page_click(const char *selector)
{
    char script[SCRIPT_MAX];
    snprintf(script, sizeof script, "document.querySelector('%s').click();", selector);
    json_decref(browser_run(&page.browser, script));
}

void page_choose(const char *selector, const char *value)
{
    char script[SCRIPT_MAX];
    snprintf(script, sizeof script,
             "const input = document.querySelector('%s'); input.value = '%s';"
             "input.dispatchEvent(new Event('change', { bubbles: true }));",
             selector, value);
    json_decref(browser_run(&page.browser, script));
}

bool page_sold(const char *ended)
{
    if (browser_await(&page.browser, ended, PAGE_SALE_MS))
        return true;
    json_t *says = browser_run(&page.browser,
                               "return [document.getElementById('message').textContent,"
                               "  ...[...document.querySelectorAll('.pane')].map(pane =>"
                               "    pane.dataset.state + ': ' + pane.textContent)].join('\\n');");
    fprintf(stderr, "the sale has not ended; the page says:\n%s\n", json_string_value(says));
    json_decref(says);
    return false;
}

bool page_told(int i, const char *words)
{
    char script[SCRIPT_MAX];
    snprintf(script, sizeof script,
             "const told = document.querySelectorAll('.told')[%d].textContent;"
             "return /%s/.test(told) ? null : told;",
             i, words);
    json_t *told = browser_run(&page.browser, script);
    const bool as_wanted = json_is_null(told);
    if (!as_wanted)
        fprintf(stderr, "pane %d told: %s\n", i, json_string_value(told));
    json_decref(told);
    return as_wanted;
}

bool page_open_saved(void)
{
    char url[PATH_LONGEST];
    json_decref(browser_run(&page.browser,
                            "const make = URL.createObjectURL;"
                            "URL.createObjectURL = blob => { blob.text().then("
                            "text => { window.saved = text; }); return make(blob); };"
                            "document.getElementById('save').click();"));
    if (!browser_await(&page.browser, "window.saved !== undefined", PAGE_WAIT_MS))
        return false;
    json_t *text = browser_run(&page.browser, "return window.saved;");
    snprintf(url, sizeof url, "file://%s/run.html", sandbox_dir(page.shop.sandbox));
    FILE *file = fopen(url + strlen("file://"), "w");
    assert(file != NULL);
    fputs(json_string_value(text), file);
    fclose(file);
    json_decref(text);
    browser_go(&page.browser, url);
    return true;
}

bool page_picture(const char *name, int width, int height)
{
    char folder[512], file[PATH_LONGEST];
    snprintf(folder, sizeof folder, "%s", shop_binary("page"));
    mkdir(folder, 0777);
    snprintf(file, sizeof file, "%s/%s.png", folder, name);
    browser_size(&page.browser, width, height);
    if (!browser_await(&page.browser,
                       "location.protocol === 'file:' || " /* a saved page does not redraw them */
                       "[...document.querySelectorAll('.chart')].every(chart => "
                       "chart.viewBox.baseVal.width === chart.clientWidth)",
                       PAGE_WAIT_MS))
        return false;
    browser_picture(&page.browser, file);
    return true;
}
