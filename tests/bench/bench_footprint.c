/*
 * What the service takes: time from start to ready, resident memory when idle, memory per request
 * that waits, size of the stripped binary, allocations per order by who asks for them.
 *
 * Waiting requests: the item's lock is held from outside, so that all of them are under way at
 * once; their connections are open, and each has been answered once, before the first figure is
 * taken. Allocations are counted by a preloaded malloc (peers/allocs.c), by the object that calls
 * it.
 *
 *     BUILD=build build/bench/bench_footprint [REPEAT] [WAITING] > build/bench/footprint.json
 */
#include "bench.h"
#include "bench_orders.h"
#include "peers/allocs.h"
#include "load.h"
#include "steady.h"
#include "redis.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <jansson.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TEXT = 1024, WAITING_MAX = 10000, RUN_MS = 2000, CONNECTIONS = 64 };

static struct sandbox *sandbox;
static struct sandbox_server *redis;

/* Starts it on a store of this name and waits until it is ready. prefix: environment, "NAME=value
 * NAME=value"; flags further. *ret_url is its URL, *ret_ms how long it took. */
static pid_t start(const char *prefix, const char *store, const char *flags, char *ret_url,
                   double *ret_ms)
{
    static const char listening[] = "listening on ";
    char command[2 * TEXT], line[SANDBOX_TEXT_MAX];
    snprintf(command, sizeof command,
             "exec env %s %s/seckilld --listen 127.0.0.1:0 --redis %s --db sqlite:%s/%s.db %s "
             "2>>%s/log",
             prefix, bench_build(), redis->url, sandbox_dir(sandbox), store, flags,
             sandbox_dir(sandbox));
    int64_t start_us = steady_us();
    pid_t pid =
        bench_start_peer((const char *const[]){"sh", "-c", command, NULL}, line, sizeof line);
    if (pid < 0 || strncmp(line, listening, sizeof listening - 1) != 0)
        bench_die("the service does not start");
    snprintf(ret_url, SANDBOX_TEXT_MAX, "%s", line + sizeof listening - 1);
    free(bench_get(ret_url, "/readyz"));
    *ret_ms = (double)(steady_us() - start_us) / 1e3;
    return pid;
}

static double resident_kb(pid_t pid)
{
    char path[64], line[256];
    double kb = -1;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "r");
    while (file && kb < 0 && fgets(line, sizeof line, file))
        if (strncmp(line, "VmRSS:", 6) == 0)
            kb = strtod(line + 6, NULL);
    if (!file || kb < 0)
        bench_die(path);
    fclose(file);
    return kb;
}

static void measure_start(int repeat, json_t *all)
{
    double new_ms[BENCH_REPEAT_MAX], again_ms[BENCH_REPEAT_MAX], kb[BENCH_REPEAT_MAX];
    char url[SANDBOX_TEXT_MAX], store[32];
    for (int i = 0; i < repeat; i++) {
        bench_ruler();
        snprintf(store, sizeof store, "start-%d", i);
        bench_stop(start("", store, "", url, &new_ms[i]));
        pid_t pid = start("", store, "", url, &again_ms[i]);
        kb[i] = resident_kb(pid);
        bench_stop(pid);
    }
    double fresh = bench_median(new_ms, repeat), again = bench_median(again_ms, repeat),
           idle = bench_median(kb, repeat);
    fprintf(stderr,
            "start to ready        %8.1f ms on a new store, %.1f ms on an old one (goal 100)\n",
            fresh, again);
    fprintf(stderr, "resident when idle    %8.1f MB (goal 40)\n", idle / 1024);
    json_object_set_new(all, "start_new_ms", json_real(fresh));
    json_object_set_new(all, "start_ms", json_real(again));
    json_object_set_new(all, "idle_kb", json_real(idle));
}

static void measure_size(json_t *all)
{
    char command[2 * TEXT], path[TEXT];
    struct stat about;
    snprintf(path, sizeof path, "%s/stripped", sandbox_dir(sandbox));
    snprintf(command, sizeof command, "strip -o %s %s/seckilld", path, bench_build());
    if (system(command) != 0 || stat(path, &about) != 0)
        bench_die(command);
    fprintf(stderr, "stripped binary       %8.0f KB (goal 1024)\n", (double)about.st_size / 1024);
    json_object_set_new(all, "stripped_bytes", json_integer(about.st_size));
}

/* -- requests that wait ---------------------------------------------------------------------------
 */

static int connect_to(const char *url)
{
    struct load_target target;
    char message[256];
    if (load_target_parse(url, &target, message, sizeof message) != 0)
        bench_die(message);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)target.port)};
    inet_pton(AF_INET, target.address, &to.sin_addr);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
        bench_die("no connection: too few open files allowed?");
    return fd;
}

static void send_request(int fd, const char *text)
{
    if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
        bench_die("a request was not sent whole");
}

static void take_answer(int fd, const char *status)
{
    char answer[4096];
    ssize_t n = read(fd, answer, sizeof answer - 1);
    answer[n > 0 ? n : 0] = '\0';
    if (strncmp(answer, "HTTP/1.1 ", 9) != 0 || strncmp(answer + 9, status, 3) != 0)
        bench_die(answer);
}

static bool lock_from_outside(bool held)
{
    redisContext *context = redis_connect(redis->port);
    redisReply *reply = context ? redisCommand(context, held ? "SET lock:item:1 bench NX PX 600000"
                                                             : "DEL lock:item:1")
                                : NULL;
    bool done = reply && (reply->type == REDIS_REPLY_STATUS || reply->integer == 1);
    freeReplyObject(reply);
    redisFree(context);
    return done;
}

static void measure_waiting(int waiting, json_t *all)
{
    static int fds[WAITING_MAX];
    static const char head[] = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";
    static const char body[] = "{\"user_id\":\"u1\",\"quantity\":1}";
    char url[SANDBOX_TEXT_MAX], request[512];
    double ms, open_kb, waiting_kb;
    pid_t pid = start("", "waiting", "--connections 10100 --wait-ms 300000", url, &ms);
    bench_put_item(url, "1", "redis-token", 0);
    double idle_kb = resident_kb(pid);
    for (int i = 0; i < waiting; i++) {
        fds[i] = connect_to(url);
        send_request(fds[i], head);
        take_answer(fds[i], "200");
    }
    open_kb = resident_kb(pid);
    if (!lock_from_outside(true))
        bench_die("the lock is not free");
    for (int i = 0; i < waiting; i++) {
        snprintf(request, sizeof request,
                 "POST /v1/items/1/orders HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
                 "application/json\r\nIdempotency-Key: waiting-%d\r\nContent-Length: %zu\r\n\r\n%s",
                 i, sizeof body - 1, body);
        send_request(fds[i], request);
    }
    bench_wait_for_waiters(url, waiting);
    waiting_kb = resident_kb(pid);
    if (!lock_from_outside(false))
        bench_die("the lock was lost");
    for (int i = 0; i < waiting; i++) {
        take_answer(fds[i], "201");
        close(fds[i]);
    }
    bench_stop(pid);
    double each = (waiting_kb - open_kb) * 1024 / waiting,
           connection = (open_kb - idle_kb) * 1024 / waiting;
    fprintf(stderr,
            "waiting request       %8.0f bytes (goal 2304) beyond the %.0f of its open connection, "
            "with %d of them\n",
            each, connection, waiting);
    json_object_set_new(all, "bytes_per_waiting_request", json_real(each));
    json_object_set_new(all, "bytes_per_connection", json_real(connection));
}

/* -- allocations ---------------------------------------------------------------------------------
 */

static void measure_allocations(json_t *all)
{
    char path[TEXT], prefix[2 * TEXT], url[SANDBOX_TEXT_MAX];
    double ms;
    uint64_t before[ALLOCS_OWNERS], sum = 0;
    struct order_figures figures;
    snprintf(path, sizeof path, "%s/allocs", sandbox_dir(sandbox));
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof before) != 0)
        bench_die(path);
    volatile uint64_t *counts = mmap(NULL, sizeof before, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (counts == MAP_FAILED)
        bench_die("no memory");
    snprintf(prefix, sizeof prefix, "LD_PRELOAD=%s/bench/peers/liballocs.so ALLOCS_FILE=%s",
             bench_build(), path);
    pid_t pid = start(prefix, "allocs", "", url, &ms);
    bench_put_item(url, "1", "redis-token", 0);
    struct order_run run = {
        .url = url, .item = "1", .connections = CONNECTIONS, .duration_ms = RUN_MS};
    bench_orders(&run, &figures); /* until every buffer has its size */
    for (int i = 0; i < ALLOCS_OWNERS; i++)
        before[i] = counts[i];
    bench_orders(&run, &figures);
    fprintf(stderr, "allocations per order");
    json_t *by_owner = json_object();
    for (int i = 0; i < ALLOCS_OWNERS; i++) {
        double each = (double)(counts[i] - before[i]) / (double)figures.accepted;
        sum += counts[i];
        fprintf(stderr, "%s %.2f by %s", i > 0 ? "," : "", each, allocs_owners[i]);
        json_object_set_new(by_owner, allocs_owners[i], json_real(each));
    }
    fprintf(stderr, " (goal: 0 but libmicrohttpd's)\n");
    bench_stop(pid);
    if (sum == 0)
        bench_die("nothing was counted: was liballocs.so built?");
    json_object_set_new(all, "allocations_per_order", by_owner);
}

int main(int argc, char **argv)
{
    int repeat = argc > 1 ? atoi(argv[1]) : 9, waiting = argc > 2 ? atoi(argv[2]) : WAITING_MAX;
    struct rlimit files = {20000, 20000};
    if (repeat < 1 || repeat > BENCH_REPEAT_MAX || waiting < 1 || waiting > WAITING_MAX)
        bench_die("usage: bench_footprint [REPEAT 1..25] [WAITING 1..10000]");
    setrlimit(RLIMIT_NOFILE, &files); /* where it cannot be, too many connections say so */
    redis = bench_redis(&sandbox);
    json_t *all = json_object();
    measure_start(repeat, all);
    measure_size(all);
    measure_allocations(all);
    measure_waiting(waiting, all);
    sandbox_close(sandbox);
    json_object_set_new(all, "noise", json_real(bench_noise()));
    bench_print(all);
    return 0;
}
