/* GET /v1/guards: the list, and servers that fail or appear meanwhile. */
#include "guard.h"
#include "provider.h"
#include "service_rig.h"
#include "tests.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int start(void **state)
{
    (void)state;
    rig_reset("redis-token");
    return rig_start();
}

static int run(struct op *op, enum op_kind kind, const char *id)
{
    return op_run(rig.service, op_make(op, kind, id, "", 0, 0));
}

static bool claims(const json_t *guard, const char *cap)
{
    size_t i;
    json_t *name;
    bool found = false;
    assert_true(json_is_array(json_object_get(guard, "caps")));
    json_array_foreach(json_object_get(guard, "caps"), i, name)
    {
        found = found || strcmp(json_string_value(name), cap) == 0;
    }
    return found;
}

/* The other guards have no servers here; the store and the locks' database are SQLite. */
static bool lives_on_what_is_here(const char *guard)
{
    return strncmp(guard, "pg-", 3) != 0 && strncmp(guard, "zk-", 3) != 0 &&
           strcmp(guard, "memcached") != 0;
}

/* A server that accepts connections and never answers, like a stopped one. */
static int listen_silently(int *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_int_equal(listen(fd, 64), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

GROUP_FIXTURE(rig_open, rig_close);
TEST_FIXTURE(start, rig_clear);

TEST_THAT(silent_servers_are_all_asked_at_once)
{
    struct op op;
    enum { TRIES = 20, AT_ONCE_US = 1000000 }; /* one after the other: 5 kinds of 250000 */
    int port, other_port, fd = listen_silently(&port), other_fd = listen_silently(&other_port);
    const struct config kept = rig.config;
    rig_stop();
    snprintf(rig.config.redis, sizeof rig.config.redis, "redis://127.0.0.1:%d,redis://127.0.0.1:%d",
             port, other_port);
    snprintf(rig.config.zookeeper, sizeof rig.config.zookeeper, "127.0.0.1:%d", port);
    snprintf(rig.config.memcached, sizeof rig.config.memcached, "localhost:%d", port);
    snprintf(rig.config.lock_db, sizeof rig.config.lock_db, "postgres://u@127.0.0.1:%d/d", port);
    assert_int_equal(rig_start(), 0);
    int64_t took_us = INT64_MAX;
    for (int i = 0; i < TRIES && took_us > AT_ONCE_US; i++) { /* a busy machine needs more tries */
        if (i > 0)
            free(op.answer.body);
        int64_t begin_us = now_us();
        assert_int_equal(run(&op, OP_GUARDS, ""), 200);
        took_us = now_us() - begin_us;
    }
    json_t *document = json_loads(op.answer.body, 0, NULL), *guard;
    size_t i;
    json_array_foreach(json_object_get(document, "guards"), i, guard)
    {
        const char *name = json_string_value(json_object_get(guard, "name"));
        const char *kind = json_string_value(json_object_get(guard, "kind"));
        bool remote = strcmp(kind, "lock") == 0 && strcmp(name, "mutex") != 0;
        bool answers = json_is_true(json_object_get(guard, "servers_answer"));
        if (answers == remote)
            fail_msg("%s: %s", name, answers ? "answers" : "does not answer");
    }
    json_decref(document);
    free(op.answer.body);
    close(fd);
    close(other_fd);
    rig_stop();
    rig.config = kept;
    assert_int_equal(rig_start(), 0);
    assert_in_range(took_us, 0, AT_ONCE_US);
}

TEST_THAT(guards_are_listed_with_their_claims)
{
    struct op op;
    assert_int_equal(run(&op, OP_GUARDS, ""), 200);
    json_t *document = json_loads(op.answer.body, 0, NULL);
    assert_non_null(document);
    assert_string_equal(json_string_value(json_object_get(document, "default")), "redis-token");
    assert_string_equal(json_string_value(json_object_get(document, "instance")), "test");
    size_t i, found = 0;
    json_t *guard;
    json_array_foreach(json_object_get(document, "guards"), i, guard)
    {
        const char *name = json_string_value(json_object_get(guard, "name"));
        bool safe = json_is_true(json_object_get(guard, "claims_safe"));
        found += strcmp(name, "none") == 0 && !safe;
        found += strcmp(name, "mutex") == 0 && !safe;
        found += strcmp(name, "redis-token") == 0 && safe;
        found += strcmp(name, "sql-atomic") == 0 && safe;
        assert_int_equal(json_is_true(json_object_get(guard, "servers_answer")),
                         lives_on_what_is_here(name));
        assert_true(json_string_length(json_object_get(guard, "weakness")) > 0);
        const char *source = json_string_value(json_object_get(guard, "fence_source"));
        assert_string_equal(source, claims(guard, "fence") ? "lock" : "none");
    }
    assert_int_equal(found, 4);
    json_decref(document);
    free(op.answer.body);
}

TEST_THAT(guard_whose_servers_are_away_is_listed_as_such)
{
    struct op op;
    sandbox_signal(rig.redis, SIGKILL);
    assert_int_equal(run(&op, OP_GUARDS, ""), 200);
    json_t *document = json_loads(op.answer.body, 0, NULL), *guard;
    size_t i;
    assert_non_null(document);
    json_array_foreach(json_object_get(document, "guards"), i, guard)
    {
        const char *name = json_string_value(json_object_get(guard, "name"));
        bool answers = json_is_true(json_object_get(guard, "servers_answer"));
        bool lives_on_redis = strncmp(name, "redis-", 6) == 0 || strcmp(name, "redlock") == 0;
        assert_int_equal(answers, !lives_on_redis && lives_on_what_is_here(name));
    }
    json_decref(document);
    free(op.answer.body);
    assert_int_equal(sandbox_restart(rig.redis), 0);
}

static char late_folder[SANDBOX_TEXT_MAX + 16];

static lk_status open_nothing(const lk_context *context, void **ret_self, lk_error *error)
{
    (void)context;
    (void)error;
    *ret_self = NULL;
    return LK_OK;
}

static void close_nothing(void *self)
{
    (void)self;
}

static lk_status make_folder(void *self)
{
    (void)self;
    return mkdir(late_folder, 0700) == 0 ? LK_OK : LK_UNAVAILABLE;
}

/* A guard cannot be opened while the servers are asked, but can be when the list is made. */
TEST_THAT(locks_folder_that_appears_meanwhile_ends_nothing)
{
    static const lk_provider maker = {.info = {.name = "memcached"},
                                      .open = open_nothing,
                                      .close = close_nothing,
                                      .ping = make_folder};
    struct op op;
    const struct config kept = rig.config;
    rig_stop();
    snprintf(late_folder, sizeof late_folder, "%s/late", sandbox_dir(rig.sandbox));
    snprintf(rig.config.lock_db, sizeof rig.config.lock_db, "sqlite:%s/locks.db", late_folder);
    snprintf(rig.config.memcached, sizeof rig.config.memcached, "localhost:1");
    rig.seams.providers[0] = &maker;
    assert_int_equal(rig_start(), 0);
    assert_int_equal(run(&op, OP_GUARDS, ""), 200);
    json_t *document = json_loads(op.answer.body, 0, NULL), *guard;
    size_t i;
    json_array_foreach(json_object_get(document, "guards"), i, guard)
    {
        const char *name = json_string_value(json_object_get(guard, "name"));
        if (strcmp(name, "memcached") == 0) /* its ping made the folder */
            assert_true(json_is_true(json_object_get(guard, "servers_answer")));
        if (strncmp(name, "sql-unique", 10) == 0)
            assert_false(json_is_true(json_object_get(guard, "servers_answer")));
    }
    json_decref(document);
    free(op.answer.body);
    rig.seams.providers[0] = NULL;
    rig_stop();
    rig.config = kept;
    assert_int_equal(rig_start(), 0);
}
