/*
 * The answers of Redis to the guards: one node, Sentinels, a cluster, five nodes of Redlock. The
 * first byte names the guard, the second the topology; the rest is what the servers say (wire.h).
 *
 * Whatever they say, each call returns a status of its own list, and what it tells fits its rooms.
 */
#include "client.h"
#include "fuzz.h"
#include "wire.h"

static const char *const guards[] = {"redis-token",        "redis-reentrant", "redis-fair",
                                     "redis-readwrite",    "redis-semaphore", "redis-set",
                                     "redis-setnx-expire", "redis-getset",    "redis-setnx"};
static const char *const endpoints[] = {"unix:///redis", "redis://u:p@127.0.0.1:1/3",
                                        "redis+sentinel://127.0.0.1:1,127.0.0.1:2/m",
                                        "redis+cluster://127.0.0.1:1,127.0.0.1:2"};
static const char redlock_nodes[] = "redis://127.0.0.1:1,redis://127.0.0.1:2,redis://127.0.0.1:3";

static bool is_answer(lk_status status)
{
    return status == LK_OK || status == LK_BUSY || status == LK_LOST || status == LK_UNAVAILABLE ||
           status == LK_UNKNOWN || status == LK_PROTOCOL || status == LK_NO_MEMORY;
}

static void check_info(const lk_lock_info *info)
{
    FUZZ_CHECK(memchr(info->key, '\0', sizeof info->key) != NULL &&
               memchr(info->token, '\0', sizeof info->token) != NULL);
    FUZZ_CHECK(info->holders >= 0 && info->waiters >= 0);
}

static int each(void *count, const lk_lock_info *info)
{
    check_info(info);
    FUZZ_CHECK(strncmp(info->key, "lock:", 5) == 0 && info->holders >= 1);
    return ++*(int *)count > 100;
}

static void hold_and_release(const lk_provider *provider, void *self, lk_mode mode)
{
    lk_hold hold = {
        .key = "lock:item:1", .token = "fuzz:owner", .mode = mode, .permits = 2, .lease_ms = 30000};
    lk_attempt attempt = {.hold = &hold, .deadline_us = INT64_MAX, .last = true};
    const lk_status status = provider->try_acquire(self, &attempt);
    FUZZ_CHECK(is_answer(status));
    if (status == LK_OK && provider->info.caps & LK_CAP_FENCE)
        FUZZ_CHECK(hold.fence > 0);
    if (provider->renew != NULL)
        FUZZ_CHECK(is_answer(provider->renew(self, &hold, 30000)));
    if (provider->confirm != NULL)
        FUZZ_CHECK(is_answer(provider->confirm(self, &hold)));
    FUZZ_CHECK(is_answer(provider->release(self, &hold)));
}

static void look(const lk_provider *provider, void *self)
{
    lk_lock_info info = {.key = "lock:item:1", .left_ms = INT64_MAX};
    int count = 0;
    if (provider->inspect != NULL && provider->inspect(self, "lock:item:1", &info) == LK_OK)
        check_info(&info);
    if (provider->list != NULL)
        FUZZ_CHECK(is_answer(provider->list(self, "lock:", each, &count)));
    if (provider->force_release != NULL)
        FUZZ_CHECK(is_answer(provider->force_release(self, "lock:item:1")));
    if (provider->raise_fence != NULL)
        FUZZ_CHECK(is_answer(provider->raise_fence(self, "lock:item:1", 7)));
    if (provider->ping != NULL)
        FUZZ_CHECK(is_answer(provider->ping(self)));
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    const size_t n = sizeof guards / sizeof *guards;
    const size_t guard = fuzz_byte(&input, &size) % (n + 1), how = fuzz_byte(&input, &size);
    const lk_options options = {.command_timeout_ms = 1000, .spin_us = -1};
    char message[LK_MESSAGE_MAX];
    lk_client *client;
    const lk_status opened =
        guard == n ? lk_open("redlock", redlock_nodes, &options, &client, NULL)
                   : lk_open(guards[guard], endpoints[how % 4], &options, &client, NULL);
    if (opened != LK_OK)
        return 0;
    wire_begin(input, size, NULL, 0);
    if (how & 4)
        look(client->provider, client->self);
    hold_and_release(client->provider, client->self, how & 8 ? LK_SHARED : LK_EXCLUSIVE);
    if (!(how & 4))
        look(client->provider, client->self);
    lk_last_error(client, message, sizeof message);
    FUZZ_CHECK(strlen(message) < sizeof message);
    lk_close(client);
    wire_end();
    return 0;
}
