/* lk_last_error() names the server and the reason. For Redis see test_redis_connection, for
 * ZooKeeper test_zookeeper. */
#include "impostor.h"
#include "login.h"
#include "process.h"
#include "redis.h"
#include "lockkit.h"
#include "tests.h"

#include <libpq-fe.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEY    "lock:item:1"
#define SECRET "geheim"

enum { URL_MAX = 256, WORDS_MAX = 320, SILENCE_MS = 200, ANSWER_MS = 20000 };

static struct sandbox *sandbox;
static struct sandbox_server *postgres;

/* limit_ms: of a command. SILENCE_MS where no answer comes, ANSWER_MS where one does. */
static lk_client *open_at(const char *guard, const char *url, int64_t limit_ms)
{
    const lk_options options = {.command_timeout_ms = limit_ms};
    lk_client *client;
    assert_int_equal(lk_open(guard, url, &options, &client, NULL), LK_OK);
    return client;
}

static void expect_said(lk_client *client, const char *words)
{
    char message[LK_MESSAGE_MAX];
    lk_last_error(client, message, sizeof message);
    if (strstr(message, words) == NULL)
        fail_msg("no \"%s\" in \"%s\"", words, message);
    assert_null(strstr(message, SECRET));
    assert_null(strchr(message, '\n'));
}

static void expect_silence(lk_client *client)
{
    char message[LK_MESSAGE_MAX];
    lk_last_error(client, message, sizeof message);
    assert_string_equal(message, "");
}

/* Makes one try, which must fail with this status and message; closes the client. */
static void expect_failure(const char *guard, const char *url, int64_t limit_ms, lk_status status,
                           const char *words)
{
    lk_hold hold;
    lk_client *client = open_at(guard, url, limit_ms);
    expect_silence(client);
    assert_int_equal(lk_try_acquire(client, KEY, &hold), status);
    expect_said(client, words);
    lk_close(client);
}

/* -- memcached ----------------------------------------------------------------------------------
 */

TEST_THAT(memcached_that_is_away_is_named)
{
    char url[URL_MAX], words[WORDS_MAX];
    snprintf(url, sizeof url, "127.0.0.1:%d", sandbox_free_port());
    snprintf(words, sizeof words, "%s: Connection refused", url);
    expect_failure("memcached", url, ANSWER_MS, LK_UNAVAILABLE, words);
    expect_failure("memcached", "unix:///nowhere", ANSWER_MS, LK_UNAVAILABLE,
                   "/nowhere: No such file");
}

TEST_THAT(memcached_that_answers_badly_is_quoted)
{
    static const struct {
        enum impostor_manner manner;
        lk_status status;
        const char *words;
    } bad[] = {{IMPOSTOR_SILENT, LK_UNKNOWN, "no answer in time"},
               {IMPOSTOR_ENDLESS, LK_PROTOCOL, "an answer without an end"},
               {IMPOSTOR_GARBAGE, LK_PROTOCOL, "HTTP/1.0 400"}};
    unsetenv(LK_MEMCACHED_LOGIN); /* the answers are those to a lock's command */
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char url[URL_MAX];
        int port = sandbox_free_port();
        struct impostor *impostor = impostor_open(port, bad[i].manner);
        assert_non_null(impostor);
        snprintf(url, sizeof url, "127.0.0.1:%d", port);
        expect_failure("memcached", url, SILENCE_MS, bad[i].status, bad[i].words);
        impostor_close(impostor);
    }
}

/* -- redlock ------------------------------------------------------------------------------------
 */

TEST_THAT(redlock_s_missing_nodes_are_named_and_no_others)
{
    char url[URL_MAX], words[WORDS_MAX], message[LK_MESSAGE_MAX];
    int away[2] = {sandbox_free_port(), sandbox_free_port()};
    struct sandbox_server *redis = sandbox_redis(sandbox, NULL);
    lk_hold hold;
    assert_non_null(redis);
    snprintf(url, sizeof url,
             "redis://:" SECRET "@127.0.0.1:%d,redis://127.0.0.1:%d,redis://:" SECRET
             "@127.0.0.1:%d",
             away[0], redis->port, away[1]);
    lk_client *client = open_at("redlock", url, ANSWER_MS);
    assert_int_equal(lk_try_acquire(client, KEY, &hold), LK_UNAVAILABLE);
    for (int i = 0; i < 2; i++) {
        snprintf(words, sizeof words, "node %d at 127.0.0.1:%d: ", 2 * i + 1, away[i]);
        expect_said(client, words);
    }
    expect_said(client, "Connection refused");
    lk_last_error(client, message, sizeof message);
    assert_null(strstr(message, "node 2"));
    lk_close(client);
    assert_int_not_equal(sandbox_signal(redis, SIGTERM), -1);
}

TEST_THAT(redlock_s_nodes_are_quoted_that_refuse)
{
    char url[URL_MAX], words[WORDS_MAX];
    struct sandbox_server *redis = sandbox_redis(sandbox, NULL);
    assert_non_null(redis);
    snprintf(url, sizeof url, "redis://:" SECRET "@127.0.0.1:%d", redis->port);
    snprintf(words, sizeof words,
             "node 1 at 127.0.0.1:%d: Redis at 127.0.0.1:%d refuses AUTH: WRONGPASS", redis->port,
             redis->port);
    expect_failure("redlock", url, ANSWER_MS, LK_UNAVAILABLE, words);
    snprintf(url, sizeof url, "redis://127.0.0.1:%d", redis->port);
    snprintf(words, sizeof words, "node 1 at 127.0.0.1:%d: NOPERM", redis->port);
    assert_int_equal(redis_do(redis, "ACL SETUSER default -set"), 1);
    expect_failure("redlock", url, ANSWER_MS, LK_UNAVAILABLE, words);
    assert_int_not_equal(sandbox_signal(redis, SIGTERM), -1);
}

/* -- PostgreSQL ---------------------------------------------------------------------------------
 */

static const char *const in_postgres[] = {"sql-unique", "sql-unique-forever", "pg-advisory",
                                          "pg-advisory-xact", NULL};

static void tell_postgres(const char *sql)
{
    PGconn *admin = PQconnectdb(postgres->url);
    PGresult *result = PQexec(admin, sql);
    assert_int_equal(PQresultStatus(result), PGRES_COMMAND_OK);
    PQclear(result);
    PQfinish(admin);
}

TEST_THAT(postgres_that_cannot_be_had_is_named)
{
    for (const char *const *guard = in_postgres; *guard != NULL; guard++) {
        char url[URL_MAX], words[WORDS_MAX];
        int port = sandbox_free_port();
        snprintf(url, sizeof url, "postgres://u:" SECRET "@127.0.0.1:%d/d", port);
        snprintf(words, sizeof words, "port %d failed: Connection refused", port);
        expect_failure(*guard, url, ANSWER_MS, LK_UNAVAILABLE, words);
        snprintf(url, sizeof url, "postgres://postgres:" SECRET "@127.0.0.1:%d/nowhere",
                 postgres->port);
        expect_failure(*guard, url, ANSWER_MS, LK_UNAVAILABLE,
                       "3D000: database \"nowhere\" does not exist");
        snprintf(url, sizeof url, "postgres://clerk:" SECRET "@127.0.0.1:%d/postgres",
                 postgres->port);
        expect_failure(*guard, url, ANSWER_MS, LK_UNAVAILABLE, "42501: permission denied");
    }
}

/* The connection works; a statement is refused. */
TEST_THAT(postgres_that_refuses_is_quoted)
{
    char url[URL_MAX];
    snprintf(url, sizeof url, "postgres://owner@127.0.0.1:%d/postgres", postgres->port);
    lk_client *client = open_at("sql-unique", url, ANSWER_MS);
    lk_hold hold;
    assert_int_equal(lk_try_acquire(client, KEY, &hold), LK_OK);
    expect_silence(client); /* although the tables had to be created */
    assert_int_equal(lk_release(&hold), LK_OK);
    tell_postgres("REVOKE ALL ON lockkit.locks FROM owner");
    assert_int_equal(lk_try_acquire(client, KEY, &hold), LK_UNAVAILABLE);
    expect_said(client, "42501: permission denied for table locks");
    lk_close(client);
}

TEST_THAT(postgres_that_is_silent_is_named)
{
    char words[WORDS_MAX];
    snprintf(words, sizeof words, "127.0.0.1:%d: no answer in time", postgres->port);
    assert_int_equal(sandbox_signal(postgres, SIGSTOP), 0);
    for (const char *const *guard = in_postgres; *guard != NULL; guard++)
        expect_failure(*guard, postgres->url, SILENCE_MS, LK_UNAVAILABLE, words);
    assert_int_equal(sandbox_signal(postgres, SIGCONT), 0);
}

/* -- SQLite -------------------------------------------------------------------------------------
 */

TEST_THAT(sqlite_file_that_another_keeps_locked_is_named)
{
    char path[SANDBOX_TEXT_MAX], url[SANDBOX_TEXT_MAX + 16], words[SANDBOX_TEXT_MAX + 32];
    sqlite3 *other;
    lk_hold hold;
    snprintf(path, sizeof path, "%s/locks.db", sandbox_dir(sandbox));
    snprintf(url, sizeof url, "sqlite:%s", path);
    snprintf(words, sizeof words, "%s: database is locked", path);
    lk_client *client = open_at("sql-unique", url, SILENCE_MS);
    assert_int_equal(lk_try_acquire(client, KEY, &hold), LK_OK);
    assert_int_equal(lk_release(&hold), LK_OK);
    expect_silence(client);
    assert_int_equal(sqlite3_open(path, &other), SQLITE_OK);
    assert_int_equal(sqlite3_exec(other, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(lk_try_acquire(client, KEY, &hold), LK_UNAVAILABLE);
    expect_said(client, words);
    sqlite3_close(other);
    lk_close(client);
}

static int set_up(void **state)
{
    (void)state;
    if (setenv("PGPASSWORD", SECRET, 1) != 0 || sandbox_open(&sandbox) != 0 ||
        (postgres = sandbox_postgres(sandbox, NULL)) == NULL)
        return -1;
    tell_postgres("CREATE ROLE clerk LOGIN PASSWORD '" SECRET "'");
    tell_postgres("CREATE ROLE owner LOGIN PASSWORD '" SECRET "'");
    tell_postgres("GRANT CREATE ON DATABASE postgres TO owner");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    sandbox_close(sandbox);
    return 0;
}

GROUP_FIXTURE(set_up, tear_down);
