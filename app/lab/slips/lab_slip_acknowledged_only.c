/* Redlock as it is often written. It asks one node after the other and releases only the nodes that
 * said yes. If a node has set the key and its answer was lost, it keeps the key until the lease
 * ends. */
#include "lab_redis.h"
#include "lab_slips.h"
#include "provider.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES_MAX = 9, URL_MAX = 256, NUMBER_MAX = 24 };

static const char release_body[] = "if redis.call('get', KEYS[1]) == ARGV[1] then "
                                   "  return redis.call('del', KEYS[1]) "
                                   "end "
                                   "return 0";

struct apart {
    int64_t timeout_ms;
    int n;
    char url[NODES_MAX][URL_MAX];
    pthread_mutex_t mutex; /* for the connections */
    redisContext *node[NODES_MAX];
};

/* True: the node has answered OK or 1. */
static bool ask(struct apart *self, int i, int n, const char **words)
{
    redisReply *reply = NULL;
    pthread_mutex_lock(&self->mutex);
    if (self->node[i] == NULL)
        self->node[i] = lab_redis_connect(self->url[i], self->timeout_ms);
    if (self->node[i] != NULL)
        reply = redisCommandArgv(self->node[i], n, words, NULL);
    if (reply == NULL && self->node[i] != NULL) {
        redisFree(self->node[i]);
        self->node[i] = NULL;
    }
    pthread_mutex_unlock(&self->mutex);
    const bool yes = reply != NULL && (reply->type == REDIS_REPLY_STATUS ||
                                       (reply->type == REDIS_REPLY_INTEGER && reply->integer == 1));
    freeReplyObject(reply);
    return yes;
}

/* hold->private_.slot: a bit for each node that has said yes. */
static lk_status release(void *opaque, lk_hold *hold)
{
    struct apart *self = opaque;
    const char *words[] = {"EVAL", release_body, "1", hold->key, hold->token};
    for (int i = 0; i < self->n; i++)
        if (hold->private_.slot >> i & 1)
            ask(self, i, 5, words);
    return LK_OK;
}

static lk_status try_acquire(void *opaque, lk_attempt *attempt)
{
    struct apart *self = opaque;
    lk_hold *hold = attempt->hold;
    char lease[NUMBER_MAX];
    const char *words[] = {"SET", hold->key, hold->token, "NX", "PX", lease};
    int yes = 0;
    snprintf(lease, sizeof lease, "%" PRId64, hold->lease_ms);
    hold->private_.slot = 0;
    for (int i = 0; i < self->n; i++)
        if (ask(self, i, 6, words)) {
            hold->private_.slot |= UINT64_C(1) << i;
            yes++;
        }
    if (yes > self->n / 2)
        return LK_OK;
    release(opaque, hold);
    return LK_BUSY;
}

static lk_status open_apart(const lk_context *context, void **ret_self, lk_error *error)
{
    const char *text = context->endpoints;
    struct apart *self = calloc(1, sizeof *self);
    if (self == NULL)
        return lk_fail(error, LK_NO_MEMORY, "out of memory for redlock");
    self->timeout_ms = context->options->command_timeout_ms;
    pthread_mutex_init(&self->mutex, NULL);
    for (; *text != '\0' && self->n < NODES_MAX; self->n++) {
        const size_t length = lk_redis_url_span(text);
        snprintf(self->url[self->n], URL_MAX, "%.*s", (int)length, text);
        text += length + (text[length] == ',');
    }
    *ret_self = self;
    return LK_OK;
}

static void close_apart(void *opaque)
{
    struct apart *self = opaque;
    for (int i = 0; i < self->n; i++)
        redisFree(self->node[i]);
    pthread_mutex_destroy(&self->mutex);
    free(self);
}

void lab_slip_acknowledged_only(struct seams *seams)
{
    static lk_provider wrong;
    const lk_provider *right = lk_provider_builtin("redlock");
    wrong = (lk_provider){.info = right->info,
                          .open = open_apart,
                          .close = close_apart,
                          .try_acquire = try_acquire,
                          .valid_ms = right->valid_ms,
                          .release = release};
    wrong.info.caps &= ~(uint32_t)LK_CAP_RENEW;
    lab_slip_provider(seams, &wrong);
}
