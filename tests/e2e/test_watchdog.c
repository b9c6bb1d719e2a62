/* Leases on the real service: a long section keeps its lock, a dead holder loses it, and a holder
 * that lost it, asleep or not, writes nothing. Two instances share one database and one Redis.
 *
 * What makes the section long is a pause of the lab: the holder has acquired, read and decided, and
 * is held before its transaction. So every step is taken when the one before has been seen to
 * happen. The lease is long enough for a watchdog that the machine runs late. */
#include "lateness.h"
#include "lockkit.h"
#include "process.h"
#include "redis.h"
#include "shop.h"
#include "tests.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEASE_MS = 3000, SLACK_MS = 5000, SEEN_WITHIN_MS = 60000, STOCK = 1000, PAUSES_MAX = 1000 };
#define LEASE_TEXT "3000" /* LEASE_MS */

static const char order[] = "{\"user_id\":\"u1\"}";

static const char *const guards[] = {"redis-token", "redis-reentrant", "redis-fair"};

static struct shop shop; /* its service is the first instance */
static struct sandbox_server *second;
static struct reply reply, other;
static int next_key;

/* One guard's turn of a test. */
struct scene {
    const char *guard;
    char lock[64], item[64], orders[64];
    char key[32], other_key[32];
    struct client first, second;
};

static int open_shop(void **state)
{
    (void)state;
    const char *args[] = {"--db-shared", "--lab",      "--lease-ms", LEASE_TEXT, "--wait-ms",
                          "60000",       "--instance", "first",      NULL};
    if (shop_open(&shop, args) != 0)
        return -1;
    args[7] = "second";
    second = shop_instance(&shop, args);
    return second != NULL ? 0 : -1;
}

static int close_shop(void **state)
{
    (void)state;
    shop_close(&shop);
    return 0;
}

static bool lock_is_there(void *scene)
{
    return redis_do(shop.redis, "EXISTS %s", ((struct scene *)scene)->lock) == 1;
}

static bool lock_is_gone(void *scene)
{
    return redis_do(shop.redis, "EXISTS %s", ((struct scene *)scene)->lock) == 0;
}

/* A figure of the first instance's metrics; -1 if it does not say. */
static int64_t metric(const char *name)
{
    struct client client = {.port = shop.service->port, .fd = -1};
    client_call(&client, "GET", "/metrics", NULL, NULL, SHOP_WAIT_MS, &reply);
    client_close(&client);
    const char *at = reply.status == 200 ? strstr(reply.body, name) : NULL;
    return at != NULL ? atoll(at + strlen(name)) : -1;
}

/* Has its watchdog found out? */
static bool loss_is_known(void *scene)
{
    struct scene *s = scene;
    char name[200];
    snprintf(name, sizeof name, "\nseckill_locks_lost_total{guard=\"%s\",cause=\"%s\"} ", s->guard,
             lk_loss_text(LK_LOSS_DELETED));
    return metric(name) > 0; /* no other test deletes one */
}

/* It holds the lock, and its transaction is next. */
static bool first_is_held(void *unused)
{
    (void)unused;
    json_t *json = client_get(shop.service->port, "/v1/lab/pauses"),
           *pause = json_array_get(json_object_get(json, "pauses"), 0);
    const bool held = json_integer_value(json_object_get(pause, "n_held")) == 1;
    json_decref(json);
    return held;
}

static void hold_before_the_write(const struct scene *scene)
{
    char body[128];
    snprintf(body, sizeof body, "{\"point\":\"decided\",\"match\":\"%s\",\"action\":\"hold\"}",
             scene->key);
    assert_int_equal(shop_post(&shop, "/v1/lab/pauses", NULL, body, &reply), 201);
}

static void let_it_write(void)
{
    client_call(&shop.client, "DELETE", "/v1/lab/pauses", NULL, NULL, SHOP_WAIT_MS, &reply);
    assert_int_equal(reply.status, 200);
}

/* The first instance holds the lock of a new item and is held before it writes. */
static struct scene begin(const char *guard)
{
    struct scene scene = {.guard = guard};
    char body[96];
    int number = next_key++;
    snprintf(scene.lock, sizeof scene.lock, "lock:item:w%d", number);
    snprintf(scene.item, sizeof scene.item, "/v1/items/w%d", number);
    snprintf(scene.orders, sizeof scene.orders, "/v1/items/w%d/orders", number);
    snprintf(scene.key, sizeof scene.key, "first-%d", number);
    snprintf(scene.other_key, sizeof scene.other_key, "second-%d", number);
    snprintf(body, sizeof body, "{\"stock\":%d,\"guard\":\"%s\"}", STOCK, guard);
    assert_true(shop_put(&shop, scene.item, body));

    scene.first = (struct client){.port = shop.service->port, .fd = -1};
    scene.second = (struct client){.port = second->port, .fd = -1};
    hold_before_the_write(&scene);
    assert_int_equal(client_send(&scene.first, "POST", scene.orders, scene.key, order), 0);
    assert_true(wait_until(first_is_held, NULL, SEEN_WITHIN_MS));
    assert_true(lock_is_there(&scene));
    return scene;
}

static void end(struct scene *scene, int64_t expected_stock)
{
    assert_int_equal(client_number(second->port, scene->item, "stock"), expected_stock);
    assert_true(shop_audit_ok(second->port));
    client_close(&scene->first);
    client_close(&scene->second);
}

static int64_t fence_of(const struct reply *answer)
{
    json_t *json = json_loads(answer->body, 0, NULL);
    int64_t fence = json_integer_value(json_object_get(json, "fence"));
    json_decref(json);
    return fence;
}

static void expect(const struct scene *scene, const struct reply *got, int status,
                   const char *problem)
{
    char name[32];
    reply_problem(got, name, sizeof name);
    if (got->status != status || strcmp(name, problem) != 0)
        fail_msg("%s: %d %s, not %d %s", scene->guard, got->status, got->body, status, problem);
}

static void retry_succeeds(struct scene *scene)
{
    client_call(&scene->first, "POST", scene->orders, scene->key, order, SHOP_WAIT_MS, &reply);
    expect(scene, &reply, 201, "");
    assert_false(reply.replayed);
}

/* SQLite's locks on the database file; each line of /proc/locks names the process. */
static bool holds_file_lock(pid_t pid)
{
    char line[256], type[16];
    int owner;
    bool holds = false;
    FILE *locks = fopen("/proc/locks", "re");
    assert_non_null(locks);
    while (fgets(line, sizeof line, locks))
        if (sscanf(line, "%*d: %15s %*s %*s %d", type, &owner) == 2 && owner == pid)
            holds = holds || strcmp(type, "POSIX") == 0;
    fclose(locks);
    return holds;
}

/* It may have the file locked for a moment, as it reads something else. Stopped at such a moment it
 * would stop every writer, which is no matter of the lock that is tested here. */
static void pause_outside_of_file_locks(struct sandbox_server *server)
{
    for (int i = 0; i < PAUSES_MAX; i++) {
        assert_int_equal(sandbox_signal(server, SIGSTOP), 0);
        if (!holds_file_lock(server->pid))
            return;
        assert_int_equal(sandbox_signal(server, SIGCONT), 0);
    }
    fail_msg("never without a lock on the file in %d pauses", PAUSES_MAX);
}

GROUP_FIXTURE(open_shop, close_shop);

TEST_THAT(paused_holder_is_refused_after_its_successor)
{
    for (size_t i = 0; i < sizeof guards / sizeof guards[0]; i++) {
        struct scene scene = begin(guards[i]);
        pause_outside_of_file_locks(shop.service); /* its watchdog sleeps too */
        assert_true(wait_until(lock_is_gone, &scene, SEEN_WITHIN_MS));
        client_call(&scene.second, "POST", scene.orders, scene.other_key, order, SHOP_WAIT_MS,
                    &other);
        expect(&scene, &other, 201, "");
        assert_int_equal(sandbox_signal(shop.service, SIGCONT), 0);
        let_it_write();
        client_read(&scene.first, SHOP_WAIT_MS, &reply);
        expect(&scene, &reply, 503, "lock-lost");
        assert_int_equal(client_number(second->port, scene.item, "stock"), STOCK - 1);
        retry_succeeds(&scene);
        assert_true(fence_of(&reply) > fence_of(&other));
        end(&scene, STOCK - 2);
    }
}

TEST_THAT(section_of_three_leases_keeps_its_lock)
{
    for (size_t i = 0; i < sizeof guards / sizeof guards[0]; i++) {
        struct scene scene = begin(guards[i]);
        assert_int_equal(client_send(&scene.second, "POST", scene.orders, scene.other_key, order),
                         0);
        assert_false(wait_until(lock_is_gone, &scene, 3 * LEASE_MS));
        let_it_write();
        client_read(&scene.first, SHOP_WAIT_MS, &reply);
        expect(&scene, &reply, 201, "");
        client_read(&scene.second, SHOP_WAIT_MS, &other);
        expect(&scene, &other, 201, "");
        assert_true(fence_of(&other) > fence_of(&reply));
        end(&scene, STOCK - 2);
    }
}

TEST_THAT(killed_holder_frees_its_lock_within_a_lease)
{
    for (size_t i = 0; i < sizeof guards / sizeof guards[0]; i++) {
        struct scene scene = begin(guards[i]);
        assert_true(WIFSIGNALED(sandbox_signal(shop.service, SIGKILL)));
        client_call(&scene.second, "POST", scene.orders, scene.other_key, order, SHOP_WAIT_MS,
                    &other);
        expect(&scene, &other, 201, "");
        assert_true(took_at_most(other.took_ms, LEASE_MS + SLACK_MS));
        assert_int_equal(sandbox_restart(shop.service), 0);
        client_close(&scene.first);
        retry_succeeds(&scene);
        client_close(&shop.client);
        end(&scene, STOCK - 2);
    }
}

TEST_THAT(lock_deleted_under_the_holder_is_noticed_and_nothing_written)
{
    for (size_t i = 0; i < sizeof guards / sizeof guards[0]; i++) {
        struct scene scene = begin(guards[i]);
        struct redis_watch *watch = redis_watch_open(shop.redis);
        assert_non_null(watch);
        assert_int_equal(redis_do(shop.redis, "DEL %s", scene.lock), 1);
        assert_true(redis_watch_sees(watch, "DEL", SEEN_WITHIN_MS));
        const int64_t deleted_ms = test_now_ms();
        /* The watchdog asks for the lock's renewal, and is told that it is gone. */
        assert_true(redis_watch_sees(watch, scene.lock, SEEN_WITHIN_MS));
        assert_true(ended_within(deleted_ms, LEASE_MS / 3 + SLACK_MS));
        redis_watch_close(watch);
        assert_true(wait_until(loss_is_known, &scene, SEEN_WITHIN_MS));
        let_it_write();
        client_read(&scene.first, SHOP_WAIT_MS, &reply);
        expect(&scene, &reply, 503, "lock-lost");
        assert_int_equal(client_number(second->port, scene.item, "stock"), STOCK);
        retry_succeeds(&scene);
        end(&scene, STOCK - 1);
    }
}

/* Last: cmocka's exit status does not tell of a failed teardown. */
TEST_THAT(service_drains_and_ends_well)
{
    assert_true(shop_stop(shop.service));
    assert_true(shop_stop(second));
}
