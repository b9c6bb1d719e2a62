/* `loadgen serve --follow`: a class goes along beside the live page. A presenter and a phone, each
 * a window, use the addresses that are printed and the QR code on the presenter's page. */
#include "museum_rig.h"
#include "sandbox_process.h"
#include "server_log.h"
#include "shop.h"
#include "steady.h"
#include "tests.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { URL_MAX = 400, LOOK_MS = 20 };
enum window { PRESENTER, PHONE, WINDOWS };

static char windows[WINDOWS][BROWSER_WINDOW_MAX];
static enum window current;
static struct sandbox_server *serve;
static char class_url[URL_MAX], presenter_url[URL_MAX]; /* as printed */

/* -- what a user does -------------------------------------------------------------------------- */

/* The addresses of the class are the last that is printed. */
static bool has_printed_addresses(struct sandbox_server *server)
{
    char end[2];
    const char *text = strstr(server_log(server), "The class follows at ");
    return text != NULL && sscanf(text, "The class follows at %399s%*[^:]:%*[^:]: %399s%1[\n]",
                                  class_url, presenter_url, end) == 3;
}

/* A PATH with what serve needs for the guards of Redis: the class needs no other server. */
static bool make_path(const char *folder)
{
    static const char *const programs[] = {"env", "redis-server"};
    char target[MUSEUM_PATH_MAX], link[2 * MUSEUM_PATH_MAX];
    bool made = mkdir(folder, 0700) == 0;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        snprintf(target, sizeof target, "/usr/bin/%s", programs[i]);
        snprintf(link, sizeof link, "%s/%s", folder, programs[i]);
        made = made && symlink(target, link) == 0;
    }
    return made;
}

static int start_serve(void)
{
    char path[MUSEUM_PATH_MAX];
    snprintf(path, sizeof path, "%s/bin", sandbox_dir(museum.sandbox));
    serve = sandbox_add(museum.sandbox, "serve", has_printed_addresses);
    if (serve == NULL || !make_path(path))
        return -1;
    serve->ready_ms = MUSEUM_WAIT_MS;
    serve->port = sandbox_free_port();
    sandbox_arg(serve, "env");
    sandbox_arg(serve, "PATH=%s", path);
    sandbox_arg(serve, "%s", shop_binary("loadgen"));
    sandbox_arg(serve, "serve");
    sandbox_arg(serve, "--listen=127.0.0.1:%d", serve->port);
    sandbox_arg(serve, "--site=%s", museum.folder);
    sandbox_arg(serve, "--follow=127.0.0.1:0");
    return sandbox_start(serve);
}

/* One scene, lost-update: the presenter's key 1. */
static bool make_site(void)
{
    char file[MUSEUM_PATH_MAX];
    snprintf(file, sizeof file, "%s/lab.json", sandbox_dir(museum.sandbox));
    if (museum_run("hazards", (const char *const[]){"run", "--hazard", "lost-update", "--guard",
                                                    "none", "--json", file, NULL}) == 0)
        museum.lab = json_load_file(file, 0, NULL);
    if (museum.lab != NULL && museum_site(museum.lab, museum.folder) == 0)
        return true;
    fprintf(stderr, "no site: %s", museum.output);
    return false;
}

static int open_all(void **state)
{
    if (museum_open_empty(state) != 0 || !make_site() || start_serve() != 0)
        return -1;
    browser_window(&museum.browser, windows[PRESENTER]);
    browser_new_window(&museum.browser, windows[PHONE]);
    return 0;
}

/* The browser, with this window as the current one. */
static struct browser *in(enum window window)
{
    if (window != current)
        browser_to_window(&museum.browser, windows[window]);
    current = window;
    return &museum.browser;
}

static void go(enum window window, const char *address)
{
    browser_go(in(window), address);
    assert_true(browser_await(in(window),
                              "document.readyState === 'complete' && Museum.player !== undefined",
                              MUSEUM_WAIT_MS));
}

static void await_step(enum window window, int step)
{
    char expression[200];
    snprintf(expression, sizeof expression,
             "Museum.player.players.get('lost-update')?.k === %d"
             " && document.querySelector('#lost-update.current') !== null",
             step);
    if (!browser_await(in(window), expression, MUSEUM_WAIT_MS))
        fail_msg("the page does not show step %d", step);
}

static void await_text(enum window window, const char *text)
{
    char expression[200];
    snprintf(expression, sizeof expression,
             "document.querySelector('#class').textContent.includes('%s')", text);
    if (!browser_await(in(window), expression, MUSEUM_WAIT_MS))
        fail_msg("the page does not say '%s'", text);
}

/* The status that a page of this window gets from a path of its own address. */
static int64_t status_of(enum window window, const char *path, const char *options)
{
    char script[300];
    snprintf(script, sizeof script, "return fetch('%s', %s).then(({ status }) => status);", path,
             options);
    json_t *status = browser_run(in(window), script);
    const int64_t result = json_integer_value(status);
    json_decref(status);
    return result;
}

/* -- claims ------------------------------------------------------------------------------------ */

GROUP_FIXTURE(open_all, museum_close);

TEST_THAT(a_phone_goes_to_the_address_of_the_code_and_shows_the_presenter_s_step)
{
    char code[URL_MAX];
    browser_size(in(PRESENTER), 1280, 720);
    go(PRESENTER, presenter_url);
    assert_true(browser_await(
        in(PRESENTER), "document.querySelector('#class img').naturalWidth > 0", MUSEUM_WAIT_MS));
    assert_true(museum_read_code(code, sizeof code));
    assert_string_equal(code, class_url);
    browser_size(in(PHONE), 390, 844);
    go(PHONE, code);
    await_text(PHONE, "Not begun");
    await_text(PRESENTER, "1 follow");
    browser_type(in(PRESENTER), "1");
    await_step(PHONE, 0);
    browser_type(in(PRESENTER), "\xEE\x80\x94"); /* right arrow */
    browser_type(in(PRESENTER), "\xEE\x80\x94");
    await_step(PRESENTER, 2);
    await_step(PHONE, 2);
    await_text(PHONE, "what the presenter shows");
    assert_int_equal(browser_errors(in(PHONE)) + browser_errors(in(PRESENTER)), 0);
}

/* From the test before: both show step 2. */
TEST_THAT(a_phone_moves_nobody_and_finds_no_way_to_the_service)
{
    browser_type(in(PHONE), "\xEE\x80\x92"); /* left arrow */
    await_step(PHONE, 1);
    await_text(PHONE, "on your own");
    assert_int_equal(
        status_of(PHONE, "/class/position",
                  "{ method: 'POST', body: '{\"page\":\"index.html\",\"scene\":\"lost-update\","
                  "\"step\":0}' }"),
        403);
    assert_int_equal(status_of(PHONE, "/v1/guards", "{}"), 404);
    assert_int_equal(status_of(PHONE, "/v1/items/1/orders", "{ method: 'POST', body: '{}' }"), 405);
    browser_errors(in(PHONE)); /* the refused requests */
    browser_type(in(PRESENTER), "\xEE\x80\x94");
    await_step(PRESENTER, 3);
    await_step(PHONE, 1);
    /* The service is where its users expect it, and sells. */
    assert_int_equal(client_number(serve->port, "/v1/items/1", "stock"), 100);
}

/* Last: all has ended then. */
TEST_THAT(ctrl_c_ends_the_class_with_the_service)
{
    int port = 0;
    const int64_t until_ms = steady_ms() + MUSEUM_WAIT_MS;
    assert_int_equal(sscanf(class_url, "http://127.0.0.1:%d/", &port), 1);
    assert_true(sandbox_port_taken(port));
    assert_int_equal(sandbox_signal(serve, SIGINT), 0);
    while (sandbox_alive(serve) && steady_ms() < until_ms)
        steady_sleep_ms(LOOK_MS);
    assert_false(sandbox_alive(serve));
    assert_false(sandbox_port_taken(port));
    await_text(PHONE, "No connection to the class");
}
