/* What the page says when it cannot do as wished, or when service or servers are away: the case,
 * with what was on the screen still there. */
#include "page_rig.h"
#include "process.h"
#include "sandbox_process.h"
#include "tests.h"

#include <signal.h>
#include <stdio.h>

static struct browser *const browser = &page.browser;

/* A sale of 90 s, if nothing stops it. */
#define SLOW           "/?a=redis-token&b=mutex&buyers=900&rate=10&stock=900&countdown=0&lang=en"
#define NOTICES(words) "/" words "/.test(document.getElementById('notices').textContent)"
#define SOLD           FIGURE(0, "sold")

static void awaits(const char *expression)
{
    if (browser_await(browser, expression, PAGE_WAIT_MS))
        return;
    json_t *text = browser_run(browser, "return document.body.innerText;");
    fprintf(stderr, "%s\n", json_string_value(text));
    json_decref(text);
    fail_msg("not so: %s", expression);
}

GROUP_FIXTURE(page_open_demo, page_close);

TEST_THAT(a_link_that_cannot_be_honoured_says_what_it_does_instead)
{
    assert_true(page_go("/?a=mutex&b=zk-sequential&buyers=100000&fault=earthquake&color=red"
                        "&b_fence=yes&lang=en"));
    awaits(NOTICES("b=zk-sequential: its server does not answer here; redis-token instead"));
    awaits(NOTICES("buyers=100000: must be 1 to 20,000; 2000 instead"));
    awaits(NOTICES("fault=earthquake: must be one of none, pause, flush, kill, cut; none instead"));
    awaits(NOTICES("b_fence=yes: must be one of on, off"));
    awaits(NOTICES("color: there is no such setting"));
    assert_true(browser_is(browser, "!" NOTICES("mutex")));
    assert_true(browser_is(browser, "document.querySelector('[name=b]').value === 'redis-token'"));
    page_choose("#lang", "zh");
    awaits(NOTICES("未能照链接设置.*buyers=100000：必须在 1 到 20,000 之间，改用 2000"));
    assert_true(page_picture("link", 390, 844));
    assert_true(browser_is(browser, "document.documentElement.scrollWidth <= innerWidth"));
    assert_true(page_go("/?a=none&b=redis-token&buyers=300&lang=en"));
    assert_true(browser_is(browser, NOTICES("^$")));
    browser_size(browser, 1280, 720);
}

TEST_THAT(so_does_a_link_to_steps)
{
    assert_true(page_go("/web/steps.html?ex=nothing&guard=zk-sequential&lease=-1&lang=en"));
    awaits(NOTICES("ex=nothing: must be one of lost-update, "));
    awaits(NOTICES("guard=zk-sequential: its server does not answer here; none instead"));
    awaits(NOTICES("lease=-1: must be 0 to 3,600,000; 0 instead"));
    assert_true(page_go("/web/steps.html?ex=locked&lang=en"));
    assert_true(browser_is(browser, NOTICES("^$")));
}

TEST_THAT(a_sale_of_another_page_is_shown_and_said_not_to_be_its_own)
{
    struct client client = {.port = page.shop.service->port, .fd = -1};
    struct reply reply;
    assert_true(page_go(SLOW));
    assert_int_equal(client_call(&client, "POST", "/v1/demo/sales", NULL,
                                 "{\"sales\":[{\"guard\":\"mutex\"}],\"buyers\":100,\"rate\":10,"
                                 "\"stock\":100}",
                                 PAGE_WAIT_MS, &reply),
                     201);
    client_close(&client);
    awaits(NOTICES("this page did not start"));
    awaits(PANE(0) ".querySelector('h2').textContent === 'mutex' && " SOLD " > 0");
    assert_true(browser_is(browser, "document.getElementById('start').disabled"));
    awaits(NOTICES("has ended") " && " PANE(0) ".dataset.state === 'good' && " SOLD " === 100");
    assert_true(browser_is(browser, "!document.getElementById('start').disabled"));
    assert_int_equal(browser_errors(browser), 0);
}

TEST_THAT(a_page_loaded_again_in_mid_sale_goes_on_showing_it)
{
    assert_true(page_go("/?a=mutex&b=none&buyers=200&rate=8&stock=200&countdown=0&lang=en"));
    page_click("#start");
    awaits(SOLD " > 2");
    assert_true(page_go("/?a=none&b=none&lang=en"));
    awaits(NOTICES("this page did not start"));
    awaits(PANE(0) ".querySelector('h2').textContent === 'mutex' && " SOLD " > 2");
    awaits(PANE(0) ".dataset.state === 'good' && " SOLD " === 200");
    assert_int_equal(browser_errors(browser), 0);
}

/* Redis stands still while a sale runs, and goes on. */
TEST_THAT(a_lock_server_that_does_not_answer_is_named)
{
    assert_true(page_go(SLOW));
    page_click("#start");
    awaits(SOLD " > 2");
    assert_int_equal(sandbox_signal(page.shop.redis, SIGSTOP), 0);
    const bool named =
        browser_await(browser, TOLD(0, "server of redis-token does not answer"), PAGE_WAIT_MS);
    const bool kept = browser_is(browser, SOLD " > 2 && " PANE(0) ".dataset.state === 'running'");
    assert_int_equal(sandbox_signal(page.shop.redis, SIGCONT), 0);
    assert_true(named);
    assert_true(kept);
    awaits(TOLD(0, "server of redis-token answers again"));
    awaits(FIGURE(0, "failures") " > 0");
}

/* Last: the service is gone then. The sale above still runs. */
TEST_THAT(a_service_that_is_gone_is_named_and_what_was_seen_stays)
{
    awaits(SOLD " > 3");
    assert_int_equal(sandbox_signal(page.shop.service, SIGTERM), 0);
    awaits(NOTICES("The service does not answer"));
    awaits(PANE(0) ".dataset.state === 'broken' && " SOLD " > 3");
    awaits(
        "/broken off: \\d+ of 900 sold/.test(" PANE(0) ".querySelector('.verdict').textContent)");
    assert_true(page_picture("gone", 1280, 720));
    browser_errors(browser); /* says that it is gone */
}
