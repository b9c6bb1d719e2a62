#include "op.h"

#include <assert.h>
#include <string.h>

static_assert(DB_KEY_MAX >= DB_ID_MAX + 1 + OP_KEY_MAX, "a caller's name, a tab, and a key");

void op_set_key(struct op *op, const char *key)
{
    char *at = op->key;
    if (op->caller[0] != '\0') {
        at = stpcpy(at, op->caller);
        *at++ = '\t';
    }
    assert(strlen(key) <= OP_KEY_MAX);
    strcpy(at, key);
}

const char *op_client_key(const struct op *op)
{
    const char *tab = strchr(op->key, '\t');
    return tab != NULL ? tab + 1 : op->key;
}

bool op_may_see(const struct op *op, const char *user_id)
{
    return !op->own_only || strcmp(op->caller, user_id) == 0;
}
