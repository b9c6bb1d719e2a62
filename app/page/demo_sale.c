#include "demo_sale.h"
#include "answer.h"
#include "resource.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <libgen.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BROKEN_CLAIM = 99, TAIL_MAX = 400, PATH_LONGEST = 4096, ARGS_MAX = 16, ARG_MAX_BYTES = 320 };

/* 0 and -1: as the service is configured. */
struct terms {
    char guard[DB_GUARD_MAX + 1];
    int64_t lease_ms;
    int watchdog, fence, lanes;
};

struct wish {
    struct terms sales[DEMO_SALES_MAX];
    size_t n;
    int64_t buyers, stock, connections, rate;
};

static struct {
    int id; /* of the last wish; 0: none yet */
    struct wish wish;
    char url[ARG_MAX_BYTES - 16];
    size_t at;              /* index of the current sale */
    pid_t pid;              /* 0: none runs */
    int out, err;           /* memory files with its output */
    char message[TAIL_MAX]; /* why it failed; "" */
    json_t *reports;        /* of the sales that are done */
} sale = {.out = -1, .err = -1};

struct args {
    char text[ARGS_MAX][ARG_MAX_BYTES];
    char *list[ARGS_MAX + 1]; /* NULL-terminated */
    size_t n;
};

/* -- the child --------------------------------------------------------------------------------- */

static bool loadgen_path(char ret[PATH_LONGEST])
{
    char self[PATH_LONGEST - 16];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0)
        return false;
    self[n] = '\0';
    snprintf(ret, PATH_LONGEST, "%s/loadgen", dirname(self));
    return access(ret, X_OK) == 0;
}

/* Runs in the child. Calls only what is allowed between fork() and exec(). Resets the signals that
 * the service blocks or ignores, and closes the service's sockets. */
static void exec_loadgen(const char *path, char *const *argv, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(EXIT_FAILURE);
    dup2(sale.out, STDOUT_FILENO);
    dup2(sale.err, STDERR_FILENO);
    close_range(STDERR_FILENO + 1, ~0U, 0);
    alarm(DEMO_SECONDS_MAX);
    execv(path, argv);
    _exit(EXIT_FAILURE);
}

static void add(struct args *args, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(struct args *args, const char *format, ...)
{
    va_list values;
    assert(args->n < ARGS_MAX);
    va_start(values, format);
    vsnprintf(args->text[args->n], ARG_MAX_BYTES, format, values);
    va_end(values);
    args->list[args->n] = args->text[args->n];
    args->n++;
}

static void add_switch(struct args *args, const char *flag, int wanted)
{
    if (wanted >= 0)
        add(args, "--%s=%s", flag, wanted ? "on" : "off");
}

static void fill(struct args *args, const struct wish *wish, const struct terms *terms)
{
    add(args, "loadgen");
    add(args, "sale");
    add(args, "--url=%s", sale.url);
    add(args, "--guards=%s", terms->guard);
    if (terms->lease_ms > 0)
        add(args, "--lease-ms=%" PRId64, terms->lease_ms);
    add_switch(args, "watchdog", terms->watchdog);
    add_switch(args, "fence", terms->fence);
    add_switch(args, "lanes", terms->lanes);
    add(args, "--buyers=%" PRId64, wish->buyers);
    add(args, "--stock=%" PRId64, wish->stock);
    add(args, "--connections=%" PRId64, wish->connections);
    if (wish->rate > 0) {
        add(args, "--mode=rate");
        add(args, "--rate=%" PRId64, wish->rate);
    }
    add(args, "--json=-");
    add(args, "--quiet");
}

static bool fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
static bool fail(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    vsnprintf(sale.message, sizeof sale.message, format, values);
    va_end(values);
    return false;
}

/* Starts the current sale. False: sale.message says why not. */
static bool start(void)
{
    char path[PATH_LONGEST];
    struct args args = {.n = 0};
    if (!loadgen_path(path))
        return fail("there is no loadgen beside seckilld");
    fill(&args, &sale.wish, &sale.wish.sales[sale.at]);
    sale.out = memfd_create("demo-sale", MFD_CLOEXEC);
    sale.err = memfd_create("demo-sale-errors", MFD_CLOEXEC);
    const pid_t parent = getpid(), pid = sale.out < 0 || sale.err < 0 ? -1 : fork();
    if (pid == 0)
        exec_loadgen(path, args.list, parent);
    if (pid < 0) {
        fail("cannot start it: %s", strerror(errno));
        if (sale.out >= 0)
            close(sale.out);
        if (sale.err >= 0)
            close(sale.err);
        return false;
    }
    sale.pid = pid;
    return true;
}

/* Returns the whole of a memory file, NUL-terminated. NULL: too long, or no memory. */
static char *content(int fd)
{
    const off_t length = lseek(fd, 0, SEEK_END);
    char *text = length >= 0 && length <= DEMO_REPORT_MAX ? malloc((size_t)length + 1) : NULL;
    ssize_t n = text != NULL ? pread(fd, text, (size_t)length, 0) : -1;
    if (n < 0) {
        free(text);
        return NULL;
    }
    text[n] = '\0';
    return text;
}

/* False: sale.message says why. */
static bool ended_well(int status)
{
    const bool judged =
        WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == BROKEN_CLAIM);
    char *text = content(judged ? sale.out : sale.err);
    if (judged) {
        json_t *report = text != NULL ? json_loads(text, 0, NULL) : NULL;
        free(text);
        if (json_array_append_new(sale.reports, report) == 0)
            return true;
        return fail("its report cannot be read");
    }
    const size_t length = text != NULL ? strlen(text) : 0;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        fail("it took longer than %d s", DEMO_SECONDS_MAX);
    else
        fail("%s", length >= TAIL_MAX ? text + length - (TAIL_MAX - 1)
                   : length > 0       ? text
                                      : "it ended early");
    free(text);
    return false;
}

static void close_files(void)
{
    if (sale.out >= 0)
        close(sale.out);
    if (sale.err >= 0)
        close(sale.err);
    sale.out = sale.err = -1;
}

static void note_end(int status)
{
    sale.pid = 0;
    const bool well = ended_well(status);
    close_files();
    if (well && ++sale.at < sale.wish.n)
        start();
}

/* Handles the end of the process, if it has ended. */
static void reap(void)
{
    int status;
    if (sale.pid > 0 && waitpid(sale.pid, &status, WNOHANG) == sale.pid)
        note_end(status);
}

/* Kills the process, if it runs. */
static void stop(void)
{
    int status;
    sale.wish.n = 0; /* none follows */
    if (sale.pid > 0 && kill(sale.pid, SIGKILL) == 0 && waitpid(sale.pid, &status, 0) == sale.pid)
        note_end(status);
}

/* -- the routes -------------------------------------------------------------------------------- */

static bool read_terms(json_t *json, struct terms *ret)
{
    const char *guard = "";
    json_int_t lease_ms = 0;
    *ret = (struct terms){.watchdog = -1, .fence = -1, .lanes = -1};
    if (json_unpack_ex(json, NULL, JSON_STRICT, "{s:s, s?I, s?b, s?b, s?b}", "guard", &guard,
                       "lease_ms", &lease_ms, "watchdog", &ret->watchdog, "fence", &ret->fence,
                       "lanes", &ret->lanes) != 0 ||
        !is_id(guard, DB_GUARD_MAX) || lease_ms < 0)
        return false;
    snprintf(ret->guard, sizeof ret->guard, "%s", guard);
    ret->lease_ms = lease_ms; /* loadgen checks its limits */
    return true;
}

static bool read_sales(const json_t *sales, struct wish *ret)
{
    size_t i;
    json_t *terms;
    ret->n = json_array_size(sales);
    if (ret->n < 1 || ret->n > DEMO_SALES_MAX)
        return false;
    json_array_foreach(sales, i, terms)
    {
        if (!read_terms(terms, &ret->sales[i]))
            return false;
    }
    return true;
}

static bool read_wish(const char *body, size_t bytes, struct wish *ret)
{
    json_t *sales = NULL;
    json_int_t buyers = 2000, stock = 100, connections = 64, rate = 0;
    json_t *json = json_loadb(body, bytes, JSON_REJECT_DUPLICATES, NULL);
    bool good = json_unpack_ex(json, NULL, JSON_STRICT, "{s:o, s?I, s?I, s?I, s?I}", "sales",
                               &sales, "buyers", &buyers, "stock", &stock, "connections",
                               &connections, "rate", &rate) == 0 &&
                read_sales(sales, ret) && buyers >= 1 && buyers <= DEMO_BUYERS_MAX && stock >= 1 &&
                stock <= DEMO_BUYERS_MAX && connections >= 1 &&
                connections <= DEMO_CONNECTIONS_MAX && rate >= 0 && rate <= DEMO_RATE_MAX;
    ret->buyers = buyers;
    ret->stock = stock;
    ret->connections = connections;
    ret->rate = rate;
    json_decref(json);
    return good;
}

static bool answer_start(const struct extra_request *request, struct op *op)
{
    struct wish wish;
    reap();
    if (!read_wish(request->body, request->body_bytes, &wish)) {
        op_problem(op, PROBLEM_BAD_REQUEST,
                   "a sale is {\"sales\":[1 to %d of {\"guard\",\"lease_ms\",\"watchdog\","
                   "\"fence\",\"lanes\"}],\"buyers\":1 to %d,\"stock\":1 to %d,"
                   "\"connections\":1 to %d,\"rate\":0 to %d}",
                   DEMO_SALES_MAX, DEMO_BUYERS_MAX, DEMO_BUYERS_MAX, DEMO_CONNECTIONS_MAX,
                   DEMO_RATE_MAX);
        return true;
    }
    if (sale.pid > 0) {
        op_problem(op, PROBLEM_IN_FLIGHT, "a sale is running; one at a time");
        return true;
    }
    sale.wish = wish;
    sale.at = 0;
    sale.message[0] = '\0';
    snprintf(sale.url, sizeof sale.url, "%s", request->url);
    json_decref(sale.reports);
    sale.reports = json_array();
    sale.id++;
    if (start())
        op_answer(op, 201, "{\"id\":%d}", sale.id);
    else
        op_problem(op, PROBLEM_UNAVAILABLE, "%s", sale.message);
    return true;
}

/* As they were wished; what was left out is left out. */
static json_t *terms_json(const struct terms *terms)
{
    json_t *json = json_pack("{s:s}", "guard", terms->guard);
    if (terms->lease_ms > 0)
        json_object_set_new(json, "lease_ms", json_integer((json_int_t)terms->lease_ms));
    if (terms->watchdog >= 0)
        json_object_set_new(json, "watchdog", json_boolean(terms->watchdog));
    if (terms->fence >= 0)
        json_object_set_new(json, "fence", json_boolean(terms->fence));
    if (terms->lanes >= 0)
        json_object_set_new(json, "lanes", json_boolean(terms->lanes));
    return json;
}

static bool answer_state(const struct extra_request *request, struct op *op)
{
    (void)request;
    reap();
    const char *state = sale.id == 0              ? "idle"
                        : sale.pid > 0            ? "running"
                        : sale.message[0] != '\0' ? "failed"
                                                  : "done";
    op_answer_json(op, json_pack("{s:i, s:s, s:s, s:O?, s:o*}", "id", sale.id, "state", state,
                                 "message", sale.message, "reports", sale.reports, "terms",
                                 sale.pid > 0 ? terms_json(&sale.wish.sales[sale.at]) : NULL));
    return true;
}

static const struct extra_route list[] = {
    {"POST", "/v1/demo/sales", answer_start},
    {"GET", "/v1/demo/sales", answer_state},
};

const struct extra_routes demo_routes = {
    .list = list, .n = sizeof list / sizeof list[0], .tick = reap, .end = stop};
