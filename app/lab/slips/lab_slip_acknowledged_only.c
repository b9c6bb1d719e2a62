/* Redlock as it is often written: one node after the other, and what is released is what was
 * counted. A node that has set the key and could not say so keeps it until the lease ends. */
#include "lab_slips.h"
#include "providers.h"
#include "redlock_ballot.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { URL_MAX = 256, NUMBER_MAX = 24 };

static const char release_body[] = "if redis.call('get', KEYS[1]) == ARGV[1] then "
                                   "  return redis.call('del', KEYS[1]) "
                                   "end "
                                   "return 0";

struct apart {
    int n;
    char url[LK_REDLOCK_NODES_MAX][URL_MAX];
    lk_context context[LK_REDLOCK_NODES_MAX];
    lk_redlock_nodes *node[LK_REDLOCK_NODES_MAX]; /* each a set of one */
};

static bool ask(const struct apart *self, int i, const char *token, int n, const char **words)
{
    lk_redlock_ballot ballot = {.n = 0};
    return lk_redlock_ask(self->node[i], &ballot, token, n, words) == LK_OK && ballot.yes == 1;
}

/* hold->private_.slot: a bit for each node that has said yes. */
static lk_status release(void *opaque, lk_hold *hold)
{
    const struct apart *self = opaque;
    const char *words[] = {"EVAL", release_body, "1", hold->key, hold->token};
    for (int i = 0; i < self->n; i++)
        if (hold->private_.slot >> i & 1)
            ask(self, i, hold->token, 5, words);
    return LK_OK;
}

static lk_status try_acquire(void *opaque, lk_attempt *attempt)
{
    const struct apart *self = opaque;
    lk_hold *hold = attempt->hold;
    char lease[NUMBER_MAX];
    const char *words[] = {"SET", hold->key, hold->token, "NX", "PX", lease};
    int yes = 0;
    snprintf(lease, sizeof lease, "%" PRId64, hold->lease_ms);
    hold->private_.slot = 0;
    for (int i = 0; i < self->n; i++)
        if (ask(self, i, hold->token, 6, words)) {
            hold->private_.slot |= UINT64_C(1) << i;
            yes++;
        }
    if (yes > self->n / 2)
        return LK_OK;
    release(opaque, hold);
    return LK_BUSY;
}

static void close_apart(void *opaque)
{
    struct apart *self = opaque;
    for (int i = 0; i < self->n; i++)
        lk_redlock_close(self->node[i]);
    free(self);
}

static lk_status open_apart(const lk_context *context, void **ret_self, lk_error *error)
{
    const char *text = context->endpoints;
    struct apart *self = calloc(1, sizeof *self);
    if (self == NULL)
        return lk_fail(error, LK_NO_MEMORY, "out of memory for redlock");
    while (*text != '\0' && self->n < LK_REDLOCK_NODES_MAX) {
        size_t length = strcspn(text, ",");
        char *url = self->url[self->n];
        snprintf(url, URL_MAX, "%.*s", (int)length, text);
        self->context[self->n] = *context;
        self->context[self->n].endpoints = url;
        lk_status status = lk_redlock_open(&self->context[self->n], &self->node[self->n], error);
        if (status != LK_OK) {
            close_apart(self);
            return status;
        }
        self->n++;
        text += length + (text[length] == ',');
    }
    *ret_self = self;
    return LK_OK;
}

void lab_slip_acknowledged_only(struct seams *seams)
{
    static lk_provider wrong;
    wrong = (lk_provider){.info = lk_redlock.info,
                          .open = open_apart,
                          .close = close_apart,
                          .try_acquire = try_acquire,
                          .valid_ms = lk_redlock.valid_ms,
                          .release = release};
    wrong.info.caps &= ~(uint32_t)LK_CAP_RENEW;
    lab_slip_provider(seams, &wrong);
}
