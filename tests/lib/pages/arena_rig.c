#include "arena_rig.h"
#include "sandbox_process.h"
#include "steady.h"

#include <stdio.h>
#include <string.h>

enum {
    REPORTS_MAX = 1 << 20, /* bytes of GET /v1/demo/sales */
    LOOK_MS = 20
};

static bool await_or_print(const char *script)
{
    if (browser_await(&page.browser, script, ARENA_RUN_MS))
        return true;
    json_t *text = browser_run(&page.browser, "return document.body.innerText;");
    fprintf(stderr, "not so: %s; the page says:\n%s\n", script, json_string_value(text));
    json_decref(text);
    return false;
}

bool arena_await_end(void)
{
    return await_or_print(ARENA_OVER);
}

bool arena_open(int tiles, const char *settings)
{
    char path[300], all_there[100];
    snprintf(path, sizeof path, "/web/arena.html?lang=en&%s", settings);
    snprintf(all_there, sizeof all_there, "document.querySelectorAll('.tile').length === %d",
             tiles);
    return page_go(path) && await_or_print(all_there);
}

bool arena_run(int tiles, const char *settings)
{
    if (!arena_open(tiles, settings))
        return false;
    page_click("#start");
    return arena_await_end();
}

/* NULL: none, or not all of it. */
static json_t *read_sales(void)
{
    static char answer[REPORTS_MAX];
    sandbox_ask(page.shop.service->port, "GET /v1/demo/sales HTTP/1.0\r\n\r\n", answer,
                sizeof answer, PAGE_WAIT_MS);
    const char *body = strstr(answer, "\r\n\r\n");
    return body != NULL ? json_loads(body, 0, NULL) : NULL;
}

/* The report of the sale of this item; NULL: its load died. Borrowed from sales. */
static const json_t *report_of(const json_t *sales, const char *resource)
{
    size_t i;
    json_t *report;
    json_array_foreach(json_object_get(sales, "reports"), i, report)
    {
        const json_t *run = json_array_get(json_object_get(report, "runs"), 0);
        const char *id = json_string_value(json_object_get(run, "run_id"));
        if (id != NULL && strcmp(resource + strlen("item:sale-"), id) == 0)
            return run;
    }
    return NULL;
}

static int64_t figure(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

/* A busy machine may lose a question to a lock server. NULL: it does not answer. */
static json_t *read_lock(const char *resource)
{
    const int64_t until_ms = steady_ms() + PAGE_WAIT_MS;
    char path[200];
    json_t *lock;
    snprintf(path, sizeof path, "/v1/lab/locks/%s", resource);
    while ((lock = client_get(page.shop.service->port, path)) == NULL && steady_ms() < until_ms)
        steady_sleep_ms(LOOK_MS);
    return lock;
}

/* Does the lock stand, with no lease to end it? */
static bool stands(const char *resource)
{
    json_t *lock = read_lock(resource);
    const bool result =
        figure(lock, "holders") > 0 && json_is_null(json_object_get(lock, "left_ms"));
    json_decref(lock);
    return result;
}

static bool next_order_gets_no_lock(const char *resource)
{
    char path[200];
    struct reply reply;
    struct client client = {.port = page.shop.service->port, .fd = -1};
    snprintf(path, sizeof path, "/v1/items/%s/orders", resource + strlen("item:"));
    const int status = client_call(&client, "POST", path, resource, "{\"user_id\":\"judge\"}",
                                   PAGE_WAIT_MS, &reply);
    client_close(&client);
    return status == 503;
}

/* What a tile must be. killed: the load, so it need not have sold out. */
static const char *state_of(const char *resource, const json_t *sales, bool killed)
{
    char path[200];
    snprintf(path, sizeof path, "/v1/audit?resource=%s", resource);
    json_t *answer = client_get(page.shop.service->port, path);
    const json_t *row = json_array_get(json_object_get(answer, "resources"), 0);
    const json_t *report = report_of(sales, resource);
    const int64_t refused = figure(json_object_get(report, "status"), "503") -
                            figure(json_object_get(report, "problems"), "lock-lost");
    const bool whole = row != NULL && json_is_true(json_object_get(row, "ok")) &&
                       figure(row, "oversold") == 0 && figure(row, "lost_updates") == 0;
    const bool sold_out = figure(row, "sold") >= figure(row, "initial");
    json_decref(answer);
    if (!whole)
        return "bad";
    if (stands(resource))
        return next_order_gets_no_lock(resource) ? "stuck"
                                                 : "a lock that stands and is no hindrance";
    return refused > 0 || ((report != NULL || !killed) && !sold_out) ? "refused" : "good";
}

size_t arena_contradictions(int wanted)
{
    size_t i, n = 0;
    json_t *tile;
    json_t *sales = read_sales();
    const bool killed =
        browser_is(&page.browser, "document.querySelector('[name=fault]').value === 'kill'");
    json_t *tiles = browser_run(&page.browser, "return [...document.querySelectorAll('.tile')].map("
                                               "tile => [tile.dataset.resource, tile.dataset.state,"
                                               " tile.innerText]);");
    json_array_foreach(tiles, i, tile)
    {
        const char *resource = json_string_value(json_array_get(tile, 0));
        const char *shown = json_string_value(json_array_get(tile, 1));
        const char *is = state_of(resource, sales, killed);
        if (strcmp(shown, is) == 0)
            continue;
        fprintf(stderr, "%s is shown as %s and is %s:\n%s\n", resource, shown, is,
                json_string_value(json_array_get(tile, 2)));
        n++;
    }
    if (i != (size_t)wanted || sales == NULL) {
        fprintf(stderr, "%zu tiles, %s\n", i, sales == NULL ? "no reports" : "reports");
        n++;
    }
    json_decref(tiles);
    json_decref(sales);
    return n;
}
