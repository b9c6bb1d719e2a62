/*
 * memcached: a key that only the first can add.
 *
 * Algorithm: add key token exptime; release: gets, compare the value with the own token, meta
 *            delete with the compare-and-swap number of what was read; renewal: the same with
 *            cas. memcached counts whole seconds and may take one off: it is asked for the lease
 *            rounded up and one second more, while the holder counts on the lease alone.
 * Guarantee: one holder at a time until its lease ends, while the server keeps the key; only the
 *            holder frees it.
 * Weakness:  a cache may forget: eviction under memory pressure, a restart, flush_all, all while
 *            the lock is held; no fence; a dead holder's lock stays up to two seconds beyond its
 *            lease; waiters poll, in no order.
 * Source:    memcached's doc/protocol.txt (add, gets, cas, "Meta Delete"; needs memcached 1.6)
 */
#include "memcached_pool.h"
#include "number.h"
#include "providers.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMAND_MAX = LK_KEY_MAX + LK_TOKEN_MAX + 128, MS_PER_S = 1000 };

struct memcached {
    lk_memcached_pool *pool;
    _Atomic uint64_t n_marks;
};

/* One call's link, and what was answered last. */
struct talk {
    lk_memcached_pool *pool;
    lk_memcached_link *link;
    char line[LK_MEMCACHED_ANSWER_MAX];
};

/* -- talking ----------------------------------------------------------------------------------- */

static lk_status begin(struct memcached *self, struct talk *talk)
{
    talk->pool = self->pool;
    talk->link = lk_memcached_take(self->pool);
    return talk->link != NULL ? LK_OK : LK_UNAVAILABLE;
}

/* Sends, and reads the first line of the answer. */
__attribute__((format(printf, 2, 3))) static lk_status say(struct talk *talk, const char *format,
                                                           ...)
{
    char command[COMMAND_MAX];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(command, sizeof command, format, args);
    va_end(args);
    return lk_memcached_ask(talk->pool, talk->link, command, (size_t)length, talk->line);
}

static lk_status end(struct talk *talk, lk_status status)
{
    bool whole = status == LK_OK || status == LK_BUSY || status == LK_LOST;
    if (talk->link != NULL)
        lk_memcached_give(talk->pool, talk->link, whole);
    return status;
}

static lk_status nonsense(const struct talk *talk)
{
    return lk_memcached_note(talk->link, LK_PROTOCOL, talk->line);
}

/* The answer is `yes`: LK_OK; another one that the protocol knows: otherwise. */
static lk_status judge(const struct talk *talk, const char *yes, lk_status otherwise,
                       const char *no, const char *also_no)
{
    if (strcmp(talk->line, yes) == 0)
        return LK_OK;
    if (strcmp(talk->line, no) == 0 || strcmp(talk->line, also_no) == 0)
        return otherwise;
    return nonsense(talk);
}

/* LK_OK: the key holds this token, *ret_cas is its number; LK_LOST: it does not. */
static lk_status find(struct talk *talk, const char *key, const char *token, uint64_t *ret_cas)
{
    size_t bytes;
    char *line = talk->line;
    lk_status status = say(talk, "gets %s\r\n", key);
    if (status != LK_OK)
        return status;
    if (strcmp(line, "END") == 0)
        return LK_LOST;
    if (sscanf(line, "VALUE %*s %*u %zu %" SCNu64, &bytes, ret_cas) != 2)
        return nonsense(talk);
    if (bytes > LK_TOKEN_MAX) { /* not one of ours, and not worth reading */
        lk_memcached_give(talk->pool, talk->link, false);
        talk->link = NULL;
        return LK_LOST;
    }
    status = lk_memcached_value(talk->link, bytes, line);
    bool ours = status == LK_OK && bytes == strlen(token) && memcmp(line, token, bytes) == 0;
    if (status == LK_OK)
        status = lk_memcached_line(talk->link, line);
    if (status == LK_OK && strcmp(line, "END") != 0)
        status = nonsense(talk);
    if (status == LK_OK && !ours)
        status = LK_LOST;
    return status;
}

/* -- the lock ---------------------------------------------------------------------------------- */

/* At least lease_ms of memcached's time, whose seconds may begin with a short one. */
static int64_t exptime_s(int64_t lease_ms)
{
    return (lease_ms + MS_PER_S - 1) / MS_PER_S + 1;
}

static lk_status try_acquire(void *opaque, lk_attempt *attempt)
{
    struct memcached *self = opaque;
    lk_hold *hold = attempt->hold;
    struct talk talk;
    lk_mark(&self->n_marks, hold);
    lk_status status = begin(self, &talk);
    if (status == LK_OK)
        status = say(&talk, "add %s 0 %" PRId64 " %zu\r\n%s\r\n", hold->key,
                     exptime_s(hold->lease_ms), strlen(hold->token), hold->token);
    if (status == LK_OK)
        status = judge(&talk, "STORED", LK_BUSY, "NOT_STORED", "NOT_STORED");
    return end(&talk, status);
}

static lk_status renew(void *opaque, lk_hold *hold, int64_t lease_ms)
{
    struct talk talk;
    uint64_t cas;
    lk_status status = begin(opaque, &talk);
    if (status == LK_OK)
        status = find(&talk, hold->key, hold->token, &cas);
    if (status == LK_OK)
        status = say(&talk, "cas %s 0 %" PRId64 " %zu %" PRIu64 "\r\n%s\r\n", hold->key,
                     exptime_s(lease_ms), strlen(hold->token), cas, hold->token);
    if (status == LK_OK)
        status = judge(&talk, "STORED", LK_LOST, "EXISTS", "NOT_FOUND");
    return end(&talk, status);
}

static lk_status release(void *opaque, lk_hold *hold)
{
    struct talk talk;
    uint64_t cas;
    lk_status status = begin(opaque, &talk);
    if (status == LK_OK)
        status = find(&talk, hold->key, hold->token, &cas);
    if (status == LK_OK)
        status = say(&talk, "md %s C%" PRIu64 "\r\n", hold->key, cas);
    if (status == LK_OK)
        status = judge(&talk, "HD", LK_LOST, "EX", "NF");
    return end(&talk, status);
}

/* -- from outside ------------------------------------------------------------------------------ */

static lk_status confirm(void *opaque, const lk_hold *hold)
{
    struct talk talk;
    uint64_t cas;
    lk_status status = begin(opaque, &talk);
    if (status == LK_OK)
        status = find(&talk, hold->key, hold->token, &cas);
    return end(&talk, status);
}

/* Meta get gives value and remaining seconds; "u": without counting as a use of the key. */
static lk_status inspect(void *opaque, const char *key, lk_lock_info *ret)
{
    struct talk talk;
    size_t bytes;
    long long left_s;
    lk_status status = begin(opaque, &talk);
    if (status == LK_OK)
        status = say(&talk, "mg %s t v u\r\n", key);
    if (status != LK_OK || strcmp(talk.line, "EN") == 0)
        return end(&talk, status);
    if (sscanf(talk.line, "VA %zu t%lld", &bytes, &left_s) != 2)
        return end(&talk, nonsense(&talk));
    ret->holders = 1;
    ret->left_ms = left_s < 0 ? INT64_MAX : lk_product(left_s, MS_PER_S);
    if (bytes > LK_TOKEN_MAX) { /* another program's: not read */
        lk_memcached_give(talk.pool, talk.link, false);
        return LK_OK;
    }
    status = lk_memcached_value(talk.link, bytes, talk.line);
    if (status == LK_OK)
        memcpy(ret->token, talk.line, bytes + 1);
    return end(&talk, status);
}

/* "key=lock%3Aitem%3A1 exp=..." */
static bool parse_key(const char *line, char key[LK_KEY_MAX + 1])
{
    size_t n = 0;
    if (strncmp(line, "key=", 4) != 0)
        return false;
    for (line += 4; *line != ' ' && *line != '\0'; line++) {
        unsigned code = (unsigned char)*line;
        if (code == '%') {
            if (!isxdigit((unsigned char)line[1]) || !isxdigit((unsigned char)line[2]) ||
                sscanf(line + 1, "%2x", &code) != 1)
                return false;
            line += 2;
        }
        if (n == LK_KEY_MAX || code <= ' ' || code > '~')
            return false;
        key[n++] = (char)code;
    }
    key[n] = '\0';
    return n > 0;
}

/* Goes through all that the cache keeps, other programs' things too: the prefix tells. */
static lk_status list(void *opaque, const char *prefix,
                      int (*each)(void *arg, const lk_lock_info *info), void *arg)
{
    struct talk talk;
    int stop = 0;
    lk_status status = begin(opaque, &talk);
    if (status == LK_OK)
        status = say(&talk, "lru_crawler metadump all\r\n");
    if (status == LK_OK && strncmp(talk.line, "BUSY", 4) == 0)
        status = lk_memcached_note(talk.link, LK_UNAVAILABLE, talk.line); /* the crawler has work */
    while (status == LK_OK && stop == 0 && strcmp(talk.line, "END") != 0) {
        lk_lock_info info = {.holders = 1, .left_ms = INT64_MAX};
        if (parse_key(talk.line, info.key) && strncmp(info.key, prefix, strlen(prefix)) == 0)
            stop = each(arg, &info);
        if (stop == 0)
            status = lk_memcached_line(talk.link, talk.line);
    }
    if (stop == 0)
        return end(&talk, status);
    lk_memcached_give(talk.pool, talk.link, false); /* with the rest unread */
    return LK_OK;
}

static lk_status force_release(void *opaque, const char *key)
{
    struct talk talk;
    lk_status status = begin(opaque, &talk);
    if (status == LK_OK)
        status = say(&talk, "delete %s\r\n", key);
    if (status == LK_OK)
        status = judge(&talk, "DELETED", LK_LOST, "NOT_FOUND", "NOT_FOUND");
    return end(&talk, status);
}

static lk_status ping(void *opaque)
{
    struct talk talk;
    lk_status status = begin(opaque, &talk);
    if (status == LK_OK)
        status = say(&talk, "version\r\n");
    if (status == LK_OK && strncmp(talk.line, "VERSION ", 8) != 0)
        status = nonsense(&talk);
    return end(&talk, status);
}

/* -- opening and closing ----------------------------------------------------------------------- */

static lk_status open_memcached(const lk_context *context, void **ret_self, lk_error *error)
{
    struct memcached *self = calloc(1, sizeof *self);
    if (self == NULL)
        return lk_fail(error, LK_NO_MEMORY, "out of memory for memcached");
    lk_status status = lk_memcached_open(context, &self->pool, error);
    if (status != LK_OK)
        free(self);
    else
        *ret_self = self;
    return status;
}

static void close_memcached(void *opaque)
{
    struct memcached *self = opaque;
    lk_memcached_close(self->pool);
    free(self);
}

const lk_provider lk_memcached = {
    .info = {.name = "memcached",
             .caps = LK_CAP_EXCLUSIVE | LK_CAP_DISTRIBUTED | LK_CAP_LEASE | LK_CAP_ATOMIC_LEASE |
                     LK_CAP_OWNER | LK_CAP_RENEW | LK_CAP_SERVER_CLOCK,
             .algorithm = "add key token with an expiry in whole seconds; release by "
                          "compare-and-delete with the number that gets gave",
             .guarantee = "one holder at a time until its lease ends, while the cache keeps the "
                          "key; only the holder frees it",
             .weakness = "a cache forgets: eviction, restart or flush lets a second one in; no "
                         "fence; waiters poll, in no order",
             .source = "https://github.com/memcached/memcached/blob/master/doc/protocol.txt"},
    .open = open_memcached,
    .close = close_memcached,
    .try_acquire = try_acquire,
    .renew = renew,
    .release = release,
    .ping = ping,
    .confirm = confirm,
    .inspect = inspect,
    .list = list,
    .force_release = force_release,
};
