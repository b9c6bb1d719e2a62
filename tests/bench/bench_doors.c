/*
 * What a neighbour feels of clients that misbehave. The neighbour sends orders of one item, an open
 * load, once alone and once beside the others, every other time in the other order, so that a
 * machine that gets busier favours neither; its p99 then and now, medians; the ratio is the median
 * of those of neighbouring runs. Meanwhile GET /livez is asked 50 times a second on new
 * connections. All runs on the same cores, so the others' own work counts, too. The disturbances:
 *
 *   flood       audits of the whole ledger, closed as soon as they are sent: 10,500, then again
 *   holders     10,000 connections that say nothing, opened again when they are ended
 *   listeners   256 listeners to events that do not read
 *   slow        1,000 clients that send a byte of a request ten times a second
 *
 *     BUILD=build build/bench/bench_doors [REPEAT] [RUN_MS] [DISTURBANCE] > build/bench/doors.json
 */
#include "bench.h"
#include "bench_orders.h"
#include "process.h"
#include "raw_http.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum {
    FLOOD = 10500,
    HOLDERS = 10000,
    LISTENERS = 256,
    SLOW = 1000,
    CONNECTIONS = 16, /* of the neighbour */
    PER_S = 500,
    LEDGER_MS = 5000, /* of orders as fast as they go: what an audit has to read */
    PROBE_EVERY_MS = 20,
    PROBES_MAX = 1 << 16,
    SETTLE_MS = 500,
    GONE_MS = 60000
};

static void wait_ms(int64_t ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* -- the disturbances: each in a process of its own, until it is ended ---------------------------
 */

static void flood(int port)
{
    static const char ask[] = "GET /v1/audit HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    for (;;) {
        for (int i = 0; i < FLOOD; i++) {
            int fd = raw_connect(port);
            if (fd < 0)
                continue;
            raw_send(fd, ask, sizeof ask - 1);
            close(fd);
        }
    }
}

static bool is_ended(int fd)
{
    char byte;
    return fd < 0 || recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

static void hold(int port)
{
    static int fds[HOLDERS];
    memset(fds, -1, sizeof fds);
    for (;; wait_ms(100)) {
        for (int i = 0; i < HOLDERS; i++) {
            if (!is_ended(fds[i]))
                continue;
            if (fds[i] >= 0)
                close(fds[i]);
            fds[i] = raw_connect(port);
        }
    }
}

static void listen_without_reading(int port)
{
    static const char ask[] = "GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    for (int i = 0; i < LISTENERS; i++) {
        int fd = raw_connect(port);
        raw_send(fd, ask, sizeof ask - 1);
    }
    for (;;)
        pause();
}

static void drip(int port)
{
    static const char text[] = "POST /v1/items/1/orders HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "
                               "0123456789012345678901234567890123456789012345678901234567890";
    static int fds[SLOW];
    static size_t sent[SLOW];
    memset(fds, -1, sizeof fds);
    for (;; wait_ms(100)) {
        for (int i = 0; i < SLOW; i++) {
            if (is_ended(fds[i])) {
                if (fds[i] >= 0)
                    close(fds[i]);
                fds[i] = raw_connect(port);
                sent[i] = 0;
            }
            if (fds[i] >= 0)
                raw_send(fds[i], &text[sent[i]++ % (sizeof text - 1)], 1);
        }
    }
}

struct disturbance {
    const char *name;
    void (*run)(int port);
};

static const struct disturbance disturbances[] = {
    {"flood", flood}, {"holders", hold}, {"listeners", listen_without_reading}, {"slow", drip}};
enum { DISTURBANCES = sizeof disturbances / sizeof disturbances[0] };

static pid_t start(const struct disturbance *disturbance, int port)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    struct rlimit limit;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    disturbance->run(port);
    _exit(1);
}

/* -- /livez ------------------------------------------------------------------------------------ */

static struct {
    int port;
    atomic_bool stop;
    double took_ms[PROBES_MAX];
    int n, unanswered;
} probe;

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void *ask_livez(void *unused)
{
    static const char ask[] = "GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    (void)unused;
    for (; !atomic_load(&probe.stop) && probe.n < PROBES_MAX; wait_ms(PROBE_EVERY_MS)) {
        struct raw_reply reply;
        const int64_t began_us = now_us();
        int fd = raw_connect(probe.port);
        raw_send(fd, ask, sizeof ask - 1);
        if (raw_read(fd, 0, RAW_WAIT_MS, &reply) != 200)
            probe.unanswered++;
        probe.took_ms[probe.n++] = (double)(now_us() - began_us) / 1000;
        raw_free(&reply);
        close(fd);
    }
    return NULL;
}

/* -- one run ----------------------------------------------------------------------------------- */

struct figures {
    double p99_us, livez_p99_ms, livez_max_ms;
    int unanswered;
    uint64_t others; /* orders that were not accepted */
};

static void measure(const struct sandbox_server *service, int run_ms, struct figures *ret)
{
    struct order_figures orders;
    pthread_t prober;
    bench_ruler();
    probe.port = service->port;
    probe.n = probe.unanswered = 0;
    atomic_store(&probe.stop, false);
    if (pthread_create(&prober, NULL, ask_livez, NULL) != 0)
        bench_die("no thread");
    bench_orders(&(struct order_run){.url = service->url,
                                     .item = "1",
                                     .connections = CONNECTIONS,
                                     .per_s = PER_S,
                                     .duration_ms = run_ms,
                                     .may_refuse = true},
                 &orders);
    atomic_store(&probe.stop, true);
    pthread_join(prober, NULL);
    ret->p99_us = orders.p99_us;
    ret->others = orders.others + orders.dropped;
    ret->unanswered = probe.unanswered;
    bench_median(probe.took_ms, probe.n); /* sorts */
    ret->livez_p99_ms = probe.took_ms[probe.n * 99 / 100];
    ret->livez_max_ms = probe.took_ms[probe.n - 1];
}

/* No connection but the one that asks, and no operation. */
static bool all_are_gone(void *url)
{
    return bench_metric(url, "seckill_http_connections_open") <= 1 &&
           bench_metric(url, "seckill_accepted_operations") == 0;
}

static json_t *compare(struct sandbox_server *service, const struct disturbance *disturbance,
                       int repeat, int run_ms)
{
    double quiet[BENCH_REPEAT_MAX], beside[BENCH_REPEAT_MAX], ratios[BENCH_REPEAT_MAX];
    double livez_p99[BENCH_REPEAT_MAX], livez_max = 0;
    int unanswered = 0;
    uint64_t others = 0;
    for (int i = 0; i < repeat; i++) {
        struct figures figures, alone;
        if (i % 2 == 0)
            measure(service, run_ms, &alone);
        const pid_t pid = start(disturbance, service->port);
        wait_ms(SETTLE_MS);
        measure(service, run_ms, &figures);
        bench_stop(pid);
        if (!wait_until(all_are_gone, service->url, GONE_MS))
            bench_die("connections or operations are left");
        if (i % 2 == 1)
            measure(service, run_ms, &alone);
        quiet[i] = alone.p99_us;
        beside[i] = figures.p99_us;
        ratios[i] = beside[i] / quiet[i];
        livez_p99[i] = figures.livez_p99_ms;
        livez_max = figures.livez_max_ms > livez_max ? figures.livez_max_ms : livez_max;
        unanswered += figures.unanswered;
        others += figures.others;
    }
    const double ratio = bench_median(ratios, repeat), quiet_us = bench_median(quiet, repeat),
                 beside_us = bench_median(beside, repeat),
                 livez_ms = bench_median(livez_p99, repeat);
    fprintf(stderr,
            "%-10s p99 %7.0f us alone, %7.0f us beside; ratio %5.2f (%.2f to %.2f); /livez p99 "
            "%.1f ms, worst %.1f ms, unanswered %d; orders not taken %llu\n",
            disturbance->name, quiet_us, beside_us, ratio, ratios[0], ratios[repeat - 1], livez_ms,
            livez_max, unanswered, (unsigned long long)others);
    return json_pack("{s:s,s:f,s:f,s:f,s:f,s:f,s:i,s:I}", "disturbance", disturbance->name,
                     "quiet_p99_us", quiet_us, "p99_us", beside_us, "ratio", ratio, "livez_p99_ms",
                     livez_ms, "livez_max_ms", livez_max, "livez_unanswered", unanswered,
                     "orders_not_taken", (json_int_t)others);
}

int main(int argc, char **argv)
{
    int repeat = argc > 1 ? atoi(argv[1]) : 5, run_ms = argc > 2 ? atoi(argv[2]) : 3000;
    if (repeat < 1 || repeat > BENCH_REPEAT_MAX || run_ms < 200)
        bench_die("usage: bench_doors [REPEAT 1..25] [RUN_MS 200..] [DISTURBANCE]");
    struct sandbox *sandbox;
    struct order_figures orders;
    struct sandbox_server *redis = bench_redis(&sandbox);
    const char *const flags[] = {"--redis", redis->url, NULL};
    struct sandbox_server *service = bench_service(sandbox, "doors", flags);
    bench_put_item(service->url, "1", "redis-token", 0);
    bench_orders(
        &(struct order_run){
            .url = service->url, .item = "1", .connections = 64, .duration_ms = LEDGER_MS},
        &orders);
    const int64_t began_us = now_us();
    bench_audit(service->url, NULL);
    fprintf(stderr, "an audit of %llu orders takes %.0f ms\n", (unsigned long long)orders.accepted,
            (double)(now_us() - began_us) / 1000);
    json_t *all = json_array();
    for (size_t i = 0; i < DISTURBANCES; i++)
        if (argc < 4 || strcmp(argv[3], disturbances[i].name) == 0)
            json_array_append_new(all, compare(service, &disturbances[i], repeat, run_ms));
    bench_audit(service->url, NULL);
    sandbox_close(sandbox);
    bench_print(json_pack("{s:o,s:f}", "doors", all, "noise", bench_noise()));
    return 0;
}
