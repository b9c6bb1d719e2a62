/* Sales on the live page in which something goes wrong on purpose. */
#include "../lib/page_rig.h"
#include "../lib/process.h"
#include "../../loadgen/sandbox_process.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { SALE_MS = 100000 };

static struct page_rig rig;
static struct browser *const browser = &rig.browser;

static int open_all(void **state)
{
    (void)state;
    return page_open(&rig, (const char *const[]){"--demo", "--lab", NULL});
}

static int close_all(void **state)
{
    (void)state;
    return page_close(&rig);
}

#define PANE(i) "document.querySelectorAll('.pane')[" #i "]"
#define ENDED                                                                                      \
    "[...document.querySelectorAll('.pane')].every(pane => /good|bad/.test(pane.dataset.state) "   \
    "&& "                                                                                          \
    "/[✓✗]/.test(pane.querySelector('.verdict').textContent)) && "                             \
    "!document.getElementById('save').disabled"
#define TOLD(i, words) "/" words "/.test(" PANE(i) ".querySelector('.told').textContent)"

#define INTERRUPTED "held just before its write.*got in, read and decided.*It wrote"

/* The same twice: under a fence, and before that without. */
static void struck_sale(const char *fault, const char *watchdog)
{
    char path[300];
    snprintf(path, sizeof path,
             "/?a=redis-token&a_lease=1000&a_watchdog=%s&a_fence=off&b=redis-token&b_lease=1000"
             "&b_watchdog=%s&b_fence=on&buyers=400&stock=100&countdown=0&lang=en&fault=%s",
             watchdog, watchdog, fault);
    assert_true(page_go(&rig, path));
    page_click(&rig, "#start");
    assert_true(browser_await(browser, ENDED, SALE_MS));
    assert_true(browser_is(browser, TOLD(0, INTERRUPTED) " && " TOLD(1, INTERRUPTED)));
    assert_true(browser_is(browser, TOLD(0, "Lost updates in the ledger: \\d") " && " TOLD(
                                        1, "no lost update: the fence")));
    assert_true(browser_is(browser, PANE(0) ".dataset.state === 'bad'"));
    assert_true(
        browser_number(browser, "+" PANE(0) ".querySelector('[data-is=lost]').textContent") > 0);
    assert_true(browser_is(browser, PANE(1) ".dataset.state === 'good'"));
    assert_int_equal(browser_errors(browser), 0);
}

static void a_holder_paused_beyond_its_lease_costs_a_sale_unless_fenced(void **state)
{
    (void)state;
    struck_sale("pause", "off");
    assert_true(browser_is(browser, TOLD(0, "lease has \\d+ ms left")));
    assert_true(page_picture(&rig, "paused", 1280, 720));
}

/* The watchdog cannot help: what is gone cannot be renewed. */
static void a_flushed_lock_costs_a_sale_unless_fenced(void **state)
{
    (void)state;
    struck_sale("flush", "on");
    assert_true(browser_is(browser, TOLD(0, "deleted from the lock server")));
}

static void a_watched_lock_outlasts_its_holders_pause(void **state)
{
    (void)state;
    assert_true(page_go(&rig, "/?a=redis-token&a_lease=4000&a_watchdog=on&a_fence=off&b=none"
                              "&buyers=200&stock=100&countdown=0&lang=en&fault=pause"));
    page_click(&rig, "#start");
    assert_true(browser_await(browser, ENDED, SALE_MS));
    assert_true(
        browser_is(browser, TOLD(0, "watchdog renewed.*It wrote") " && " TOLD(1, "no lock")));
    assert_true(browser_is(browser, PANE(0) ".dataset.state === 'good'"));
    assert_true(browser_is(browser, PANE(1) ".dataset.state === 'bad'"));
    assert_int_equal(browser_errors(browser), 0);
}

static bool answers(struct sandbox_server *server)
{
    return sandbox_answers(NULL, server->port, "GET /readyz HTTP/1.0\r\n\r\n", "HTTP/1.1 200 ",
                           1000);
}

/* What `make serve` starts: killed from its own page, it is there again, with the lock in Redis and
 * the pieces sold in the store. */
static void who_buys_after_a_kill_waits_for_the_dead_ones_lease(void **state)
{
    (void)state;
    char url[400];
    struct sandbox_server *serve = sandbox_add(rig.shop.sandbox, "serve", answers);
    assert_non_null(serve);
    serve->port = sandbox_free_port();
    sandbox_arg(serve, "%s", shop_binary("loadgen"));
    sandbox_arg(serve, "serve");
    sandbox_arg(serve, "--listen=127.0.0.1:%d", serve->port);
    assert_int_equal(sandbox_start(serve), 0);
    snprintf(url, sizeof url,
             "http://127.0.0.1:%d/?a=redis-token&a_lease=3000&a_watchdog=off&b=none"
             "&buyers=200&stock=100&countdown=0&lang=en&fault=kill",
             serve->port);
    browser_go(browser, url);
    assert_true(browser_await(browser, "document.body.dataset.ready === 'yes'", PAGE_WAIT_MS));
    page_click(&rig, "#start");
    assert_true(browser_await(
        browser, TOLD(0, "SIGKILL.*stands for [\\d,]+ ms more.*had to wait [\\d,]+ ms, and bought"),
        SALE_MS));
    assert_true(browser_await(
        browser,
        TOLD(1, "SIGKILL.*no lock.*and bought") " && " PANE(1) ".dataset.state === 'stopped'",
        SALE_MS));
    assert_true(browser_is(browser, PANE(0) ".dataset.state === 'stopped'"));
    assert_int_equal(
        browser_number(browser, "+" PANE(0) ".querySelector('[data-is=sold]').textContent"), 1);
    assert_true(page_picture(&rig, "killed", 1280, 720));
    browser_errors(browser); /* those of the requests that died with it */
    assert_int_equal(sandbox_signal(serve, SIGTERM), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_holder_paused_beyond_its_lease_costs_a_sale_unless_fenced),
        cmocka_unit_test(a_flushed_lock_costs_a_sale_unless_fenced),
        cmocka_unit_test(a_watched_lock_outlasts_its_holders_pause),
        cmocka_unit_test(who_buys_after_a_kill_waits_for_the_dead_ones_lease),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
