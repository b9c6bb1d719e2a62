/* The sandbox's Sentinels and its Redis Cluster are whole when they are handed over, and replace a
 * master that is killed. */
#include "sandbox_process.h"
#include "process.h"
#include "tests.h"

#include <glob.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { REPLACED_MS = 15000, ANSWER_MS = 1000 };

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
    return 0;
}

static bool is_master(void *server)
{
    redisReply *reply = sandbox_redis_ask(server, "ROLE");
    bool is = reply != NULL && reply->elements > 0 && strcmp(reply->element[0]->str, "master") == 0;
    freeReplyObject(reply);
    return is;
}

static bool is_replica(void *server)
{
    redisReply *reply = sandbox_redis_ask(server, "ROLE");
    bool is = reply != NULL && reply->elements > 0 && strcmp(reply->element[0]->str, "slave") == 0;
    freeReplyObject(reply);
    return is;
}

static int port_told_by(const struct sandbox_server *sentinel)
{
    redisReply *reply =
        sandbox_redis_ask(sentinel, "SENTINEL GET-MASTER-ADDR-BY-NAME " SANDBOX_MASTER_NAME);
    int port = reply != NULL && reply->elements == 2 ? atoi(reply->element[1]->str) : 0;
    freeReplyObject(reply);
    return port;
}

GROUP_FIXTURE(open_sandbox, close_sandbox);

TEST_THAT(sentinels_agree_and_replace_a_killed_master)
{
    struct sandbox_sentinel set;
    assert_int_equal(sandbox_sentinel(sandbox, &set), 0);
    char url[SANDBOX_TEXT_MAX];
    snprintf(url, sizeof url, "redis+sentinel://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d/mymaster",
             set.sentinel[0]->port, set.sentinel[1]->port, set.sentinel[2]->port);
    assert_string_equal(set.url, url);
    for (int i = 0; i < SANDBOX_SENTINELS; i++)
        assert_int_equal(port_told_by(set.sentinel[i]), set.master->port);
    assert_true(is_master(set.master) && is_replica(set.replica));
    assert_true(WIFSIGNALED(sandbox_signal(set.master, SIGKILL)));
    assert_true(wait_until(is_master, set.replica, REPLACED_MS));
    assert_int_equal(sandbox_restart(set.master), 0);
    assert_true(wait_until(is_replica, set.master, REPLACED_MS)); /* taken in again */
}

static int64_t integer_of(const struct sandbox_server *server, const char *command)
{
    redisReply *reply = sandbox_redis_ask(server, command);
    int64_t integer =
        reply != NULL && reply->type == REDIS_REPLY_INTEGER ? reply->integer : INT64_MIN;
    freeReplyObject(reply);
    return integer;
}

TEST_THAT(cluster_without_replicas_serves_every_slot)
{
    struct sandbox_cluster cluster;
    assert_int_equal(sandbox_cluster(sandbox, false, &cluster), 0);
    assert_int_equal(cluster.n_replicas, 0);
    int64_t served = 0;
    for (int i = 0; i < 300; i++) {
        char incr[32];
        snprintf(incr, sizeof incr, "INCR key:%d", i);
        for (int node = 0; node < SANDBOX_CLUSTER_MASTERS; node++)
            served += integer_of(cluster.master[node], incr) == 1;
    }
    assert_int_equal(served, 300); /* each by one of them */
    for (int node = 0; node < SANDBOX_CLUSTER_MASTERS; node++)
        assert_true(integer_of(cluster.master[node], "DBSIZE") > 50);
}

TEST_THAT(cluster_replaces_a_killed_master)
{
    struct sandbox_cluster cluster;
    assert_int_equal(sandbox_cluster(sandbox, true, &cluster), 0);
    assert_int_equal(cluster.n_replicas, SANDBOX_CLUSTER_MASTERS);
    for (int i = 0; i < SANDBOX_CLUSTER_MASTERS; i++)
        assert_true(is_master(cluster.master[i]) && is_replica(cluster.replica[i]));
    assert_true(WIFSIGNALED(sandbox_signal(cluster.master[0], SIGKILL)));
    assert_true(wait_until(is_master, cluster.replica[0], REPLACED_MS));
    assert_int_equal(sandbox_restart(cluster.master[0]), 0);
    assert_true(wait_until(is_replica, cluster.master[0], REPLACED_MS));
}

static bool refuses_strangers(const struct sandbox_server *server)
{
    static const char refusal[] = "-NOAUTH";
    return sandbox_answers(NULL, server->port, "PING\r\n", refusal, ANSWER_MS) &&
           sandbox_answers(server->socket, 0, "PING\r\n", refusal, ANSWER_MS);
}

/* Its text and its binary protocol. */
static bool memcached_refuses_strangers(const struct sandbox_server *server)
{
    static const char *const questions[] = {
        "stats\r\n",    "mg k\r\n",      "add k 0 60 6\r\ntheirs\r\n",
        "delete k\r\n", "flush_all\r\n", "set login 0 0 15\r\nsandbox hunter2\r\n"};
    static const char refusal[] = "CLIENT_ERROR ", noop[24] = {'\x80', '\x0a'};
    for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++)
        if (!sandbox_answers(NULL, server->port, questions[i], refusal, ANSWER_MS))
            return false;
    return !sandbox_answers_bytes(NULL, server->port, noop, sizeof noop, "\x81", ANSWER_MS);
}

/* Does a process of this machine have the password on its command line? */
static bool a_command_line_tells(const char *password)
{
    static char line[65536];
    glob_t all;
    bool told = false;
    assert_int_equal(glob("/proc/[0-9]*/cmdline", 0, NULL, &all), 0);
    for (size_t i = 0; i < all.gl_pathc; i++) {
        FILE *file = fopen(all.gl_pathv[i], "r");
        size_t length = file != NULL ? fread(line, 1, sizeof line, file) : 0;
        told = told || memmem(line, length, password, strlen(password)) != NULL;
        if (file != NULL)
            fclose(file);
    }
    globfree(&all);
    return told;
}

TEST_THAT(every_server_refuses_whoever_has_not_the_password_and_none_shows_it)
{
    struct sandbox_sentinel set;
    struct sandbox_cluster cluster;
    assert_int_equal(sandbox_sentinel(sandbox, &set), 0);
    assert_int_equal(sandbox_cluster(sandbox, true, &cluster), 0);
    assert_true(refuses_strangers(set.master) && refuses_strangers(set.replica));
    for (int i = 0; i < SANDBOX_SENTINELS; i++)
        assert_true(refuses_strangers(set.sentinel[i]));
    for (int i = 0; i < SANDBOX_CLUSTER_MASTERS; i++)
        assert_true(refuses_strangers(cluster.master[i]) && refuses_strangers(cluster.replica[i]));
    struct sandbox_server *memcached = sandbox_memcached(sandbox, NULL);
    assert_non_null(memcached);
    assert_true(memcached_refuses_strangers(memcached));
    struct sandbox_zookeeper zookeeper; /* for its strangers see test_sandbox_zookeeper.c */
    assert_int_equal(sandbox_zookeeper(sandbox, 1, &zookeeper), 0);
    assert_true(a_command_line_tells("redis-server")); /* they are seen */
    assert_true(a_command_line_tells("QuorumPeerMain"));
    assert_false(a_command_line_tells(sandbox_password()));
}

TEST_THAT(only_this_user_can_read_the_password)
{
    const char *const names[] = {"password", "redis.conf", "memcached.auth", "sentinel-*[0-9]",
                                 "redis-*[0-9]"};
    assert_non_null(sandbox_redis(sandbox, NULL));
    assert_non_null(sandbox_memcached(sandbox, NULL));
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char pattern[2 * SANDBOX_TEXT_MAX];
        glob_t all;
        struct stat file;
        snprintf(pattern, sizeof pattern, "%s/%s", sandbox_dir(sandbox), names[i]);
        assert_int_equal(glob(pattern, 0, NULL, &all), 0);
        for (size_t k = 0; k < all.gl_pathc; k++) {
            assert_int_equal(stat(all.gl_pathv[k], &file), 0);
            if ((file.st_mode & 077) != 0)
                fail_msg("others may read %s: mode %o", all.gl_pathv[k], file.st_mode & 0777);
        }
        globfree(&all);
    }
}

int main(void)
{
    signal(SIGPIPE, SIG_IGN); /* a Sentinel ends the connections of a server that it demotes */
    return tests_run();
}
