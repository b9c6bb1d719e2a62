/* One step checks the owner of the lock, another one deletes the lock. Between the two another
 * client may acquire it. */
#include "lab_slips.h"
#include "provider.h"

#include <string.h>

static const lk_provider *right;
static const lk_env *env; /* of the client; the lab has one */

static lk_status open_noting(const lk_context *context, void **ret_self, lk_error *error)
{
    env = context->env;
    return right->open(context, ret_self, error);
}

static lk_status release(void *self, lk_hold *hold)
{
    lk_lock_info info = {.left_ms = INT64_MAX};
    lk_status status = right->inspect(self, hold->key, &info);
    if (status != LK_OK)
        return status;
    if (info.holders == 0 || strcmp(info.token, hold->token) != 0)
        return LK_LOST;
    env->point(env->ctx, "lock.release.del", hold->key);
    return right->force_release(self, hold->key);
}

void lab_slip_two_step_release(struct seams *seams)
{
    static lk_provider wrong;
    right = lk_provider_builtin("redis-token");
    wrong = *right;
    wrong.open = open_noting;
    wrong.release = release;
    lab_slip_provider(seams, &wrong);
}
