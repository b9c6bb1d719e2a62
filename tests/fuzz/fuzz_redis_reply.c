/* Replies of Redis: read in one piece and in pieces into the fixed struct, and by hiredis into its
 * tree. All three must agree. The first byte says how long the pieces are. */
#include "fuzz.h"
#include "redis_protocol.h"

enum { REPLIES_MAX = 64 };

struct outcome {
    int n; /* replies */
    bool broken;
    lk_redis_reply reply[REPLIES_MAX];
};

static void read_all(const uint8_t *bytes, size_t size, size_t step, struct outcome *ret)
{
    redisReader *reader = redisReaderCreateWithFunctions(&lk_redis_reply_functions);
    ret->n = 0;
    ret->broken = false;
    ret->reply[0].used = 0;
    for (size_t at = 0; at < size && !ret->broken && ret->n < REPLIES_MAX; at += step) {
        const size_t length = size - at < step ? size - at : step;
        char *piece = fuzz_copy(bytes + at, length);
        FUZZ_CHECK(redisReaderFeed(reader, piece, length) == REDIS_OK);
        free(piece);
        for (void *done = reader; done != NULL && !ret->broken && ret->n < REPLIES_MAX;) {
            reader->privdata = &ret->reply[ret->n];
            ret->broken = redisReaderGetReply(reader, &done) != REDIS_OK;
            if (!ret->broken && done != NULL && ++ret->n < REPLIES_MAX)
                ret->reply[ret->n].used = 0;
        }
    }
    redisReaderFree(reader);
}

static void check_item(const lk_redis_reply *reply, const lk_redis_item *item)
{
    if (item->type == REDIS_REPLY_INTEGER || item->type == REDIS_REPLY_NIL ||
        item->type == REDIS_REPLY_ARRAY)
        return;
    FUZZ_CHECK(item->text >= reply->text &&
               item->text + item->length < reply->text + sizeof reply->text);
    FUZZ_CHECK(item->text[item->length] == '\0');
}

static void check_same(const lk_redis_reply *a, const lk_redis_item *x, const lk_redis_reply *b,
                       const lk_redis_item *y)
{
    FUZZ_CHECK(x->type == y->type);
    check_item(a, x);
    check_item(b, y);
    if (x->type == REDIS_REPLY_INTEGER || x->type == REDIS_REPLY_ARRAY)
        FUZZ_CHECK(x->integer == y->integer);
    else if (x->type != REDIS_REPLY_NIL)
        FUZZ_CHECK(x->length == y->length && memcmp(x->text, y->text, x->length) == 0);
}

static void check_tree(const lk_redis_item *item, const redisReply *tree)
{
    FUZZ_CHECK(item->type == tree->type);
    if (item->type == REDIS_REPLY_INTEGER)
        FUZZ_CHECK(item->integer == tree->integer);
    else if (item->type == REDIS_REPLY_ARRAY)
        FUZZ_CHECK((size_t)item->integer == tree->elements);
    else if (item->type == REDIS_REPLY_STRING)
        FUZZ_CHECK(item->length == (size_t)tree->len &&
                   memcmp(item->text, tree->str, item->length) == 0);
    else if (item->type != REDIS_REPLY_NIL) /* a message may be cut */
        FUZZ_CHECK(item->length <= (size_t)tree->len &&
                   memcmp(item->text, tree->str, item->length) == 0);
}

/* hiredis reads at least what we read. */
static void check_hiredis(const uint8_t *bytes, size_t size, const struct outcome *ours)
{
    redisReader *reader = redisReaderCreate();
    redisReply *tree;
    FUZZ_CHECK(redisReaderFeed(reader, (const char *)bytes, size) == REDIS_OK);
    for (int i = 0; i < ours->n; i++) {
        void *done = NULL;
        FUZZ_CHECK(redisReaderGetReply(reader, &done) == REDIS_OK && done != NULL);
        tree = done;
        check_tree(&ours->reply[i].root, tree);
        for (int64_t j = 0; tree->type == REDIS_REPLY_ARRAY && j < ours->reply[i].root.integer; j++)
            check_tree(&ours->reply[i].item[j], tree->element[j]);
        freeReplyObject(tree);
    }
    redisReaderFree(reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    static struct outcome whole, pieces;
    const size_t step = (size_t)fuzz_byte(&input, &size) + 1;
    if (size == 0)
        return 0;
    read_all(input, size, size, &whole);
    read_all(input, size, step, &pieces);
    FUZZ_CHECK(whole.n == pieces.n && (whole.broken == pieces.broken || whole.n == REPLIES_MAX));
    for (int i = 0; i < whole.n; i++) {
        const lk_redis_reply *a = &whole.reply[i], *b = &pieces.reply[i];
        check_same(a, &a->root, b, &b->root);
        for (int64_t j = 0; a->root.type == REDIS_REPLY_ARRAY && j < a->root.integer; j++)
            check_same(a, &a->item[j], b, &b->item[j]);
        if (lk_redis_reply_refuses(a))
            FUZZ_CHECK(lk_redis_reply_status(a) == LK_UNAVAILABLE);
        FUZZ_CHECK((lk_redis_reply_status(a) == LK_OK) == (a->root.type != REDIS_REPLY_ERROR));
    }
    check_hiredis(input, size, &whole);
    return 0;
}
