/* What names a lock and its holder: keys, owners, and tokens that no other acquire call has. */
#include "client.h"
#include "digits.h"

#include <assert.h>
#include <string.h>

enum { SLOT_STEP = 2 }; /* the lowest bit is the provider's */

bool lk_key_valid(const char *key)
{
    size_t n = 0;
    if (!key)
        return false;
    for (; key[n]; n++)
        if (n == LK_KEY_MAX || key[n] <= ' ' || key[n] > '~' || key[n] == '{' || key[n] == '}')
            return false;
    return n > 0;
}

bool client_owner_valid(const char *owner)
{
    size_t n = 0;
    for (; owner[n]; n++)
        if (n == LK_OWNER_MAX || owner[n] <= ' ' || owner[n] > '~')
            return false;
    return n > 0;
}

void client_make_token(const lk_client *client, const char *owner, char *token)
{
    static const char digits[] = "0123456789abcdef";
    size_t n = strlen(client->context.client_id);
    memcpy(token, client->context.client_id, n);
    token[n++] = ':';
    if (owner) {
        memcpy(token + n, owner, strlen(owner) + 1);
        return;
    }
    for (int word = 0; word < 2; word++) {
        uint64_t bits = client->env.random(client->env.ctx);
        for (int i = 0; i < 16; i++, bits >>= 4)
            token[n++] = digits[bits & 15];
    }
    token[n] = '\0';
}

void lk_make_token_anew(_Atomic uint64_t *n_tokens, lk_hold *hold)
{
    if (hold->private_.slot >= SLOT_STEP)
        *strrchr(hold->token, '#') = '\0';
    hold->private_.slot %= SLOT_STEP;
    lk_make_token_unique(n_tokens, hold);
}

void lk_make_token_unique(_Atomic uint64_t *n_tokens, lk_hold *hold)
{
    if (hold->private_.slot >= SLOT_STEP)
        return;
    uint64_t number = atomic_fetch_add_explicit(n_tokens, 1, memory_order_relaxed) + 1;
    hold->private_.slot |= number * SLOT_STEP;
    size_t length = strlen(hold->token);
    assert(length + 1 + LK_DIGITS_MAX < sizeof hold->token);
    hold->token[length] = '#';
    *lk_put_digits(hold->token + length + 1, number, 16) = '\0';
}
