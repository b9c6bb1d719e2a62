/* Looking at locks from outside, and freeing them by hand: what operators and tools need. */
#include "client.h"

#include <string.h>

lk_status lk_confirm(const lk_hold *hold)
{
    if (hold_state(hold) != HOLD_HELD && hold_state(hold) != HOLD_LAPSED)
        return LK_LOST;
    const lk_client *client = hold->client;
    if (!client->provider->confirm)
        return LK_UNSUPPORTED;
    return client->provider->confirm(client->self, hold);
}

lk_status lk_inspect(lk_client *client, const char *key, lk_lock_info *ret)
{
    if (!client || !client_key_valid(key))
        return LK_INVALID;
    if (!client->provider->inspect)
        return LK_UNSUPPORTED;
    lk_lock_info info = {.left_ms = INT64_MAX};
    memcpy(info.key, key, strlen(key) + 1);
    lk_status status = client->provider->inspect(client->self, key, &info);
    if (status == LK_OK)
        *ret = info;
    return status;
}

lk_status lk_list(lk_client *client, const char *prefix,
                  int (*each)(void *arg, const lk_lock_info *info), void *arg)
{
    if (!client || (prefix[0] != '\0' && !client_key_valid(prefix)))
        return LK_INVALID;
    if (!client->provider->list)
        return LK_UNSUPPORTED;
    return client->provider->list(client->self, prefix, each, arg);
}

lk_status lk_force_release(lk_client *client, const char *key)
{
    if (!client || !client_key_valid(key))
        return LK_INVALID;
    if (!client->provider->force_release)
        return LK_UNSUPPORTED;
    return client->provider->force_release(client->self, key);
}
