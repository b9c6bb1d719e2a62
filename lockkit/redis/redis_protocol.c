#include "redis_protocol.h"
#include "digits.h"

#include <stdlib.h>
#include <string.h>

/* -- commands --------------------------------------------------------------------------------- */

enum { FRAME_MAX = 1 + LK_DIGITS_MAX + 2 /* "$123\r\n" */ };

static char *put_ending(char *to)
{
    *to++ = '\r';
    *to++ = '\n';
    return to;
}

static char *put_frame(char *to, char kind, size_t number)
{
    *to++ = kind;
    return put_ending(lk_put_digits(to, number, 10));
}

bool lk_redis_encode(lk_redis_encoded *encoded, int n, const char *const *words)
{
    size_t bound = FRAME_MAX;
    for (int i = 0; i < n; i++)
        bound += FRAME_MAX + strlen(words[i]) + 2;
    encoded->bytes = bound <= sizeof encoded->own ? encoded->own : malloc(bound);
    if (encoded->bytes == NULL)
        return false;
    char *to = put_frame(encoded->bytes, '*', (size_t)n);
    for (int i = 0; i < n; i++) {
        size_t length = strlen(words[i]);
        to = put_frame(to, '$', length);
        memcpy(to, words[i], length);
        to = put_ending(to + length);
    }
    encoded->length = (size_t)(to - encoded->bytes);
    return true;
}

void lk_redis_encoded_free(lk_redis_encoded *encoded)
{
    if (encoded->bytes != encoded->own)
        free(encoded->bytes);
}

/* -- replies ---------------------------------------------------------------------------------- */

/* The parser of hiredis calls these. NULL makes it stop with an error. */

static lk_redis_item *place(const redisReadTask *task)
{
    lk_redis_reply *reply = task->privdata;
    if (task->parent == NULL)
        return &reply->root;
    if (task->parent->parent != NULL || task->idx >= LK_REDIS_ITEMS_MAX)
        return NULL;
    return &reply->item[task->idx];
}

static void *create_string(const redisReadTask *task, char *text, size_t length)
{
    lk_redis_reply *reply = task->privdata;
    lk_redis_item *item = place(task);
    size_t space = sizeof reply->text - reply->used;
    if (item == NULL || space == 0)
        return NULL;
    if (length >= space) {
        if (task->type == REDIS_REPLY_STRING)
            return NULL; /* a value that is cut is wrong; a message that is cut is only shorter */
        length = space - 1;
    }
    char *to = reply->text + reply->used;
    memcpy(to, text, length);
    to[length] = '\0';
    reply->used += length + 1;
    *item = (lk_redis_item){.type = task->type, .text = to, .length = length};
    return item;
}

static void *create_array(const redisReadTask *task, int elements)
{
    lk_redis_item *item = place(task);
    if (item == NULL || task->parent != NULL || elements < 0 || elements > LK_REDIS_ITEMS_MAX)
        return NULL;
    *item = (lk_redis_item){.type = REDIS_REPLY_ARRAY, .integer = elements};
    return item;
}

static void *create_integer(const redisReadTask *task, long long value)
{
    lk_redis_item *item = place(task);
    if (item != NULL)
        *item = (lk_redis_item){.type = REDIS_REPLY_INTEGER, .integer = value};
    return item;
}

static void *create_nil(const redisReadTask *task)
{
    lk_redis_item *item = place(task);
    if (item != NULL)
        *item = (lk_redis_item){.type = REDIS_REPLY_NIL};
    return item;
}

static void free_object(void *object)
{
    (void)object; /* the reply belongs to the caller */
}

redisReplyObjectFunctions lk_redis_reply_functions = {
    .createString = create_string,
    .createArray = create_array,
    .createInteger = create_integer,
    .createNil = create_nil,
    .freeObject = free_object,
};

static bool begins_with_one_of(const char *text, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strncmp(text, words[i], strlen(words[i])) == 0)
            return true;
    return false;
}

bool lk_redis_reply_refuses(const lk_redis_reply *reply)
{
    static const char *const refusals[] = {"ERR max number of clients", "DENIED "};
    return reply->root.type == REDIS_REPLY_ERROR &&
           begins_with_one_of(reply->root.text, refusals, sizeof refusals / sizeof refusals[0]);
}

lk_status lk_redis_reply_status(const lk_redis_reply *reply)
{
    static const char *const not_now[] = {
        "LOADING",     "READONLY", "NOREPLICAS", "OOM",    "MISCONF", "MASTERDOWN", "BUSY ",
        "CLUSTERDOWN", "TRYAGAIN", "NOAUTH",     "NOPERM", "MOVED",   "ASK "};
    if (reply->root.type != REDIS_REPLY_ERROR)
        return LK_OK;
    if (lk_redis_reply_refuses(reply) ||
        begins_with_one_of(reply->root.text, not_now, sizeof not_now / sizeof not_now[0]))
        return LK_UNAVAILABLE;
    /* Redis 6 puts text before the error of a script's command. */
    return strstr(reply->root.text, "WRONGTYPE") != NULL ? LK_BUSY : LK_PROTOCOL;
}
