#include "zk_node.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SUFFIX_LENGTH = 17, /* '#' and 16 digits */
    SEQUENCE_DIGITS = 10,
    CREATES_MAX = 3 /* an empty container may be removed between its creation and ours */
};

/* Without the suffix of an earlier node. A name that ends like one is cut, which costs nothing but
 * a part of how it is shown. */
static size_t length_without_suffix(const char *token)
{
    size_t length = strlen(token);
    const char *suffix = length > SUFFIX_LENGTH ? token + length - SUFFIX_LENGTH : token;
    bool suffixed = suffix[0] == '#' && strspn(suffix + 1, "0123456789abcdef") == SUFFIX_LENGTH - 1;
    return suffixed ? length - SUFFIX_LENGTH : length;
}

void lk_zk_make_token_unique(lk_zk *zk, lk_hold *hold)
{
    uint64_t suffix = atomic_fetch_add_explicit(&zk->n_tokens, 1, memory_order_relaxed) + 1;
    size_t length = length_without_suffix(hold->token);
    snprintf(hold->token + length, sizeof hold->token - length, "#%016" PRIx64, suffix);
}

/* -- names ------------------------------------------------------------------------------------ */

/* Returns where it ends. Escaped it is three times as long at most, which LK_ZK_PATH_MAX allows. */
static char *append_escaped(char *to, const char *text)
{
    for (; *text; text++) {
        bool special = *text == '/' || *text == '%';
        size_t length = special ? 3 : 1;
        memcpy(to, !special ? text : *text == '/' ? "%2F" : "%25", length);
        to += length;
    }
    *to = '\0';
    return to;
}

static void name_of_key(char *to, const char *key)
{
    if (strcmp(key, ".") == 0 || strcmp(key, "..") == 0)
        strcpy(to, key[1] ? "%2E%2E" : "%2E"); /* those names mean something else in a path */
    else
        append_escaped(to, key);
}

void lk_zk_key_path(char path[LK_ZK_PATH_MAX], const char *root, const char *key)
{
    name_of_key(path + snprintf(path, LK_ZK_PATH_MAX, "%s/", root), key);
}

bool lk_zk_child_path(char path[LK_ZK_PATH_MAX], const char *parent, const char *name)
{
    size_t length = strlen(parent), more = strlen(name);
    if (length + 1 + more >= LK_ZK_PATH_MAX)
        return false;
    memcpy(path, parent, length);
    path[length] = '/';
    memcpy(path + length + 1, name, more + 1);
    return true;
}

static int hex_digit(char c)
{
    return isdigit((unsigned char)c) ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

bool lk_zk_key_of(const char *name, char key[LK_KEY_MAX + 1])
{
    char again[LK_ZK_PATH_MAX];
    size_t n = 0;
    for (const char *at = name; *at; at++) {
        char c = *at;
        if (c == '%') {
            int high = hex_digit(at[1]), low = high < 0 ? -1 : hex_digit(at[2]);
            if (low < 0)
                return false;
            c = (char)(high * 16 + low);
            at += 2;
        }
        if (n == LK_KEY_MAX)
            return false;
        key[n++] = c;
    }
    key[n] = '\0';
    name_of_key(again, key); /* another spelling is another node */
    return n > 0 && strcmp(again, name) == 0;
}

void lk_zk_name_prefix(char prefix[LK_ZK_PATH_MAX], const lk_hold *hold)
{
    memcpy(prefix, "_c_", 3);
    strcpy(append_escaped(prefix + 3, hold->token), "-");
}

static bool is_separator(char c)
{
    return c == '-' || c == '_';
}

bool lk_zk_parse_sequence(const char *name, int32_t *ret)
{
    size_t length = strlen(name);
    if (length < SEQUENCE_DIGITS)
        return false;
    const char *digits = name + length - SEQUENCE_DIGITS;
    bool negative = digits[0] == '-';
    if (digits[0] >= '1' && digits[0] <= '9' && length >= SEQUENCE_DIGITS + 2)
        negative = digits[-1] == '-' && is_separator(digits[-2]);
    int64_t sequence = 0;
    for (const char *c = digits + (digits[0] == '-'); *c; c++) {
        if (!isdigit((unsigned char)*c))
            return false;
        sequence = sequence * 10 + (*c - '0');
    }
    if (negative)
        sequence = -sequence;
    if (sequence < INT32_MIN || sequence > INT32_MAX)
        return false;
    *ret = (int32_t)sequence;
    return true;
}

/* -- creating --------------------------------------------------------------------------------- */

static lk_status make_parents(const lk_zk_turn *turn, const char *path, lk_zk_answer *answer)
{
    char parent[LK_ZK_PATH_MAX];
    const char *last = strrchr(path, '/');
    lk_status status = LK_OK;
    for (const char *slash = strchr(path + 1, '/'); slash && status == LK_OK;
         slash = strchr(slash + 1, '/')) {
        size_t length = (size_t)(slash - path);
        memcpy(parent, path, length);
        parent[length] = '\0';
        /* A contender's parent is a container; the folder of all locks of a guard stays. */
        bool container = slash == last && strchr(strchr(path + 1, '/') + 1, '/') != last;
        status = lk_zk_create(turn, parent, "", container ? ZOO_CONTAINER : ZOO_PERSISTENT, answer);
        if (status == LK_OK && answer->code != ZOK && answer->code != ZNODEEXISTS)
            status = lk_zk_note(turn->zk, LK_PROTOCOL, "its folder does not exist: create it");
    }
    return status;
}

lk_status lk_zk_create_in(const lk_zk_turn *turn, const char *path, const char *data, int mode,
                          lk_zk_answer *ret)
{
    for (int i = 0;; i++) {
        lk_status status = lk_zk_create(turn, path, data, mode, ret);
        if (status != LK_OK || ret->code != ZNONODE)
            return status;
        if (i == CREATES_MAX)
            return LK_PROTOCOL;
        status = make_parents(turn, path, ret);
        if (status != LK_OK) /* parents may be half made, but certainly no lock is */
            return status == LK_LOST ? LK_LOST : LK_UNAVAILABLE;
    }
}

/* -- waiting for a node ----------------------------------------------------------------------- */

bool lk_zk_wait_for(lk_zk *zk, lk_attempt *attempt, const char *path)
{
    lk_zk_waiter *waiter = calloc(1, sizeof *waiter);
    if (!waiter)
        return false;
    lk_zk_enter(zk, waiter, path);
    attempt->waiter = waiter;
    return true;
}

lk_status lk_zk_watch(const lk_zk_turn *turn, lk_attempt *attempt)
{
    lk_zk_waiter *waiter = attempt->waiter;
    lk_zk_answer answer;
    lk_status status = lk_zk_get(turn, waiter->path, true, &answer);
    waiter->watching = status == LK_OK && answer.code == ZOK;
    return status;
}

void lk_zk_await(lk_zk *zk, lk_attempt *attempt, int64_t until_us)
{
    const lk_env *env = zk->context->env;
    lk_zk_waiter *waiter = attempt->waiter;
    if (lk_zk_sleep(zk, waiter, until_us - env->now_us(env->ctx))) {
        waiter->watching = false;
        env->point(env->ctx, LK_POINT_WOKEN, attempt->hold->key);
    }
}

void lk_zk_forget_wait(lk_zk *zk, lk_attempt *attempt)
{
    lk_zk_waiter *waiter = attempt->waiter;
    if (!waiter)
        return;
    lk_zk_leave(zk, waiter);
    free(waiter);
    attempt->waiter = NULL;
}

/* -- looking from outside --------------------------------------------------------------------- */

lk_status lk_zk_list(lk_zk *zk, const char *root,
                     lk_status (*inspect)(void *self, const char *key, lk_lock_info *ret),
                     const char *prefix, int (*each)(void *arg, const lk_lock_info *info),
                     void *arg)
{
    lk_zk_turn turn;
    lk_zk_answer keys;
    lk_status status = lk_zk_begin(zk, &turn);
    if (status == LK_OK)
        status = lk_zk_children(&turn, root, &keys);
    if (status != LK_OK)
        return lk_zk_outside_status(status);
    for (size_t i = 0; i < keys.n && status == LK_OK; i++) {
        lk_lock_info info = {.left_ms = INT64_MAX};
        if (!lk_zk_key_of(keys.names[i], info.key) ||
            strncmp(info.key, prefix, strlen(prefix)) != 0)
            continue;
        status = inspect(zk, info.key, &info); /* a turn of its own each */
        if (status == LK_OK && info.holders > 0 && each(arg, &info) != 0)
            break;
    }
    free(keys.names);
    return status;
}

/* -- members of all guards -------------------------------------------------------------------- */

void lk_zk_provider_close(void *self)
{
    lk_zk_close(self);
}

bool lk_zk_provider_alive(void *self, const lk_hold *hold)
{
    const lk_zk *zk = self;
    uint32_t epoch = lk_zk_epoch_of(hold);
    return epoch != 0 && epoch == atomic_load(&zk->epoch);
}

lk_status lk_zk_provider_ping(void *self)
{
    lk_zk_turn turn;
    lk_zk_answer answer;
    lk_status status = lk_zk_begin(self, &turn);
    if (status == LK_OK)
        status = lk_zk_get(&turn, "/", false, &answer);
    return lk_zk_outside_status(status);
}
