/* The sandbox does what a person counts on: servers that answer, restarts in place, clear failures,
 * nothing inherited and nothing leaked. Ways out are in test_sandbox_end.c. */
#include "sandbox_process.h"
#include "process.h"
#include "redis.h"
#include "tests.h"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct sandbox *sandbox;

static int open_sandbox(void **state)
{
    (void)state;
    return sandbox_open(&sandbox);
}

static int close_sandbox(void **state)
{
    (void)state;
    sandbox_close(sandbox);
    sandbox = NULL;
    return 0;
}

static bool answers_on_port(const struct sandbox_server *redis)
{
    redisContext *context = redis_connect(redis->port);
    redisReply *reply = context != NULL ? redisCommand(context, "PING") : NULL;
    bool pong = reply != NULL && reply->type == REDIS_REPLY_STATUS;
    freeReplyObject(reply);
    if (context != NULL)
        redisFree(context);
    return pong;
}

TEST_FIXTURE(open_sandbox, close_sandbox);

TEST_THAT(started_redis_answers_on_port_and_socket)
{
    struct sandbox_server *redis = sandbox_redis(sandbox, NULL);
    assert_non_null(redis);
    assert_true(answers_on_port(redis));
    char url[64];
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", redis->port);
    assert_string_equal(redis->url, url);
    assert_true(sandbox_redis_answers(redis));
    assert_true(sandbox_answers(redis->socket, 0, "PING\r\n", "-NOAUTH", 1000));
    assert_true(sandbox_answers(NULL, redis->port, "PING\r\n", "-NOAUTH", 1000));
    assert_true(sandbox_alive(redis));
}

TEST_THAT(further_arguments_reach_redis)
{
    struct sandbox_server *redis =
        sandbox_redis(sandbox, (const char *const[]){"--maxmemory", "5mb", NULL});
    assert_non_null(redis);
    redisContext *context = redis_connect(redis->port);
    redisReply *reply = redisCommand(context, "CONFIG GET maxmemory");
    assert_int_equal(reply->elements, 2);
    assert_string_equal(reply->element[1]->str, "5242880");
    freeReplyObject(reply);
    reply = redisCommand(context, "CONFIG GET save");
    assert_string_equal(reply->element[1]->str, "");
    freeReplyObject(reply);
    redisFree(context);
}

TEST_THAT(restart_keeps_the_port)
{
    struct sandbox_server *redis = sandbox_redis(sandbox, NULL);
    assert_non_null(redis);
    int port = redis->port;
    struct process first = process_of(redis->pid);
    assert_int_equal(sandbox_restart(redis), -1); /* it runs */
    int status = sandbox_signal(redis, SIGKILL);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(redis->pid, 0);
    assert_true(process_gone(first));
    assert_int_equal(sandbox_signal(redis, SIGKILL), -1);

    assert_int_equal(sandbox_hold_port(port), -1); /* nobody else is given it meanwhile */
    assert_int_equal(sandbox_restart(redis), 0);
    assert_int_equal(redis->port, port);
    assert_true(answers_on_port(redis));
    assert_int_equal(sandbox_signal(redis, SIGTERM), 0); /* an orderly end: exit status 0 */
}

TEST_THAT(a_server_that_has_ended_is_not_stopped)
{
    struct sandbox_server *redis = sandbox_redis(sandbox, NULL);
    assert_non_null(redis);
    assert_int_equal(kill(redis->pid, SIGKILL), 0);
    int status = sandbox_signal(redis, SIGSTOP);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_int_equal(redis->pid, 0);
    assert_int_equal(sandbox_restart(redis), 0);
    assert_int_equal(sandbox_signal(redis, SIGSTOP), 0);
    assert_true(redis->pid > 0);
}

TEST_THAT_WITH(a_port_is_held_until_its_sandbox_is_closed, NULL, NULL)
{
    struct sandbox *own;
    assert_int_equal(sandbox_open(&own), 0);
    struct sandbox_server *redis = sandbox_redis(own, NULL);
    assert_non_null(redis);
    int port = redis->port;
    assert_true(WIFSIGNALED(sandbox_signal(redis, SIGKILL)));
    assert_int_equal(sandbox_hold_port(port), -1);
    sandbox_close(own);
    int fd = sandbox_hold_port(port);
    assert_true(fd >= 0);
    close(fd);
}

TEST_THAT(a_death_of_its_own_is_noticed_and_reaped)
{
    struct sandbox_server *redis = sandbox_redis(sandbox, NULL);
    assert_non_null(redis);
    struct process process = process_of(redis->pid);
    redisContext *context = redis_connect(redis->port);
    assert_null(redisCommand(context, "SHUTDOWN NOSAVE"));
    redisFree(context);
    int64_t deadline_ms = test_now_ms() + 5000;
    while (sandbox_alive(redis) && test_now_ms() < deadline_ms)
        continue;
    assert_int_equal(redis->pid, 0);
    assert_true(process_gone(process));
}

/* -- failures --------------------------------------------------------------------------------- */

static void write_script(char *ret_path, size_t size, const char *body)
{
    snprintf(ret_path, size, "%s/server", sandbox_dir(sandbox));
    FILE *file = fopen(ret_path, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", body);
    fclose(file);
    assert_int_equal(chmod(ret_path, 0700), 0);
}

/* Starts binary as the service and returns what the sandbox said about it. */
static const char *failure_of(const char *binary)
{
    static char said[8192];
    char path[SANDBOX_TEXT_MAX + 16];
    snprintf(path, sizeof path, "%s/stderr", sandbox_dir(sandbox));
    fflush(stderr);
    int saved = dup(2), file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    dup2(file, 2);
    struct sandbox_server *server = sandbox_seckilld(sandbox, binary, NULL);
    fflush(stderr);
    dup2(saved, 2);
    close(saved);
    ssize_t length = pread(file, said, sizeof said - 1, 0);
    close(file);
    said[length > 0 ? length : 0] = '\0';
    assert_null(server);
    return said;
}

TEST_THAT(early_death_is_told_at_once_with_the_logs_end)
{
    char script[SANDBOX_TEXT_MAX + 16];
    write_script(script, sizeof script, "echo 'the disk is made of cheese' >&2; exit 7");
    int64_t start_ms = test_now_ms();
    const char *said = failure_of(script);
    assert_true(test_now_ms() - start_ms < SANDBOX_READY_MS / 2);
    assert_non_null(strstr(said, "seckilld-1 ended at once (exit status 7)"));
    assert_non_null(strstr(said, "the disk is made of cheese"));
}

TEST_THAT(missing_binary_is_told)
{
    assert_non_null(strstr(failure_of("/nowhere/seckilld"), "No such file or directory"));
}

TEST_THAT(silent_server_is_given_up_and_killed)
{
    char script[SANDBOX_TEXT_MAX + 16];
    write_script(script, sizeof script, "exec sleep 600");
    int64_t start_ms = test_now_ms();
    assert_non_null(strstr(failure_of(script), "does not answer within"));
    assert_true(test_now_ms() - start_ms < SANDBOX_READY_MS + 5000);
}

static int squat(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 1) != 0)
        abort();
    return fd;
}

struct squatting {
    int fd, port; /* of the first port chosen, taken before the server can have it */
};

static void squat_first_port(struct sandbox_server *server, const void *arg)
{
    struct squatting *squatting = *(struct squatting *const *)arg;
    if (squatting->fd < 0) {
        squatting->port = server->port;
        squatting->fd = squat(server->port);
    }
    sandbox_arg(server, "redis-server");
    sandbox_arg(server, "--port");
    sandbox_arg(server, "%d", server->port);
    sandbox_arg(server, "--bind");
    sandbox_arg(server, "127.0.0.1");
    sandbox_arg(server, "--save");
    sandbox_arg(server, "%s", "");
}

static bool port_ready(struct sandbox_server *server)
{
    return sandbox_answers(NULL, server->port, "PING\r\n", "+PONG", 100);
}

TEST_THAT(port_taken_between_choice_and_bind_is_replaced)
{
    struct squatting squatting = {.fd = -1}, *arg = &squatting;
    struct sandbox_server *server = sandbox_add(sandbox, "late", port_ready);
    assert_int_equal(sandbox_start_on_free_port(server, squat_first_port, &arg), 0);
    close(squatting.fd);
    assert_int_not_equal(server->port, squatting.port);
    assert_true(port_ready(server));
}

/* -- nothing inherited, nothing leaked ------------------------------------------------------------
 */

static bool holds_file(pid_t pid, const char *wanted)
{
    for (int fd = 0; fd < 256; fd++) {
        char link[64], target[SANDBOX_TEXT_MAX + 64];
        snprintf(link, sizeof link, "/proc/%d/fd/%d", (int)pid, fd);
        ssize_t length = readlink(link, target, sizeof target - 1);
        if (length > 0) {
            target[length] = '\0';
            if (strcmp(target, wanted) == 0)
                return true;
        }
    }
    return false;
}

TEST_THAT(servers_inherit_no_descriptor_and_no_blocked_signal)
{
    char path[SANDBOX_TEXT_MAX + 16];
    snprintf(path, sizeof path, "%s/open", sandbox_dir(sandbox));
    int low = open(path, O_RDWR | O_CREAT, 0600); /* not close-on-exec, on purpose */
    int fd = fcntl(low, F_DUPFD, 60);
    close(low);
    sigset_t set, before;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, &before);
    struct sandbox *inner;
    assert_int_equal(sandbox_open(&inner), 0);
    struct sandbox_server *redis = sandbox_redis(inner, NULL);
    assert_non_null(redis);

    assert_true(holds_file(getpid(), path));
    assert_false(holds_file(redis->pid, path));
    char status_path[64], line[128];
    snprintf(status_path, sizeof status_path, "/proc/%d/status", (int)redis->pid);
    FILE *status = fopen(status_path, "r");
    unsigned long long blocked = 1;
    while (fgets(line, sizeof line, status) != NULL)
        sscanf(line, "SigBlk: %llx", &blocked);
    fclose(status);
    assert_int_equal(blocked, 0);

    sandbox_close(inner);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(fd);
}

TEST_THAT_WITH(twenty_in_a_row_leak_no_descriptor, NULL, NULL)
{
    int before = process_count_fds();
    for (int i = 0; i < 20; i++) {
        struct sandbox *one;
        assert_int_equal(sandbox_open(&one), 0);
        assert_non_null(sandbox_redis(one, NULL));
        sandbox_close(one);
    }
    assert_int_equal(process_count_fds(), before);
}

static void *several_in_this_thread(void *ret_failed)
{
    for (int i = 0; i < 4; i++) {
        struct sandbox *own;
        if (sandbox_open(&own) != 0)
            return ret_failed;
        struct sandbox_server *first = sandbox_redis(own, NULL), *second = sandbox_redis(own, NULL);
        bool fine = first != NULL && second != NULL && first->port != second->port &&
                    answers_on_port(first) && answers_on_port(second);
        sandbox_close(own);
        if (!fine)
            return ret_failed;
    }
    return NULL;
}

TEST_THAT_WITH(sandboxes_of_several_threads_do_not_clash, NULL, NULL)
{
    pthread_t threads[4];
    int failed;
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, several_in_this_thread, &failed), 0);
    for (size_t i = 0; i < 4; i++) {
        void *result;
        pthread_join(threads[i], &result);
        assert_null(result);
    }
}
