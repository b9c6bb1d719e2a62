/* Looking at locks from outside, and freeing them by hand: what operators and tools need. */
#include "client.h"

#include <ctype.h>
#include <string.h>

/* Any program may have written the token. It must not move a terminal's cursor or break JSON. */
static void make_printable(char *token)
{
    for (; *token != '\0'; token++)
        if (*token < 0 || !isgraph(*token))
            *token = '?';
}

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
    if (!client || !lk_key_valid(key))
        return LK_INVALID;
    if (!client->provider->inspect)
        return LK_UNSUPPORTED;
    lk_lock_info info = {.left_ms = INT64_MAX};
    memcpy(info.key, key, strlen(key) + 1);
    lk_status status = client->provider->inspect(client->self, key, &info);
    if (status != LK_OK)
        return status;
    make_printable(info.token);
    *ret = info;
    return LK_OK;
}

struct listing {
    int (*each)(void *arg, const lk_lock_info *info);
    void *arg;
};

static int tell(void *arg, const lk_lock_info *info)
{
    const struct listing *listing = arg;
    lk_lock_info shown = *info;
    if (!lk_key_valid(info->key)) /* not a key of lockkit */
        return 0;
    make_printable(shown.token);
    return listing->each(listing->arg, &shown);
}

lk_status lk_list(lk_client *client, const char *prefix,
                  int (*each)(void *arg, const lk_lock_info *info), void *arg)
{
    if (!client || (prefix[0] != '\0' && !lk_key_valid(prefix)))
        return LK_INVALID;
    if (!client->provider->list)
        return LK_UNSUPPORTED;
    struct listing listing = {.each = each, .arg = arg};
    return client->provider->list(client->self, prefix, tell, &listing);
}

lk_status lk_force_release(lk_client *client, const char *key)
{
    if (!client || !lk_key_valid(key))
        return LK_INVALID;
    if (!client->provider->force_release)
        return LK_UNSUPPORTED;
    return client->provider->force_release(client->self, key);
}
