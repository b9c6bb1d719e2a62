/* EVAL, EVALSHA and SCRIPT LOAD: the scripts as they are, in the Lua that Redis has. */
#include "sim_redis.h"
#include "sim_world.h"

#include <assert.h>
#include <lua5.1/lauxlib.h>
#include <lua5.1/lua.h>
#include <lua5.1/lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { SCRIPTS_MAX = 64, DIGEST_MAX = 41, ARGS_MAX = 16 };

static struct {
    lua_State *lua;
    struct sim_redis *redis; /* whose script runs */
    struct {
        char digest[DIGEST_MAX];
        int function;
        bool known[SIM_REDIS_NODES_MAX];
    } scripts[SCRIPTS_MAX];
    size_t n;
} at;

/* -- answers become values, as in Redis ------------------------------------------------------- */

static const char *push_answer(lua_State *lua, const char *from);

static void push_field(lua_State *lua, const char *name, const char *text, size_t n)
{
    lua_newtable(lua);
    lua_pushlstring(lua, text, n);
    lua_setfield(lua, -2, name);
}

static const char *push_array(lua_State *lua, long n, const char *from)
{
    lua_newtable(lua);
    for (int i = 1; i <= n; i++) {
        from = push_answer(lua, from);
        lua_rawseti(lua, -2, i);
    }
    return from;
}

/* Returns what follows it. */
static const char *push_answer(lua_State *lua, const char *from)
{
    const char kind = *from, *text = from + 1, *end = strstr(text, "\r\n");
    const long n = strtol(text, NULL, 10);
    assert(end);
    switch (kind) {
    case '+':
    case '-':
        push_field(lua, kind == '+' ? "ok" : "err", text, (size_t)(end - text));
        return end + 2;
    case ':':
        lua_pushnumber(lua, (lua_Number)strtoll(text, NULL, 10));
        return end + 2;
    case '*':
        return push_array(lua, n, end + 2);
    default:
        if (n < 0) {
            lua_pushboolean(lua, 0);
            return end + 2;
        }
        lua_pushlstring(lua, end + 2, (size_t)n);
        return end + 2 + n + 2;
    }
}

/* -- what a script may call ------------------------------------------------------------------- */

static int call(lua_State *lua, bool raise)
{
    char numbers[ARGS_MAX][32], *words[ARGS_MAX];
    int n = lua_gettop(lua);
    assert(n > 0 && n <= ARGS_MAX);
    for (int i = 0; i < n; i++) {
        if (lua_type(lua, i + 1) == LUA_TNUMBER) {
            snprintf(numbers[i], sizeof numbers[i], "%.17g", lua_tonumber(lua, i + 1));
            words[i] = numbers[i];
        } else {
            words[i] = (char *)(uintptr_t)lua_tostring(lua, i + 1);
            assert(words[i]); /* Redis: only strings and numbers */
        }
    }
    struct sim_bytes answer = {0};
    sim_redis_run(at.redis, n, words, &answer);
    sim_bytes_add(&answer, "", 1);
    bool failed = answer.at[0] == '-';
    push_answer(lua, answer.at);
    free(answer.at);
    return failed && raise ? lua_error(lua) : 1;
}

static int do_call(lua_State *lua)
{
    return call(lua, true);
}

static int do_pcall(lua_State *lua)
{
    return call(lua, false);
}

static int error_reply(lua_State *lua)
{
    size_t n;
    const char *text = lua_tolstring(lua, 1, &n);
    push_field(lua, "err", text, n);
    return 1;
}

static void open_lua(void)
{
    static const luaL_Reg functions[] = {
        {"call", do_call}, {"pcall", do_pcall}, {"error_reply", error_reply}, {NULL, NULL}};
    at.lua = luaL_newstate();
    if (!at.lua)
        abort();
    luaL_openlibs(at.lua);
    luaL_register(at.lua, "redis", functions);
    lua_pop(at.lua, 1);
}

/* -- a value becomes an answer ---------------------------------------------------------------- */

static bool has_field(lua_State *lua, const char *name)
{
    lua_getfield(lua, -1, name);
    if (lua_isstring(lua, -1))
        return true;
    lua_pop(lua, 1);
    return false;
}

/* Of the table on the stack: it ends where the first nil is. */
static size_t length_to_nil(lua_State *lua)
{
    for (int n = 0;; n++) {
        lua_rawgeti(lua, -1, n + 1);
        bool is_nil = lua_isnil(lua, -1);
        lua_pop(lua, 1);
        if (is_nil)
            return (size_t)n;
    }
}

/* Takes it off the stack. */
static void answer_value(lua_State *lua, struct sim_bytes *ret)
{
    if (lua_type(lua, -1) == LUA_TNUMBER) {
        sim_resp_integer(ret, (long long)lua_tonumber(lua, -1));
    } else if (lua_type(lua, -1) == LUA_TSTRING) {
        sim_resp_text(ret, lua_tostring(lua, -1));
    } else if (lua_type(lua, -1) == LUA_TBOOLEAN && lua_toboolean(lua, -1)) {
        sim_resp_integer(ret, 1);
    } else if (!lua_istable(lua, -1)) {
        sim_resp_text(ret, NULL);
    } else if (has_field(lua, "err")) {
        sim_resp_error(ret, lua_tostring(lua, -1));
        lua_pop(lua, 1);
    } else if (has_field(lua, "ok")) {
        sim_resp_status(ret, lua_tostring(lua, -1));
        lua_pop(lua, 1);
    } else {
        size_t n = length_to_nil(lua);
        sim_resp_array(ret, n);
        for (size_t i = 1; i <= n; i++) {
            lua_rawgeti(lua, -1, (int)i);
            answer_value(lua, ret);
        }
    }
    lua_pop(lua, 1);
}

/* -- the commands ----------------------------------------------------------------------------- */

static void digest_of(const char *body, char ret[DIGEST_MAX])
{
    uint64_t hash[2] = {0xcbf29ce484222325u, 0x84222325cbf29ce4u};
    for (; *body; body++)
        for (int i = 0; i < 2; i++)
            hash[i] = (hash[i] ^ (unsigned char)*body) * 0x100000001b3u;
    snprintf(ret, DIGEST_MAX, "%016llx%016llx%08x", (unsigned long long)hash[0],
             (unsigned long long)hash[1], (unsigned)hash[0]);
}

static size_t find(const char *digest)
{
    size_t i = 0;
    while (i < at.n && strcasecmp(at.scripts[i].digest, digest) != 0)
        i++;
    return i;
}

static size_t load(const struct sim_redis *redis, const char *body)
{
    char digest[DIGEST_MAX];
    digest_of(body, digest);
    size_t i = find(digest);
    if (i == at.n) {
        if (i == SCRIPTS_MAX || luaL_loadstring(at.lua, body) != 0)
            abort();
        memcpy(at.scripts[i].digest, digest, sizeof digest);
        at.scripts[i].function = luaL_ref(at.lua, LUA_REGISTRYINDEX);
        at.n++;
    }
    at.scripts[i].known[redis->number] = true;
    return i;
}

static void set_global_list(const char *name, int n, char **words)
{
    lua_createtable(at.lua, n, 0);
    for (int i = 0; i < n; i++) {
        lua_pushstring(at.lua, words[i]);
        lua_rawseti(at.lua, -2, i + 1);
    }
    lua_setglobal(at.lua, name);
}

static void run(struct sim_redis *redis, size_t script, int n, char **words, struct sim_bytes *ret)
{
    int n_keys = atoi(words[0]);
    assert(n_keys >= 0 && n_keys < n);
    set_global_list("KEYS", n_keys, words + 1);
    set_global_list("ARGV", n - 1 - n_keys, words + 1 + n_keys);
    at.redis = redis;
    lua_rawgeti(at.lua, LUA_REGISTRYINDEX, at.scripts[script].function);
    if (lua_pcall(at.lua, 0, 1, 0) != 0 && !lua_istable(at.lua, -1)) {
        fprintf(stderr, "a script fails: %s\n", lua_tostring(at.lua, -1));
        abort();
    }
    answer_value(at.lua, ret);
}

void sim_redis_script(struct sim_redis *redis, int n, char **words, struct sim_bytes *ret)
{
    if (!at.lua)
        open_lua();
    if (strcasecmp(words[0], "SCRIPT") == 0) {
        assert(n == 3 && strcasecmp(words[1], "LOAD") == 0);
        sim_resp_text(ret, at.scripts[load(redis, words[2])].digest);
        return;
    }
    assert(n >= 3);
    size_t i = strcasecmp(words[0], "EVAL") == 0 ? load(redis, words[1]) : find(words[1]);
    if (i < at.n && at.scripts[i].known[redis->number]) {
        run(redis, i, n - 2, words + 2, ret);
        return;
    }
    sim_count(SIM_REDIS_NOSCRIPT);
    sim_resp_error(ret, "NOSCRIPT No matching script. Please use EVAL.");
}

void sim_redis_forget_scripts(const struct sim_redis *redis)
{
    for (size_t i = 0; i < at.n; i++)
        at.scripts[i].known[redis->number] = false;
}
