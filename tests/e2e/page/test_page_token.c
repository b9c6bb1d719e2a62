/* The pages of a service that is not open: they are served, and say that a token is wanted. */
#include "browser.h"
#include "callers.h"
#include "shop.h"
#include "tests.h"

#include <stdio.h>

enum { WAIT_MS = 60000 };

static struct sandbox_server *service;
static struct browser browser;

static int open_all(void **state)
{
    (void)state;
    callers_open();
    service = callers_service("closed", (const char *const[]){"--tokens", callers_file, NULL});
    return browser_open(&browser, callers_sandbox);
}

static int close_all(void **state)
{
    (void)state;
    browser_close(&browser);
    const bool clean = shop_stop(service);
    callers_close();
    return clean ? 0 : -1;
}

GROUP_FIXTURE(open_all, close_all);

TEST_THAT(a_page_without_a_token_says_so)
{
    static const char *const pages[] = {"/", "/web/steps.html"};
    for (size_t i = 0; i < 2; i++) {
        char url[CALLERS_TEXT];
        snprintf(url, sizeof url, "http://127.0.0.1:%d%s?lang=en", service->port, pages[i]);
        browser_go(&browser, url);
        assert_true(browser_await(
            &browser, "/wants a token/.test(document.getElementById('message').textContent)",
            WAIT_MS));
    }
}
