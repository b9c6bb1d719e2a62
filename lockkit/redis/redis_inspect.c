#include "redis_inspect.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PAGE "100" /* keys of one SCAN */

enum { KIND_MAX = 16, US_PER_MS = 1000 };

/* clang-format off */

/* KEYS: lock, fence, queue. Answers "kind holders waiters mode left fence token". The token is last,
 * because the token of another program may contain anything. An expired reader may still have a field.
 * The owner of a reentrant lock is its shortest field; the other fields are that name with a suffix. */
static const char facts_body[] =
    "local TOKEN_MAX = 160 "
    "local kind, left = redis.call('type', KEYS[1]).ok, redis.call('pttl', KEYS[1]) "
    "local holders, waiters, mode, token = 0, 0, 'x', '' "
    "local function owner() "
    "  for _, field in ipairs(redis.call('hkeys', KEYS[1])) do "
    "    if field ~= '#fence' and (token == '' or #field < #token) then token = field end "
    "  end "
    "  return 1 "
    "end "
    "local function writer() "
    "  for _, field in ipairs(redis.call('hkeys', KEYS[1])) do "
    "    if string.sub(field, -6) == ':write' then token = string.sub(field, 1, -7) end "
    "  end "
    "  return 1 "
    "end "
    "local function readers() "
    "  local n, all = 0, redis.call('hgetall', KEYS[1]) "
    "  for i = 1, #all, 2 do "
    "    for entry = math.min(tonumber(all[i + 1]) or 0, 1000), 1, -1 do "
    "      if redis.call('exists', '{' .. KEYS[1] .. '}:' .. all[i] .. ':rwlock_timeout:' .. entry) "
    "         == 1 then "
    "        n, token = n + 1, all[i] "
    "        break "
    "      end "
    "    end "
    "  end "
    "  return n "
    "end "
    "local function permits() "
    "  local t = redis.call('time') "
    "  local now = t[1] * 1000 + math.floor(t[2] / 1000) "
    "  local first = redis.call('zrangebyscore', KEYS[1], now, '+inf', 'withscores', 'limit', 0, 1) "
    "  if first[1] then token, left = first[1], first[2] - now end "
    "  return redis.call('zcount', KEYS[1], now, '+inf') "
    "end "
    "if kind == 'string' then "
    "  holders, token = 1, redis.call('getrange', KEYS[1], 0, TOKEN_MAX - 1) "
    "  if redis.call('type', KEYS[3]).ok == 'list' then waiters = redis.call('llen', KEYS[3]) end "
    "elseif kind == 'zset' then "
    "  kind, holders = '" LK_REDIS_KIND_SEMAPHORE "', permits() "
    "elseif kind == 'hash' then "
    "  local its_mode = redis.call('hget', KEYS[1], 'mode') "
    "  kind = its_mode and '" LK_REDIS_KIND_READWRITE "' or '" LK_REDIS_KIND_REENTRANT "' "
    "  if its_mode == 'read' then "
    "    mode, holders = 's', readers() "
    "  else "
    "    holders = its_mode and writer() or owner() "
    "  end "
    "elseif kind ~= 'none' then "
    "  holders = 1 "
    "end "
    "return table.concat({kind, holders, waiters, mode, left, redis.call('get', KEYS[2]) or 0, "
    "  string.sub(token, 1, TOKEN_MAX)}, ' ')";

/* clang-format on */

/* KEYS: lock. ARGV: token. */
static const char confirm_body[] = "return redis.call('get', KEYS[1]) == ARGV[1] and 1 or 0";

void lk_redis_inspect_init(lk_redis_guard *guard)
{
    guard->kind = LK_REDIS_KIND_STRING;
    lk_redis_script_init(&guard->facts, facts_body);
    lk_redis_script_init(&guard->confirm, confirm_body);
    lk_redis_script_init(&guard->force, LK_REDIS_ONLY_LOCKS "return redis.call('del', KEYS[1])");
}

static lk_status ask(lk_redis_guard *guard, const char *key, char ret_kind[KIND_MAX],
                     lk_lock_info *ret)
{
    lk_redis_reply reply;
    char fence[LK_REDIS_KEY_MAX], queue[LK_REDIS_KEY_MAX], mode = 'x';
    lk_status status =
        lk_redis_eval(guard->redis, &guard->facts, &reply, REDIS_REPLY_STRING, 3, key,
                      lk_redis_key(fence, key, "fence"), lk_redis_key(queue, key, "queue"));
    if (status != LK_OK)
        return status == LK_BUSY ? LK_PROTOCOL : status;
    int64_t left_ms = 0;
    int length = 0;
    if (sscanf(reply.root.text, "%15s %" SCNu32 " %" SCNu32 " %c %" SCNd64 " %" SCNu64 "%n",
               ret_kind, &ret->holders, &ret->waiters, &mode, &left_ms, &ret->fence, &length) < 6 ||
        reply.root.text[length] != ' ')
        return LK_PROTOCOL;
    snprintf(ret->token, sizeof ret->token, "%s", reply.root.text + length + 1);
    ret->mode = mode == 's' ? LK_SHARED : LK_EXCLUSIVE;
    ret->left_ms = ret->holders > 0 && left_ms >= 0 ? left_ms : INT64_MAX;
    if (guard->refine != NULL && ret->holders > 0)
        guard->refine(guard, ret);
    return LK_OK;
}

lk_status lk_redis_guard_inspect(void *self, const char *key, lk_lock_info *ret)
{
    char kind[KIND_MAX];
    return ask(self, key, kind, ret);
}

lk_status lk_redis_guard_confirm(void *self, const lk_hold *hold)
{
    lk_redis_guard *guard = self;
    lk_redis_reply reply;
    lk_status status = lk_redis_eval(guard->redis, &guard->confirm, &reply, REDIS_REPLY_INTEGER, 1,
                                     hold->key, hold->token);
    return lk_redis_done(status, &reply);
}

lk_status lk_redis_guard_force_release(void *self, const char *key)
{
    lk_redis_guard *guard = self;
    lk_redis_reply reply;
    lk_status status =
        lk_redis_eval(guard->redis, &guard->force, &reply, REDIS_REPLY_INTEGER, 1, key);
    return lk_redis_done(status, &reply);
}

/* -- the list --------------------------------------------------------------------------------- */

struct listing {
    lk_redis_guard *guard;
    int (*each)(void *arg, const lk_lock_info *info);
    void *arg;
    bool stopped;
};

/* Fence counters and other derived keys have braces in their names. Locks have none. */
static bool may_be_lock(const redisReply *name)
{
    return name->type == REDIS_REPLY_STRING && name->len > 0 && name->len <= LK_KEY_MAX &&
           strlen(name->str) == name->len && strpbrk(name->str, "{} ") == NULL;
}

static lk_status tell_one(struct listing *listing, const char *key)
{
    char kind[KIND_MAX];
    lk_lock_info info = {.left_ms = INT64_MAX};
    snprintf(info.key, sizeof info.key, "%s", key);
    lk_status status = ask(listing->guard, key, kind, &info);
    if (status != LK_OK || info.holders == 0 || strcmp(kind, listing->guard->kind) != 0)
        return status;
    listing->stopped = listing->each(listing->arg, &info) != 0;
    return LK_OK;
}

/* [cursor, [name, ...]] */
static lk_status tell_page(struct listing *listing, const redisReply *page)
{
    if (page->type == REDIS_REPLY_ERROR) {
        lk_redis_reply error = {.root = {.type = REDIS_REPLY_ERROR, .text = page->str}};
        return lk_redis_reply_status(&error);
    }
    if (page->type != REDIS_REPLY_ARRAY || page->elements != 2 ||
        page->element[0]->type != REDIS_REPLY_STRING || page->element[1]->type != REDIS_REPLY_ARRAY)
        return LK_PROTOCOL;
    const redisReply *names = page->element[1];
    lk_status status = LK_OK;
    for (size_t i = 0; i < names->elements && status == LK_OK && !listing->stopped; i++)
        if (may_be_lock(names->element[i]))
            status = tell_one(listing, names->element[i]->str);
    return status;
}

/* prefix* as a pattern of SCAN. */
static void pattern_of(const char *prefix, char ret[2 * LK_KEY_MAX + 2])
{
    size_t n = 0;
    for (; *prefix != '\0'; prefix++) {
        if (strchr("*?[]\\", *prefix) != NULL)
            ret[n++] = '\\';
        ret[n++] = *prefix;
    }
    ret[n++] = '*';
    ret[n] = '\0';
}

static int64_t answer_by_us(const lk_context *context)
{
    return lk_monotonic_us() + context->options->command_timeout_ms * US_PER_MS;
}

static const char *type_of(const lk_redis_guard *guard)
{
    if (strcmp(guard->kind, LK_REDIS_KIND_STRING) == 0)
        return "string";
    return strcmp(guard->kind, LK_REDIS_KIND_SEMAPHORE) == 0 ? "zset" : "hash";
}

static lk_status scan(struct listing *listing, lk_redis_connection *connection, const char *prefix)
{
    const lk_context *context = listing->guard->context;
    char pattern[2 * LK_KEY_MAX + 2], cursor[LK_REDIS_NUMBER_MAX] = "0";
    const char *words[] = {"SCAN",  cursor, "MATCH", pattern,
                           "COUNT", PAGE,   "TYPE",  type_of(listing->guard)};
    lk_status status;
    pattern_of(prefix, pattern);
    do {
        redisReply *page = NULL;
        atomic_fetch_add_explicit(context->commands, 1, memory_order_relaxed);
        status = lk_redis_connection_ask(connection, sizeof words / sizeof words[0], words,
                                         answer_by_us(context), &page);
        if (status == LK_OK)
            status = tell_page(listing, page);
        if (status == LK_OK)
            snprintf(cursor, sizeof cursor, "%s", page->element[0]->str);
        freeReplyObject(page);
    } while (status == LK_OK && !listing->stopped && strcmp(cursor, "0") != 0);
    return status;
}

static lk_status list_node(struct listing *listing, lk_redis *node, const char *prefix)
{
    lk_redis_connection connection;
    lk_redis_connection_init(&connection);
    lk_status status = lk_redis_connect(node, &connection, answer_by_us(listing->guard->context));
    if (status == LK_OK)
        status = scan(listing, &connection, prefix);
    lk_redis_connection_close(&connection);
    return status;
}

lk_status lk_redis_guard_list(void *self, const char *prefix,
                              int (*each)(void *arg, const lk_lock_info *info), void *arg)
{
    lk_redis_guard *guard = self;
    struct listing listing = {.guard = guard, .each = each, .arg = arg};
    lk_redis *node[LK_REDIS_NODES_MAX];
    size_t n = lk_redis_nodes(guard->redis, node, LK_REDIS_NODES_MAX);
    lk_status status = n > 0 ? LK_OK : LK_UNAVAILABLE;
    for (size_t i = 0; i < n && status == LK_OK && !listing.stopped; i++)
        status = list_node(&listing, node[i], prefix);
    lk_redis_nodes_done(guard->redis, node, n);
    return status;
}
