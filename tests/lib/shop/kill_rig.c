#include "kill_rig.h"
#include "process.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <time.h>

enum {
    CALLS_MAX = 20000,
    MISSES = 2, /* so many n in a row were not reached: all calls have been tried */
    LEASE_MS = 200,
    RETRY_NS = 2000000
};

struct kill_rig kill_rig;

/* -- world --------------------------------------------------------------------------------------
 */

static int number_of(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text != NULL ? atoi(text) : otherwise;
}

static void choose_share(int usual)
{
    unsigned random = 0;
    kill_rig.step = number_of("KILL_STEP", (int)test_size(usual, 1));
    assert_true(kill_rig.step > 0);
    assert_int_equal(getrandom(&random, sizeof random, 0), sizeof random);
    kill_rig.first = number_of("KILL_FIRST", 1 + (int)(random % (unsigned)kill_rig.step));
}

void kill_fill_books(void)
{
    static const char *const puts[][2] = {
        {"/v1/items/1", "{\"stock\":1000000,\"price\":3}"},
        {"/v1/accounts/u1", "{\"balance\":1000000}"},
        {"/v1/accounts/u2", "{\"balance\":1000000}"},
    };
    for (size_t i = 0; i < sizeof puts / sizeof puts[0]; i++)
        assert_true(shop_put(&kill_rig.shop, puts[i][0], puts[i][1]));
    kill_rig.decided = 0;
}

int kill_open(bool postgres, const char *lanes, const char *guard)
{
    struct shop *shop = &kill_rig.shop;
    kill_rig.postgres = NULL;
    *shop = (struct shop){.client.fd = -1};
    if (sandbox_open(&shop->sandbox) != 0 || !(shop->redis = sandbox_redis(shop->sandbox, NULL)) ||
        (postgres && !(kill_rig.postgres = sandbox_postgres(shop->sandbox, NULL))))
        return -1;
    if (postgres)
        snprintf(kill_rig.url, sizeof kill_rig.url, "%s", kill_rig.postgres->url);
    else
        snprintf(kill_rig.url, sizeof kill_rig.url, "sqlite:%s/shop.db",
                 sandbox_dir(shop->sandbox));
    kill_rig.books = (struct books){.url = kill_rig.url, .folder = sandbox_dir(shop->sandbox)};
    char lease[16];
    snprintf(lease, sizeof lease, "%d", LEASE_MS);
    const char *const args[] = {"--redis",
                                shop->redis->url,
                                "--db",
                                kill_rig.url,
                                "--lanes",
                                lanes,
                                "--guard",
                                guard,
                                "--lease-ms",
                                lease,
                                "--workers",
                                "2",
                                "--close-orders-ms",
                                "3600000",
                                NULL};
    shop->service = sandbox_seckilld(shop->sandbox, shop_binary("seckilld"), args);
    if (shop->service == NULL)
        return -1;
    shop->client.port = shop->service->port;
    kill_fill_books();
    return 0;
}

int kill_close(void **state)
{
    (void)state;
    shop_close(&kill_rig.shop);
    return 0;
}

/* -- one request --------------------------------------------------------------------------------
 */

void kill_decide(const struct kill_request *request, struct reply *ret)
{
    for (int64_t deadline_ms = test_now_ms() + SHOP_WAIT_MS; test_now_ms() < deadline_ms;) {
        int status = shop_post(&kill_rig.shop, request->path, request->key, request->body, ret);
        if (status == 201)
            return;
        if (status != 503)
            fail_msg("%s: %d %s", request->key, status, ret->body);
        nanosleep(&(struct timespec){.tv_nsec = RETRY_NS}, NULL); /* a client's retry delay */
    }
    fail_msg("%s: no decision", request->key);
}

struct kill_request kill_request(const char *name, const char *path, const char *body)
{
    struct kill_request request = {.body = body};
    snprintf(request.key, sizeof request.key, "%s-%d", name, ++kill_rig.next_key);
    snprintf(request.path, sizeof request.path, "%s", path);
    return request;
}

struct kill_request kill_order(void)
{
    return kill_request("order", "/v1/items/1/orders", "{\"user_id\":\"u1\",\"quantity\":2}");
}

struct kill_request kill_answered_order(void)
{
    struct kill_request order = kill_order();
    kill_decide(&order, &kill_rig.answer);
    kill_rig.decided++;
    return order;
}

/* -- kills --------------------------------------------------------------------------------------
 */

void kill_judge(const struct kill_request *request, bool answered)
{
    int64_t stored = books_number(&kill_rig.books, "SELECT count(*) FROM idempotency");
    if (!books_agree(&kill_rig.books))
        fail_msg("killed at call %d", kill_rig.at);
    if (stored < kill_rig.decided || stored > kill_rig.decided + 1)
        fail_msg("killed at call %d: %lld answers are stored, and clients have %lld", kill_rig.at,
                 (long long)stored, (long long)kill_rig.decided);
    if (answered && !books_have_answer(&kill_rig.books, request->key, kill_rig.answer.body))
        fail_msg("killed at call %d: %s was answered, and is not stored", kill_rig.at,
                 request->key);
}

int kill_at_each(const char *name, int usual_step, bool (*at)(const void *arg, int n),
                 const void *arg)
{
    int kills = 0, misses = 0;
    choose_share(usual_step);
    for (int n = kill_rig.first; misses < MISSES; n += kill_rig.step) {
        assert_true(n < CALLS_MAX);
        kill_rig.at = n;
        bool hit = at(arg, n);
        kills += hit;
        misses = hit ? 0 : misses + 1;
    }
    print_message("%s: %d kills, KILL_STEP=%d KILL_FIRST=%d\n", name, kills, kill_rig.step,
                  kill_rig.first);
    return kills;
}
