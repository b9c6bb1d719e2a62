/* The answers of memcached to its guard: see wire.h. The first byte says what is asked first. */
#include "client.h"
#include "fuzz.h"
#include "wire.h"

static bool is_answer(lk_status status)
{
    return status == LK_OK || status == LK_BUSY || status == LK_LOST || status == LK_UNAVAILABLE ||
           status == LK_UNKNOWN || status == LK_PROTOCOL;
}

static int each(void *count, const lk_lock_info *info)
{
    FUZZ_CHECK(memchr(info->key, '\0', sizeof info->key) != NULL);
    FUZZ_CHECK(strncmp(info->key, "lock:", 5) == 0 && strchr(info->key, ' ') == NULL);
    return ++*(int *)count > 100;
}

static void ask(lk_client *client, int what, lk_hold *hold)
{
    const lk_provider *provider = client->provider;
    lk_attempt attempt = {.hold = hold, .deadline_us = INT64_MAX, .last = true};
    lk_lock_info info = {.left_ms = INT64_MAX};
    lk_status status = LK_OK;
    int count = 0;
    switch (what) {
    case 0:
        status = provider->try_acquire(client->self, &attempt);
        break;
    case 1:
        status = provider->renew(client->self, hold, 30000);
        FUZZ_CHECK(status != LK_BUSY);
        break;
    case 2:
        status = provider->confirm(client->self, hold);
        break;
    case 3:
        status = provider->release(client->self, hold);
        break;
    case 4:
        status = provider->inspect(client->self, hold->key, &info);
        FUZZ_CHECK(memchr(info.token, '\0', sizeof info.token) != NULL);
        FUZZ_CHECK(info.holders == 0 || info.left_ms >= 0);
        break;
    case 5:
        status = provider->list(client->self, "lock:", each, &count);
        break;
    case 6:
        status = provider->force_release(client->self, hold->key);
        break;
    default:
        status = provider->ping(client->self);
    }
    FUZZ_CHECK(is_answer(status));
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    lk_client *client;
    const lk_options options = {.command_timeout_ms = 1000};
    lk_hold hold = {.key = "lock:item:1", .token = "fuzz:owner", .lease_ms = 30000};
    const int first = fuzz_byte(&input, &size);
    FUZZ_CHECK(lk_open("memcached", "127.0.0.1:1", &options, &client, NULL) == LK_OK);
    wire_begin(input, size, NULL, 0);
    for (int i = 0; i < 8 && !wire_is_over(); i++)
        ask(client, (first + i) % 8, &hold);
    lk_close(client);
    wire_end();
    return 0;
}
