#include "browser.h"
#include "process.h"
#include "raw_http.h"
#include "sandbox_process.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* No script has a bound of its own: what hangs is ended by tests/run.sh. By itself the driver gives
 * a script 30 s, which a busy machine does not keep. */
enum { ANSWER_MS = 3600000, LOOK_EVERY_MS = 50, PATH_LONGEST = 256 };

static bool is_ready(struct sandbox_server *server)
{
    static const char question[] =
        "GET /status HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    return sandbox_answers(NULL, server->port, question, "HTTP/1.1 200 ", 1000);
}

/* Sends one command; takes body. Returns the answer's "value", to be released. NULL with a message:
 * refused. */
static json_t *command(struct browser *browser, const char *method, const char *path, json_t *body)
{
    struct raw_reply reply;
    char *text = body != NULL ? json_dumps(body, JSON_COMPACT) : NULL, *request;
    int n =
        asprintf(&request,
                 "%s %s%s%s HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n"
                 "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                 method, browser->session[0] != '\0' ? "/session/" : "/session", browser->session,
                 path, text != NULL ? strlen(text) : 0, text != NULL ? text : "");
    int fd = raw_connect(browser->driver->port);
    assert(n > 0 && fd >= 0);
    raw_send(fd, request, (size_t)n);
    const int status = raw_read(fd, 0, ANSWER_MS, &reply);
    json_t *answer = status > 0 ? json_loads(reply.body, 0, NULL) : NULL;
    json_t *value = json_incref(json_object_get(answer, "value"));
    if (status != 200) {
        fprintf(stderr, "webdriver: %s %s: %d %.600s\n", method, path, status,
                status > 0 ? reply.body : "");
        json_decref(value);
        value = NULL;
    }
    json_decref(answer);
    json_decref(body);
    raw_free(&reply);
    free(text);
    free(request);
    close(fd);
    return value;
}

/* Sends a command that must succeed; ignores its value. */
static void order(struct browser *browser, const char *method, const char *path, json_t *body)
{
    json_t *value = command(browser, method, path, body);
    assert(value != NULL);
    json_decref(value);
}

static json_t *capabilities(const char *profile)
{
    /* The pipe makes the browser end with its driver, even if the driver is killed. */
    static const char *const flags[] = {"--headless",
                                        "--remote-debugging-pipe",
                                        "--no-sandbox",
                                        "--disable-gpu",
                                        "--disable-dev-shm-usage",
                                        "--no-first-run",
                                        "--disable-sync",
                                        "--hide-scrollbars",
                                        "--disable-background-networking",
                                        "--disable-component-update"};
    char folder[PATH_LONGEST + 32];
    json_t *list = json_array();
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        json_array_append_new(list, json_string(flags[i]));
    snprintf(folder, sizeof folder, "--user-data-dir=%s", profile);
    json_array_append_new(list, json_string(folder));
    return json_pack("{s:{s:{s:s, s:{s:i}, s:{s:s}, s:{s:o}}}}", "capabilities", "alwaysMatch",
                     "browserName", "chrome", "timeouts", "script", ANSWER_MS, "goog:loggingPrefs",
                     "browser", "SEVERE", "goog:chromeOptions", "args", list);
}

int browser_open(struct browser *browser, struct sandbox *sandbox)
{
    char profile[PATH_LONGEST];
    *browser = (struct browser){.driver = sandbox_add(sandbox, "chromedriver", is_ready)};
    if (browser->driver == NULL)
        return -1;
    browser->driver->port = sandbox_free_port();
    sandbox_arg(browser->driver, "chromedriver");
    sandbox_arg(browser->driver, "--port=%d", browser->driver->port);
    if (sandbox_start(browser->driver) != 0)
        return -1;
    snprintf(profile, sizeof profile, "%s/profile", sandbox_dir(sandbox));
    json_t *session = command(browser, "POST", "", capabilities(profile));
    const char *id = json_string_value(json_object_get(session, "sessionId"));
    if (id != NULL)
        snprintf(browser->session, sizeof browser->session, "%s", id);
    json_decref(session);
    return browser->session[0] != '\0' ? 0 : -1;
}

void browser_close(struct browser *browser)
{
    if (browser->session[0] != '\0')
        json_decref(command(browser, "DELETE", "", NULL));
    browser->session[0] = '\0';
}

void browser_size(struct browser *browser, int width, int height)
{
    order(browser, "POST", "/goog/cdp/execute",
          json_pack("{s:s, s:{s:i, s:i, s:i, s:b}}", "cmd", "Emulation.setDeviceMetricsOverride",
                    "params", "width", width, "height", height, "deviceScaleFactor", 1, "mobile",
                    0));
}

void browser_dark(struct browser *browser, bool dark)
{
    order(browser, "POST", "/goog/cdp/execute",
          json_pack("{s:s, s:{s:[{s:s, s:s}]}}", "cmd", "Emulation.setEmulatedMedia", "params",
                    "features", "name", "prefers-color-scheme", "value", dark ? "dark" : "light"));
}

void browser_go(struct browser *browser, const char *url)
{
    order(browser, "POST", "/url", json_pack("{s:s}", "url", url));
}

json_t *browser_run(struct browser *browser, const char *script)
{
    json_t *value = command(browser, "POST", "/execute/sync",
                            json_pack("{s:s, s:[]}", "script", script, "args"));
    assert(value != NULL);
    return value;
}

static json_t *evaluate(struct browser *browser, const char *expression)
{
    char *script;
    int n = asprintf(&script, "return %s;", expression);
    assert(n > 0);
    json_t *value = browser_run(browser, script);
    free(script);
    return value;
}

bool browser_is(struct browser *browser, const char *expression)
{
    json_t *value = evaluate(browser, expression);
    const bool is = json_is_true(value);
    json_decref(value);
    return is;
}

int64_t browser_number(struct browser *browser, const char *expression)
{
    json_t *value = evaluate(browser, expression);
    const int64_t number = json_is_number(value) ? (int64_t)json_number_value(value) : INT64_MIN;
    json_decref(value);
    return number;
}

bool browser_await(struct browser *browser, const char *expression, int64_t wait_ms)
{
    const int64_t until_ms = test_now_ms() + wait_ms;
    while (!browser_is(browser, expression)) {
        if (test_now_ms() > until_ms)
            return false;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_EVERY_MS * 1000000L}, NULL);
    }
    return true;
}

double browser_metric(struct browser *browser, const char *name)
{
    double number = -1;
    size_t i;
    json_t *metric;
    order(browser, "POST", "/goog/cdp/execute",
          json_pack("{s:s, s:{s:s}}", "cmd", "Performance.enable", "params", "timeDomain",
                    "threadTicks"));
    json_t *answer = command(browser, "POST", "/goog/cdp/execute",
                             json_pack("{s:s, s:{}}", "cmd", "Performance.getMetrics", "params"));
    json_array_foreach(json_object_get(answer, "metrics"), i, metric)
    {
        if (strcmp(json_string_value(json_object_get(metric, "name")), name) == 0)
            number = json_number_value(json_object_get(metric, "value"));
    }
    json_decref(answer);
    assert(number >= 0);
    return number;
}

struct browser_frames browser_frames(struct browser *browser, int64_t for_ms)
{
    char script[600];
    snprintf(script, sizeof script,
             "return new Promise((done) => {"
             "  let frames = 0, longest = 0, last, begin;"
             "  const frame = (now) => {"
             "    if (begin === undefined) begin = now;"
             "    if (last !== undefined) { frames++; longest = Math.max(longest, now - last); }"
             "    last = now;"
             "    if (now - begin < %lld) requestAnimationFrame(frame);"
             "    else done([frames / (now - begin) * 1000, longest]);"
             "  };"
             "  requestAnimationFrame(frame);"
             "});",
             (long long)for_ms);
    json_t *both = browser_run(browser, script);
    const struct browser_frames frames = {
        .per_s = json_number_value(json_array_get(both, 0)),
        .longest_ms = json_number_value(json_array_get(both, 1)),
    };
    json_decref(both);
    return frames;
}

void browser_type(struct browser *browser, const char *keys)
{
    json_t *element = command(browser, "GET", "/element/active", NULL);
    const char *name;
    json_t *id;
    char path[PATH_LONGEST] = "";
    json_object_foreach(element, name, id)
    {
        snprintf(path, sizeof path, "/element/%s/value", json_string_value(id));
    }
    json_decref(element);
    order(browser, "POST", path, json_pack("{s:s}", "text", keys));
}

size_t browser_errors(struct browser *browser)
{
    json_t *list = command(browser, "POST", "/se/log", json_pack("{s:s}", "type", "browser"));
    size_t i;
    json_t *entry;
    assert(list != NULL);
    json_array_foreach(list, i, entry)
    {
        fprintf(stderr, "console: %s\n", json_string_value(json_object_get(entry, "message")));
    }
    const size_t n = json_array_size(list);
    json_decref(list);
    return n;
}

static void write_base64(const char *text, FILE *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned bits = 0;
    int n = 0;
    for (; *text != '\0' && *text != '='; text++) {
        const char *digit = strchr(digits, *text);
        assert(digit != NULL);
        bits = bits << 6 | (unsigned)(digit - digits);
        n += 6;
        if (n >= 8)
            putc((int)(bits >> (n -= 8) & 0xff), out);
    }
}

void browser_picture(struct browser *browser, const char *file)
{
    json_t *picture = command(browser, "POST", "/goog/cdp/execute",
                              json_pack("{s:s, s:{s:s, s:b}}", "cmd", "Page.captureScreenshot",
                                        "params", "format", "png", "captureBeyondViewport", 1));
    const char *data = json_string_value(json_object_get(picture, "data"));
    FILE *out = data != NULL ? fopen(file, "w") : NULL;
    assert(out != NULL);
    write_base64(data, out);
    const int closed = fclose(out);
    assert(closed == 0);
    json_decref(picture);
}

void browser_downloads(struct browser *browser, const char *folder)
{
    order(browser, "POST", "/goog/cdp/execute",
          json_pack("{s:s, s:{s:s, s:s}}", "cmd", "Browser.setDownloadBehavior", "params",
                    "behavior", "allow", "downloadPath", folder));
}

void browser_window(struct browser *browser, char ret_id[BROWSER_WINDOW_MAX])
{
    json_t *id = command(browser, "GET", "/window", NULL);
    assert(json_is_string(id));
    snprintf(ret_id, BROWSER_WINDOW_MAX, "%s", json_string_value(id));
    json_decref(id);
}

void browser_to_window(struct browser *browser, const char *id)
{
    order(browser, "POST", "/window", json_pack("{s:s}", "handle", id));
}

void browser_new_window(struct browser *browser, char ret_id[BROWSER_WINDOW_MAX])
{
    json_t *made = command(browser, "POST", "/window/new", json_pack("{s:s}", "type", "window"));
    const char *id = json_string_value(json_object_get(made, "handle"));
    assert(id != NULL);
    snprintf(ret_id, BROWSER_WINDOW_MAX, "%s", id);
    json_decref(made);
}

void browser_next_window(struct browser *browser, char ret_id[BROWSER_WINDOW_MAX])
{
    char here[BROWSER_WINDOW_MAX];
    json_t *list = NULL;
    const int64_t until_ms = test_now_ms() + ANSWER_MS;
    browser_window(browser, here);
    do {
        json_decref(list);
        list = command(browser, "GET", "/window/handles", NULL);
        assert(test_now_ms() < until_ms);
    } while (json_array_size(list) < 2);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *id = json_string_value(json_array_get(list, i));
        if (strcmp(id, here) != 0)
            snprintf(ret_id, BROWSER_WINDOW_MAX, "%s", id);
    }
    json_decref(list);
    browser_to_window(browser, ret_id);
}

void browser_end_window(struct browser *browser, const char *next)
{
    order(browser, "DELETE", "/window", NULL);
    browser_to_window(browser, next);
}
