/* The real binary as a process: its first line, its signals, its exit statuses. */
#include "process.h"
#include "raw_http.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { ARGS_MAX = 16, TEXT_MAX = 4096 };

struct daemon {
    pid_t pid;
    FILE *out, *err;
    int port;
};

static char folder[] = "/tmp/test_http_process.XXXXXX";
static int n_databases;

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    static const char *const suffixes[] = {"", "-wal", "-shm", "-lock"};
    char path[128];
    for (int i = 0; i < n_databases; i++) {
        for (size_t k = 0; k < sizeof(suffixes) / sizeof(suffixes[0]); k++) {
            snprintf(path, sizeof(path), "%s/%d.db%s", folder, i, suffixes[k]);
            unlink(path);
        }
    }
    return rmdir(folder);
}

/* Starts seckilld on a free port with a new database. max_files 0: no limit. */
static void run(struct daemon *daemon, rlim_t max_files, const char *const *args)
{
    char binary[512], db[128];
    const char *build = getenv("BUILD");
    snprintf(binary, sizeof(binary), "%s/seckilld", build != NULL ? build : "build");
    snprintf(db, sizeof(db), "--db=sqlite:%s/%d.db", folder, n_databases++);
    const char *argv[ARGS_MAX + 8] = {binary, "--listen=127.0.0.1:0", db, "--guard=mutex"};
    int n = 4;
    for (; *args != NULL && n < ARGS_MAX; args++)
        argv[n++] = *args;
    int out[2], err[2];
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(pipe2(err, O_CLOEXEC), 0);
    daemon->pid = fork();
    if (daemon->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        const struct rlimit limit = {max_files, max_files};
        if (max_files > 0)
            setrlimit(RLIMIT_NOFILE, &limit);
        dup2(out[1], 1);
        dup2(err[1], 2);
        execv(binary, (char **)argv);
        _exit(127);
    }
    assert_true(daemon->pid > 0);
    close(out[1]);
    close(err[1]);
    daemon->out = fdopen(out[0], "r");
    daemon->err = fdopen(err[0], "r");
    daemon->port = 0;
}

static void run_until_ready(struct daemon *daemon, const char *const *args)
{
    char line[256];
    run(daemon, 0, args);
    assert_non_null(fgets(line, sizeof(line), daemon->out));
    assert_int_equal(sscanf(line, "listening on http://127.0.0.1:%d\n", &daemon->port), 1);
}

/* Reads stderr up to a line that contains text. */
static void await_line(struct daemon *daemon, const char *text)
{
    char line[TEXT_MAX];
    while (fgets(line, sizeof(line), daemon->err) != NULL)
        if (strstr(line, text) != NULL)
            return;
    fail_msg("never said: %s", text);
}

static int status_of(struct daemon *daemon)
{
    int status;
    assert_int_equal(waitpid(daemon->pid, &status, 0), daemon->pid);
    fclose(daemon->out);
    fclose(daemon->err);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void put_item(int port, const char *guard)
{
    char body[128], text[512];
    int n = snprintf(body, sizeof(body), "{\"stock\":5,\"guard\":\"%s\"}", guard);
    snprintf(text, sizeof(text),
             "PUT /v1/items/1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
             "If-None-Match: *\r\nContent-Length: %d\r\n\r\n%s",
             n, body);
    int fd = raw_connect(port);
    struct raw_reply reply;
    raw_send_text(fd, text);
    assert_int_equal(raw_read(fd, 0, RAW_WAIT_MS, &reply), 201);
    raw_free(&reply);
    close(fd);
}

static void send_order(int fd)
{
    raw_send_text(fd,
                  "POST /v1/items/1/orders HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: k\r\n"
                  "Content-Type: application/json\r\nContent-Length: 16\r\n\r\n"
                  "{\"user_id\":\"u1\"}");
}

/* A lock server that accepts connections and never answers. */
static int silent_server(char *option, size_t size)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, length), 0);
    assert_int_equal(listen(fd, 16), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    snprintf(option, size, "--redis=redis://127.0.0.1:%d", ntohs(address.sin_port));
    return fd;
}

static void a_signal_drains_and_ends_with_0(void **state)
{
    (void)state;
    static const int signals[] = {SIGTERM, SIGINT};
    for (int i = 0; i < 2; i++) {
        struct daemon daemon;
        run_until_ready(&daemon, (const char *const[]){NULL});
        int idle = raw_connect(daemon.port);
        put_item(daemon.port, "mutex");
        kill(daemon.pid, signals[i]);
        assert_true(raw_closed(idle, RAW_WAIT_MS));
        assert_int_equal(status_of(&daemon), 0);
        close(idle);
    }
}

static void what_was_accepted_is_answered_before_the_end(void **state)
{
    (void)state;
    char redis[64];
    struct daemon daemon;
    int server = silent_server(redis, sizeof(redis));
    run_until_ready(&daemon, (const char *const[]){redis, NULL});
    put_item(daemon.port, "redis-token");
    int fd = raw_connect(daemon.port);
    send_order(fd);
    int asked = accept(server, NULL, NULL); /* the service waits for its lock */
    kill(daemon.pid, SIGTERM);
    struct raw_reply reply;
    assert_int_equal(raw_read(fd, 0, RAW_WAIT_MS, &reply), 503);
    assert_non_null(strstr(reply.body, "unavailable"));
    raw_free(&reply);
    assert_int_equal(status_of(&daemon), 0);
    close(asked);
    close(fd);
    close(server);
}

static void a_second_signal_ends_at_once(void **state)
{
    (void)state;
    char redis[64];
    struct daemon daemon;
    int server = silent_server(redis, sizeof(redis));
    run_until_ready(&daemon, (const char *const[]){redis, NULL});
    put_item(daemon.port, "redis-token");
    int fd = raw_connect(daemon.port);
    send_order(fd);
    int asked = accept(server, NULL, NULL);
    kill(daemon.pid, SIGTERM);
    await_line(&daemon, "event=drain");
    kill(daemon.pid, SIGTERM);
    assert_int_equal(status_of(&daemon), 128 + SIGTERM);
    close(asked);
    close(fd);
    close(server);
}

#define HASH_OF_FIRST  "a7937b64b8caa58f03721bb6bacf5c78cb235febe0e70b1b84cd99541461a08e"
#define HASH_OF_SECOND "16367aacb67a4a017c8da8ab95682ccb390863780f7114dda0a0e0c55644c7c4"

/* Writes the file of --tokens. */
static void write_tokens(const char *path, const char *role, const char *hash)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "%s ann %s\n", role, hash);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0600), 0);
}

static int ask_metrics(int port, const char *token)
{
    char text[256];
    struct raw_reply reply;
    int fd = raw_connect(port);
    snprintf(text, sizeof(text),
             "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", token);
    raw_send_text(fd, text);
    int status = raw_read(fd, 0, RAW_WAIT_MS, &reply);
    raw_free(&reply);
    close(fd);
    return status;
}

/* SIGHUP reads the tokens again. A file that is wrong leaves those that are known. */
static void a_hangup_reloads_the_tokens(void **state)
{
    (void)state;
    char path[128], option[160];
    struct daemon daemon;
    snprintf(path, sizeof(path), "%s/tokens", folder);
    snprintf(option, sizeof(option), "--tokens=%s", path);
    write_tokens(path, "operator", HASH_OF_FIRST);
    run_until_ready(&daemon, (const char *const[]){option, NULL});
    assert_int_equal(ask_metrics(daemon.port, "first"), 200);
    assert_int_equal(ask_metrics(daemon.port, "second"), 401);

    write_tokens(path, "operator", HASH_OF_SECOND);
    kill(daemon.pid, SIGHUP);
    await_line(&daemon, "event=reload tokens=1");
    assert_int_equal(ask_metrics(daemon.port, "first"), 401);
    assert_int_equal(ask_metrics(daemon.port, "second"), 200);

    write_tokens(path, "king", HASH_OF_FIRST);
    kill(daemon.pid, SIGHUP);
    await_line(&daemon, "event=reload error=");
    assert_int_equal(ask_metrics(daemon.port, "second"), 200);

    unlink(path);
    kill(daemon.pid, SIGTERM);
    assert_int_equal(status_of(&daemon), 0);
}

/* -- the service manager --------------------------------------------------------------------------
 */

static int manager_fd = -1;

/* Binds the socket of NOTIFY_SOCKET, by a name of the file system or an abstract one. */
static void manager_listens(bool abstract)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify", folder);
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    if (abstract) {
        char name[64];
        snprintf(name, sizeof(name), "@%s", address.sun_path);
        setenv("NOTIFY_SOCKET", name, 1);
        memmove(address.sun_path + 1, address.sun_path, strlen(address.sun_path) + 1);
        address.sun_path[0] = '\0';
    }
    const size_t length = strlen(abstract ? address.sun_path + 1 : address.sun_path) + abstract;
    manager_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(manager_fd, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)),
                     0);
}

static int manager_goes(void **state)
{
    (void)state;
    char path[128];
    snprintf(path, sizeof(path), "%s/notify", folder);
    unlink(path);
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    return close(manager_fd);
}

static void manager_hears(const char *state)
{
    char text[128];
    struct pollfd heard = {.fd = manager_fd, .events = POLLIN};
    assert_int_equal(poll(&heard, 1, RAW_WAIT_MS), 1);
    ssize_t n = recv(manager_fd, text, sizeof(text) - 1, 0);
    assert_true(n > 0);
    text[n] = '\0';
    assert_string_equal(text, state);
}

static void a_manager_hears_of_the_start_and_of_the_end(void **state)
{
    (void)state;
    for (int abstract = 0; abstract <= 1; abstract++) {
        struct daemon daemon;
        manager_listens(abstract);
        run_until_ready(&daemon, (const char *const[]){NULL});
        manager_hears("READY=1");
        kill(daemon.pid, SIGTERM);
        manager_hears("STOPPING=1");
        assert_int_equal(status_of(&daemon), 0);
        manager_goes(NULL);
    }
}

static void a_watchdog_hears_that_the_service_turns(void **state)
{
    (void)state;
    struct daemon daemon;
    manager_listens(false);
    setenv("WATCHDOG_USEC", "60000", 1);
    run_until_ready(&daemon, (const char *const[]){NULL});
    manager_hears("READY=1");
    for (int i = 0; i < 3; i++)
        manager_hears("WATCHDOG=1");
    kill(daemon.pid, SIGKILL);
    assert_int_equal(waitpid(daemon.pid, NULL, 0), daemon.pid);
    fclose(daemon.out);
    fclose(daemon.err);
}

static int ask_ready(int fd)
{
    struct raw_reply reply;
    raw_send_text(fd, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    int status = raw_read(fd, 0, RAW_WAIT_MS, &reply);
    raw_free(&reply);
    return status;
}

/* Balancers ask /readyz, on connections of their own. Until they have turned away, all is served.
 */
static void a_delayed_drain_is_not_ready_and_serves(void **state)
{
    (void)state;
    struct daemon daemon;
    run_until_ready(&daemon, (const char *const[]){"--drain-delay-ms=600000", NULL});
    int before = raw_connect(daemon.port);
    assert_int_equal(ask_ready(before), 200);
    kill(daemon.pid, SIGTERM);
    await_line(&daemon, "event=drain");
    int64_t until_ms = test_now_ms() + RAW_WAIT_MS;
    while (ask_ready(before) != 503 && test_now_ms() < until_ms)
        continue;
    int later = raw_connect(daemon.port);
    assert_int_equal(ask_ready(later), 503);
    put_item(daemon.port, "mutex");
    kill(daemon.pid, SIGTERM); /* the delay is cut short, too */
    assert_int_equal(status_of(&daemon), 128 + SIGTERM);
    close(before);
    close(later);
}

static void a_taken_address_is_said(void **state)
{
    (void)state;
    struct daemon first, second;
    char listen[64];
    run_until_ready(&first, (const char *const[]){NULL});
    snprintf(listen, sizeof(listen), "--listen=127.0.0.1:%d", first.port);
    run(&second, 0, (const char *const[]){listen, NULL});
    await_line(&second, "cannot listen on 127.0.0.1");
    assert_int_equal(status_of(&second), 1);
    kill(first.pid, SIGTERM);
    assert_int_equal(status_of(&first), 0);
}

static void too_few_files_are_said(void **state)
{
    (void)state;
    struct daemon daemon;
    run(&daemon, 256, (const char *const[]){"--connections=5000", NULL});
    await_line(&daemon, "5000 connections need");
    assert_int_equal(status_of(&daemon), 1);
}

static int order(int port)
{
    struct raw_reply reply;
    int fd = raw_connect(port);
    send_order(fd);
    int status = raw_read(fd, 0, RAW_WAIT_MS, &reply);
    raw_free(&reply);
    close(fd);
    return status;
}

/* By default SIGXFSZ ends a process that writes beyond its limit (ulimit -f). */
static void a_file_that_may_not_grow_does_not_end_the_service(void **state)
{
    (void)state;
    struct daemon daemon;
    run_until_ready(&daemon, (const char *const[]){NULL});
    put_item(daemon.port, "mutex");
    assert_int_equal(prlimit(daemon.pid, RLIMIT_FSIZE, &(struct rlimit){1, RLIM_INFINITY}, NULL),
                     0);
    assert_int_equal(order(daemon.port), 503);
    assert_int_equal(
        prlimit(daemon.pid, RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}, NULL), 0);
    assert_int_equal(order(daemon.port), 201);
    kill(daemon.pid, SIGTERM);
    assert_int_equal(status_of(&daemon), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_signal_drains_and_ends_with_0),
        cmocka_unit_test(what_was_accepted_is_answered_before_the_end),
        cmocka_unit_test(a_second_signal_ends_at_once),
        cmocka_unit_test(a_hangup_reloads_the_tokens),
        cmocka_unit_test(a_manager_hears_of_the_start_and_of_the_end),
        cmocka_unit_test_teardown(a_watchdog_hears_that_the_service_turns, manager_goes),
        cmocka_unit_test(a_delayed_drain_is_not_ready_and_serves),
        cmocka_unit_test(a_taken_address_is_said),
        cmocka_unit_test(too_few_files_are_said),
        cmocka_unit_test(a_file_that_may_not_grow_does_not_end_the_service),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
