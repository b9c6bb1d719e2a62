/*
 * What the live page costs. In the browser, while a sale is shown: frames per second, the share of
 * a core that its script takes, and that of all its work. In the service: orders per second for one
 * hot item (lanes on, redis-token, synchronous=FULL, 64 connections) with 100 listeners beside
 * none, two services in turn, medians; a ratio is the median of those of neighbouring runs.
 *
 *     BUILD=build build/bench/bench_page [REPEAT] [RUN_MS] > build/bench/page.json
 */
#include "bench.h"
#include "bench_orders.h"
#include "page_rig.h"
#include "process.h"
#include "raw_http.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum {
    LISTENERS = 100,
    CONNECTIONS = 64,
    WINDOW_MS = 2500,
    SALE_MS = 60000,
    SETTLE_MS = 500,
    READ_EVERY_MS = 100
};
/* A sale long enough for both windows, with more orders per second than are shown. */
#define SALE "/?lang=en&a=mutex&b=mutex&buyers=9000&stock=9000&rate=1000&countdown=0"

static struct browser *const browser = &page.browser;

static void wait_ms(int64_t ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* -- the page -----------------------------------------------------------------------------------
 */

struct shares {
    struct browser_frames frames;
    double events_per_s, script_percent, task_percent;
};

/* Another window: counting frames is script, too. */
static void count_work(struct shares *ret)
{
    const char *url = page.shop.service->url;
    const double events = bench_metric(url, "seckill_events_total"),
                 script_s = browser_metric(browser, "ScriptDuration"),
                 task_s = browser_metric(browser, "TaskDuration"),
                 begin_s = (double)test_now_ms() / 1e3;
    wait_ms(WINDOW_MS);
    const double took_s = (double)test_now_ms() / 1e3 - begin_s;
    ret->script_percent = (browser_metric(browser, "ScriptDuration") - script_s) / took_s * 100;
    ret->task_percent = (browser_metric(browser, "TaskDuration") - task_s) / took_s * 100;
    ret->events_per_s = (bench_metric(url, "seckill_events_total") - events) / took_s;
}

static struct shares watch_a_sale(void)
{
    struct shares shares;
    if (!page_go(SALE))
        bench_die("the page does not come");
    page_click("#start");
    if (!browser_await(browser, "document.querySelector('.lane') !== null", PAGE_WAIT_MS))
        bench_die("no sale begins");
    wait_ms(SETTLE_MS);
    bench_ruler();
    shares.frames = browser_frames(browser, WINDOW_MS);
    count_work(&shares);
    if (!browser_is(browser, "document.querySelector('.pane').dataset.state === 'running'"))
        bench_die("the sale was over too soon");
    if (!browser_await(browser, "!document.getElementById('start').disabled", SALE_MS))
        bench_die("the sale does not end");
    return shares;
}

static json_t *measure_page(int repeat)
{
    static const char *const names[] = {"frames_per_s", "longest_ms", "events_per_s",
                                        "script_percent", "task_percent"};
    enum { FIGURES = sizeof names / sizeof names[0] };
    double values[FIGURES][BENCH_REPEAT_MAX];
    if (page_open((const char *const[]){"--demo", NULL}) != 0)
        bench_die("no page");
    browser_size(browser, 1280, 720);
    for (int i = 0; i < repeat; i++) {
        const struct shares one = watch_a_sale();
        const double all[FIGURES] = {one.frames.per_s, one.frames.longest_ms, one.events_per_s,
                                     one.script_percent, one.task_percent};
        for (size_t f = 0; f < FIGURES; f++)
            values[f][i] = all[f];
    }
    if (page_close(NULL) != 0)
        bench_die("the service did not end well");
    json_t *figures = json_object();
    for (size_t f = 0; f < FIGURES; f++) {
        const double median = bench_median(values[f], repeat);
        json_object_set_new(figures, names[f], json_real(median));
        fprintf(stderr, "page: %-14s %8.1f (%.1f to %.1f)\n", names[f], median, values[f][0],
                values[f][repeat - 1]);
    }
    return figures;
}

/* -- the service --------------------------------------------------------------------------------
 */

/* Pages that listen, in a process of their own, which reads what comes and forgets it: seldom, as
 * they stand for pages on other machines. */
static pid_t start_listeners(int port)
{
    static const char ask[] = "GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    static char heard[65536];
    struct pollfd fds[LISTENERS];
    for (int i = 0; i < LISTENERS; i++) {
        fds[i] = (struct pollfd){.fd = raw_connect(port), .events = POLLIN};
        raw_send(fds[i].fd, ask, sizeof ask - 1);
    }
    for (; poll(fds, LISTENERS, -1) > 0; wait_ms(READ_EVERY_MS))
        for (int i = 0; i < LISTENERS; i++)
            if (fds[i].revents != 0 && read(fds[i].fd, heard, sizeof heard) <= 0)
                _exit(1); /* cut off: the figures would be of fewer */
    _exit(1);
}

/* User and system time of the process, which a busy machine does not change much. */
static double cpu_us(pid_t pid)
{
    char path[64], line[1024];
    long user = -1, kernel = -1;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    const char *rest = file != NULL && fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
    if (rest == NULL ||
        sscanf(rest, ") %*c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %ld %ld", &user, &kernel) != 2)
        bench_die("no CPU time of the service");
    fclose(file);
    return (double)(user + kernel) * 1e6 / (double)sysconf(_SC_CLK_TCK);
}

struct rival {
    const char *name;
    struct sandbox_server *service;
    double rates[BENCH_REPEAT_MAX], cpu_us[BENCH_REPEAT_MAX];
};

static void run_orders(struct rival *rival, int i, int run_ms)
{
    struct order_figures figures;
    bench_ruler();
    const double before_us = cpu_us(rival->service->pid);
    bench_orders(&(struct order_run){.url = rival->service->url,
                                     .item = rival->name,
                                     .connections = CONNECTIONS,
                                     .duration_ms = run_ms},
                 &figures);
    if (i < 0)
        return;
    rival->rates[i] = figures.per_s;
    rival->cpu_us[i] = (cpu_us(rival->service->pid) - before_us) / (double)figures.accepted;
}

static bool all_listen(void *url)
{
    return bench_metric(url, "seckill_events_listeners") == LISTENERS;
}

static json_t *measure_service(int repeat, int run_ms)
{
    static struct rival alone = {.name = "alone"}, watched = {.name = "watched"};
    double ratios[BENCH_REPEAT_MAX], cpu_ratios[BENCH_REPEAT_MAX];
    struct sandbox *sandbox;
    struct sandbox_server *redis = bench_redis(&sandbox);
    const char *const flags[] = {"--redis", redis->url, NULL};
    alone.service = bench_service(sandbox, alone.name, flags);
    watched.service = bench_service(sandbox, watched.name, flags);
    bench_put_item(alone.service->url, alone.name, "redis-token", 0);
    bench_put_item(watched.service->url, watched.name, "redis-token", 0);
    const pid_t listeners = start_listeners(watched.service->port);
    if (!wait_until(all_listen, watched.service->url, PAGE_WAIT_MS))
        bench_die("not all of them listen");
    for (int i = -1; i < repeat; i++) { /* once before, to warm up */
        run_orders(&alone, i, run_ms);
        run_orders(&watched, i, run_ms);
    }
    if (!all_listen(watched.service->url))
        bench_die("listeners were cut off");
    bench_stop(listeners);
    for (int i = 0; i < repeat; i++) {
        ratios[i] = watched.rates[i] / alone.rates[i];
        cpu_ratios[i] = watched.cpu_us[i] / alone.cpu_us[i];
    }
    bench_audit(alone.service->url, alone.name);
    bench_audit(watched.service->url, watched.name);
    sandbox_close(sandbox);
    const double ratio = bench_median(ratios, repeat), cpu_ratio = bench_median(cpu_ratios, repeat),
                 alone_per_s = bench_median(alone.rates, repeat),
                 watched_per_s = bench_median(watched.rates, repeat);
    fprintf(stderr,
            "service: %.0f orders/s with no listener, %.0f with %d; ratio %.3f (%.3f to %.3f)\n"
            "         its CPU time per order: ratio %.3f (%.3f to %.3f), %.1f us alone\n",
            alone_per_s, watched_per_s, LISTENERS, ratio, ratios[0], ratios[repeat - 1], cpu_ratio,
            cpu_ratios[0], cpu_ratios[repeat - 1], bench_median(alone.cpu_us, repeat));
    return json_pack("{s:i,s:f,s:f,s:f,s:f}", "listeners", LISTENERS, "alone_per_s", alone_per_s,
                     "watched_per_s", watched_per_s, "ratio", ratio, "cpu_ratio", cpu_ratio);
}

int main(int argc, char **argv)
{
    int repeat = argc > 1 ? atoi(argv[1]) : 5, run_ms = argc > 2 ? atoi(argv[2]) : 2000;
    if (repeat < 1 || repeat > BENCH_REPEAT_MAX || run_ms < 200)
        bench_die("usage: bench_page [REPEAT 1..25] [RUN_MS 200..]");
    json_t *shown = measure_page(repeat), *service = measure_service(repeat, run_ms);
    bench_print(
        json_pack("{s:o,s:o,s:f}", "page", shown, "service", service, "noise", bench_noise()));
    return 0;
}
