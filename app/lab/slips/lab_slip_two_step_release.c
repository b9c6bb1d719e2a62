/* The lock's owner is looked at in one step and the lock deleted in another: between the two it may
 * have become somebody else's. */
#include "lab_slips.h"
#include "providers.h"
#include "redis_guard.h"

#include <string.h>

static lk_status release(void *self, lk_hold *hold)
{
    lk_redis_guard *guard = self;
    lk_redis_reply reply;
    const lk_env *env = guard->context->env;
    lk_status status = lk_redis_command(guard->redis, &reply, "GET", hold->key);
    status = lk_redis_expect(guard->redis, &reply, 0, status);
    if (status != LK_OK)
        return status;
    if (reply.root.type != REDIS_REPLY_STRING || strcmp(reply.root.text, hold->token) != 0)
        return LK_LOST;
    env->point(env->ctx, "lock.release.del", hold->key);
    status = lk_redis_command(guard->redis, &reply, "DEL", hold->key);
    status = lk_redis_expect(guard->redis, &reply, REDIS_REPLY_INTEGER, status);
    return lk_redis_done(status, &reply);
}

void lab_slip_two_step_release(struct seams *seams)
{
    static lk_provider wrong;
    wrong = lk_redis_token;
    wrong.release = release;
    lab_slip_provider(seams, &wrong);
}
