/*
 * memcached: only the first caller can add a key.
 *
 * Algorithm: add key token exptime. Release: gets, compare the value with our token, meta delete
 *            with the compare-and-swap number that was read. Renewal: the same with cas. memcached
 *            counts whole seconds and may take one off, so the expiry is the lease rounded up and
 *            one second more. The holder counts on the lease alone.
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
    _Atomic uint64_t n_tokens;
};

/* One call's connection, and what was answered last. */
struct exchange {
    lk_memcached_pool *pool;
    lk_memcached_connection *connection;
    char line[LK_MEMCACHED_ANSWER_MAX];
};

/* -- talking ----------------------------------------------------------------------------------- */

static lk_status begin(struct memcached *self, struct exchange *exchange)
{
    exchange->pool = self->pool;
    exchange->connection = lk_memcached_take(self->pool);
    return exchange->connection != NULL ? LK_OK : LK_UNAVAILABLE;
}

/* Sends, and reads the first line of the answer. */
__attribute__((format(printf, 2, 3))) static lk_status ask(struct exchange *exchange,
                                                           const char *format, ...)
{
    char command[COMMAND_MAX];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(command, sizeof command, format, args);
    va_end(args);
    return lk_memcached_ask(exchange->connection, command, (size_t)length, exchange->line);
}

static lk_status end(struct exchange *exchange, lk_status status)
{
    bool whole = status == LK_OK || status == LK_BUSY || status == LK_LOST;
    if (exchange->connection != NULL)
        lk_memcached_give(exchange->pool, exchange->connection, whole);
    return status;
}

static lk_status bad_answer(const struct exchange *exchange)
{
    return lk_memcached_note(exchange->connection, LK_PROTOCOL, exchange->line);
}

/* The answer is `yes`: LK_OK; another one that the protocol knows: otherwise. */
static lk_status judge(const struct exchange *exchange, const char *yes, lk_status otherwise,
                       const char *no, const char *also_no)
{
    if (strcmp(exchange->line, yes) == 0)
        return LK_OK;
    if (strcmp(exchange->line, no) == 0 || strcmp(exchange->line, also_no) == 0)
        return otherwise;
    return bad_answer(exchange);
}

/* LK_OK: the key holds this token, *ret_cas is its number; LK_LOST: it does not. */
static lk_status find(struct exchange *exchange, const char *key, const char *token,
                      uint64_t *ret_cas)
{
    size_t bytes;
    char *line = exchange->line;
    lk_status status = ask(exchange, "gets %s\r\n", key);
    if (status != LK_OK)
        return status;
    if (strcmp(line, "END") == 0)
        return LK_LOST;
    if (sscanf(line, "VALUE %*s %*u %zu %" SCNu64, &bytes, ret_cas) != 2)
        return bad_answer(exchange);
    if (bytes > LK_TOKEN_MAX) { /* not one of ours, and not worth reading */
        lk_memcached_give(exchange->pool, exchange->connection, false);
        exchange->connection = NULL;
        return LK_LOST;
    }
    status = lk_memcached_value(exchange->connection, bytes, line);
    bool ours = status == LK_OK && bytes == strlen(token) && memcmp(line, token, bytes) == 0;
    if (status == LK_OK)
        status = lk_memcached_line(exchange->connection, line);
    if (status == LK_OK && strcmp(line, "END") != 0)
        status = bad_answer(exchange);
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
    struct exchange exchange;
    lk_make_token_unique(&self->n_tokens, hold);
    lk_status status = begin(self, &exchange);
    if (status == LK_OK)
        status = ask(&exchange, "add %s 0 %" PRId64 " %zu\r\n%s\r\n", hold->key,
                     exptime_s(hold->lease_ms), strlen(hold->token), hold->token);
    if (status == LK_OK)
        status = judge(&exchange, "STORED", LK_BUSY, "NOT_STORED", "NOT_STORED");
    return end(&exchange, status);
}

static lk_status renew(void *opaque, lk_hold *hold, int64_t lease_ms)
{
    struct exchange exchange;
    uint64_t cas;
    lk_status status = begin(opaque, &exchange);
    if (status == LK_OK)
        status = find(&exchange, hold->key, hold->token, &cas);
    if (status == LK_OK)
        status = ask(&exchange, "cas %s 0 %" PRId64 " %zu %" PRIu64 "\r\n%s\r\n", hold->key,
                     exptime_s(lease_ms), strlen(hold->token), cas, hold->token);
    if (status == LK_OK)
        status = judge(&exchange, "STORED", LK_LOST, "EXISTS", "NOT_FOUND");
    return end(&exchange, status);
}

static lk_status release(void *opaque, lk_hold *hold)
{
    struct exchange exchange;
    uint64_t cas;
    lk_status status = begin(opaque, &exchange);
    if (status == LK_OK)
        status = find(&exchange, hold->key, hold->token, &cas);
    if (status == LK_OK)
        status = ask(&exchange, "md %s C%" PRIu64 "\r\n", hold->key, cas);
    if (status == LK_OK)
        status = judge(&exchange, "HD", LK_LOST, "EX", "NF");
    return end(&exchange, status);
}

/* -- from outside ------------------------------------------------------------------------------ */

static lk_status confirm(void *opaque, const lk_hold *hold)
{
    struct exchange exchange;
    uint64_t cas;
    lk_status status = begin(opaque, &exchange);
    if (status == LK_OK)
        status = find(&exchange, hold->key, hold->token, &cas);
    return end(&exchange, status);
}

/* Meta get gives value and remaining seconds; "u": without counting as a use of the key. */
static lk_status inspect(void *opaque, const char *key, lk_lock_info *ret)
{
    struct exchange exchange;
    size_t bytes;
    long long left_s;
    lk_status status = begin(opaque, &exchange);
    if (status == LK_OK)
        status = ask(&exchange, "mg %s t v u\r\n", key);
    if (status != LK_OK || strcmp(exchange.line, "EN") == 0)
        return end(&exchange, status);
    if (sscanf(exchange.line, "VA %zu t%lld", &bytes, &left_s) != 2)
        return end(&exchange, bad_answer(&exchange));
    ret->holders = 1;
    ret->left_ms = left_s < 0 ? INT64_MAX : lk_product(left_s, MS_PER_S);
    if (bytes > LK_TOKEN_MAX) { /* another program's: not read */
        lk_memcached_give(exchange.pool, exchange.connection, false);
        return LK_OK;
    }
    status = lk_memcached_value(exchange.connection, bytes, exchange.line);
    if (status == LK_OK)
        memcpy(ret->token, exchange.line, bytes + 1);
    return end(&exchange, status);
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
    struct exchange exchange;
    int stop = 0;
    lk_status status = begin(opaque, &exchange);
    if (status == LK_OK)
        status = ask(&exchange, "lru_crawler metadump all\r\n");
    if (status == LK_OK && strncmp(exchange.line, "BUSY", 4) == 0)
        status = lk_memcached_note(exchange.connection, LK_UNAVAILABLE,
                                   exchange.line); /* the crawler has work */
    while (status == LK_OK && stop == 0 && strcmp(exchange.line, "END") != 0) {
        lk_lock_info info = {.holders = 1, .left_ms = INT64_MAX};
        if (parse_key(exchange.line, info.key) && strncmp(info.key, prefix, strlen(prefix)) == 0)
            stop = each(arg, &info);
        if (stop == 0)
            status = lk_memcached_line(exchange.connection, exchange.line);
    }
    if (stop == 0)
        return end(&exchange, status);
    lk_memcached_give(exchange.pool, exchange.connection, false); /* with the rest unread */
    return LK_OK;
}

static lk_status force_release(void *opaque, const char *key)
{
    struct exchange exchange;
    lk_status status = begin(opaque, &exchange);
    if (status == LK_OK)
        status = ask(&exchange, "delete %s\r\n", key);
    if (status == LK_OK)
        status = judge(&exchange, "DELETED", LK_LOST, "NOT_FOUND", "NOT_FOUND");
    return end(&exchange, status);
}

static lk_status ping(void *opaque)
{
    struct exchange exchange;
    lk_status status = begin(opaque, &exchange);
    if (status == LK_OK)
        status = ask(&exchange, "version\r\n");
    if (status == LK_OK && strncmp(exchange.line, "VERSION ", 8) != 0)
        status = bad_answer(&exchange);
    return end(&exchange, status);
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
             .weakness = "a cache forgets: eviction, restart or flush lets a second holder in; no "
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
