#include "demo_sale.h"
#include "answer.h"
#include "routes.h"
#include "service.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BROKEN_CLAIM = 99, TAIL_MAX = 400, PATH_LONGEST = 4096 };

static struct {
    int id;                 /* of the last one; 0: none yet */
    pid_t pid;              /* 0: none runs */
    int out, err;           /* memory files with what it writes */
    int status;             /* its wait status */
    char message[TAIL_MAX]; /* why it failed; "" */
} sale = {.out = -1, .err = -1};

struct wish {
    char guards[DEMO_GUARDS_MAX * (DB_GUARD_MAX + 1) + 1]; /* "none,redis-token" */
    int64_t buyers, stock, connections, rate;
};

bool demo_serves(const struct config *config, const char *target)
{
    return config->demo && strcmp(target, "/v1/demo/sales") == 0;
}

/* -- the child -----------------------------------------------------------------------------------
 */

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

/* In the child: only what may be called between fork() and exec(). The signals that this service
 * takes or ignores are the child's again, and no socket of ours stays open in it. */
static void become(const char *path, char *const *argv, pid_t parent)
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

static bool start(const struct wish *wish, const char *url)
{
    char path[PATH_LONGEST], guards[sizeof wish->guards + 16], buyers[48], stock[48],
        connections[48], rate[48], target[320];
    if (!loadgen_path(path)) {
        snprintf(sale.message, sizeof sale.message, "there is no loadgen beside seckilld");
        return false;
    }
    snprintf(guards, sizeof guards, "--guards=%s", wish->guards);
    snprintf(target, sizeof target, "--url=%s", url);
    snprintf(buyers, sizeof buyers, "--buyers=%" PRId64, wish->buyers);
    snprintf(stock, sizeof stock, "--stock=%" PRId64, wish->stock);
    snprintf(connections, sizeof connections, "--connections=%" PRId64, wish->connections);
    snprintf(rate, sizeof rate, "--rate=%" PRId64, wish->rate);
    char program[] = "loadgen", command[] = "sale", json[] = "--json=-", quiet[] = "--quiet",
         mode[] = "--mode=rate";
    char *argv[] = {program, command,     target, guards, buyers,
                    stock,   connections, json,   quiet,  wish->rate > 0 ? mode : NULL,
                    rate,    NULL};
    sale.out = memfd_create("demo-sale", MFD_CLOEXEC);
    sale.err = memfd_create("demo-sale-errors", MFD_CLOEXEC);
    const pid_t parent = getpid(), pid = sale.out < 0 || sale.err < 0 ? -1 : fork();
    if (pid == 0)
        become(path, argv, parent);
    if (pid < 0) {
        snprintf(sale.message, sizeof sale.message, "cannot start it: %s", strerror(errno));
        return false;
    }
    sale.pid = pid;
    sale.id++;
    return true;
}

/* The whole of a memory file, NUL-terminated; NULL: too long, or no memory. */
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

static bool ended_well(void)
{
    return WIFEXITED(sale.status) &&
           (WEXITSTATUS(sale.status) == 0 || WEXITSTATUS(sale.status) == BROKEN_CLAIM);
}

static void note_end(int status)
{
    sale.pid = 0;
    sale.status = status;
    sale.message[0] = '\0';
    if (ended_well())
        return;
    char *errors = content(sale.err);
    const size_t length = errors != NULL ? strlen(errors) : 0;
    const char *tail = length >= TAIL_MAX ? errors + length - (TAIL_MAX - 1) : errors;
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
        snprintf(sale.message, sizeof sale.message, "it took longer than %d s", DEMO_SECONDS_MAX);
    else
        snprintf(sale.message, sizeof sale.message, "%s", length > 0 ? tail : "it ended early");
    free(errors);
}

void demo_reap(void)
{
    int status;
    if (sale.pid > 0 && waitpid(sale.pid, &status, WNOHANG) == sale.pid)
        note_end(status);
}

void demo_stop(void)
{
    int status;
    if (sale.pid > 0 && kill(sale.pid, SIGKILL) == 0 && waitpid(sale.pid, &status, 0) == sale.pid)
        note_end(status);
}

/* -- the routes -------------------------------------------------------------------------------- */

static bool read_guards(const json_t *guards, struct wish *ret)
{
    size_t i;
    json_t *guard;
    if (json_array_size(guards) < 1 || json_array_size(guards) > DEMO_GUARDS_MAX)
        return false;
    json_array_foreach(guards, i, guard)
    {
        const char *name = json_string_value(guard);
        if (name == NULL || !is_id(name, DB_GUARD_MAX))
            return false;
        if (i > 0)
            strcat(ret->guards, ",");
        strcat(ret->guards, name);
    }
    return true;
}

static bool read_wish(const char *body, size_t bytes, struct wish *ret)
{
    json_t *guards = NULL;
    json_int_t buyers = 2000, stock = 100, connections = 64, rate = 0;
    json_t *json = json_loadb(body != NULL ? body : "", bytes, JSON_REJECT_DUPLICATES, NULL);
    *ret = (struct wish){.guards = ""};
    bool good = json_unpack_ex(json, NULL, JSON_STRICT, "{s:o, s?I, s?I, s?I, s?I}", "guards",
                               &guards, "buyers", &buyers, "stock", &stock, "connections",
                               &connections, "rate", &rate) == 0 &&
                read_guards(guards, ret) && buyers >= 1 && buyers <= DEMO_BUYERS_MAX &&
                stock >= 1 && stock <= DEMO_BUYERS_MAX && connections >= 1 &&
                connections <= DEMO_CONNECTIONS_MAX && rate >= 0 && rate <= DEMO_RATE_MAX;
    ret->buyers = buyers;
    ret->stock = stock;
    ret->connections = connections;
    ret->rate = rate;
    json_decref(json);
    return good;
}

static void close_files(void)
{
    if (sale.out >= 0)
        close(sale.out);
    if (sale.err >= 0)
        close(sale.err);
    sale.out = sale.err = -1;
}

static void answer_start(const char *url, const char *body, size_t bytes, struct op *op)
{
    struct wish wish;
    if (!read_wish(body, bytes, &wish)) {
        op_problem(op, PROBLEM_BAD_REQUEST,
                   "a sale is {\"guards\":[1 to %d],\"buyers\":1 to %d,\"stock\":1 to %d,"
                   "\"connections\":1 to %d,\"rate\":0 to %d}",
                   DEMO_GUARDS_MAX, DEMO_BUYERS_MAX, DEMO_BUYERS_MAX, DEMO_CONNECTIONS_MAX,
                   DEMO_RATE_MAX);
    } else if (sale.pid > 0) {
        op_problem(op, PROBLEM_IN_FLIGHT, "a sale is running; one at a time");
    } else {
        close_files();
        if (start(&wish, url))
            op_answer(op, 201, "{\"id\":%d}", sale.id);
        else
            op_problem(op, PROBLEM_UNAVAILABLE, "%s", sale.message);
    }
}

static void answer_state(struct op *op)
{
    const bool none = sale.id == 0 || sale.out < 0;
    json_t *report = json_null();
    const char *state = none ? "idle" : sale.pid > 0 ? "running" : "failed";
    if (!none && sale.pid == 0 && ended_well()) {
        char *text = content(sale.out);
        json_t *parsed = text != NULL ? json_loads(text, 0, NULL) : NULL;
        if (parsed != NULL) {
            report = parsed;
            state = "done";
        }
        free(text);
    }
    json_t *json = json_pack("{s:i, s:s, s:s, s:o}", "id", sale.id, "state", state, "message",
                             sale.message, "report", report);
    op->answer.long_body = json != NULL ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    op->answer.status = 200;
    if (op->answer.long_body == NULL)
        op_problem(op, PROBLEM_INTERNAL, "no memory for the report");
}

void demo_answer(const char *url, const char *method, const char *body, size_t bytes, struct op *op)
{
    demo_reap();
    if (strcmp(method, "POST") == 0)
        answer_start(url, body, bytes, op);
    else if (strcmp(method, "GET") == 0)
        answer_state(op);
    else
        op_problem(op, PROBLEM_NOT_FOUND, "GET and POST /v1/demo/sales");
}
