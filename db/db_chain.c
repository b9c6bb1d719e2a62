/*
 * The chain of the ledger: each row's hash covers the hash of the row before it.
 *
 * What is hashed is text that a shell can make: the predecessor's hash, then each column of
 * NEW_LEDGER_ROW but the hash itself, in their order, each followed by a line feed. Numbers are
 * decimal. db_tx_append_ledger() refuses text with a line feed, so no two rows have one text.
 */
#include "columns.h"

#include <nettle/sha2.h>
#include <string.h>

enum { DIGITS_MAX = 20 }; /* "-9223372036854775808" */

/* Called for each column of each row, so without a format, and with few calls of the hash. */
struct text {
    struct sha256_ctx sha;
    size_t length; /* of what waits in bytes */
    char bytes[1024];
};

static void hash_bytes(struct text *text)
{
    sha256_update(&text->sha, text->length, (const uint8_t *)text->bytes);
    text->length = 0;
}

static void add_bytes(struct text *text, const char *bytes, size_t length)
{
    while (length > 0) {
        const size_t room = sizeof text->bytes - text->length;
        const size_t n = length < room ? length : room;
        memcpy(text->bytes + text->length, bytes, n);
        text->length += n;
        bytes += n;
        length -= n;
        if (text->length == sizeof text->bytes)
            hash_bytes(text);
    }
}

static void add_line(struct text *text, const char *line, size_t length)
{
    add_bytes(text, line, length);
    add_bytes(text, "\n", 1);
}

static void add_value(struct text *text, const struct value *value)
{
    char digits[DIGITS_MAX], *at = digits + DIGITS_MAX;
    if (value->text) {
        add_line(text, value->text, strlen(value->text));
        return;
    }
    uint64_t rest = value->number < 0 ? -(uint64_t)value->number : (uint64_t)value->number;
    do
        *--at = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (value->number < 0)
        *--at = '-';
    add_line(text, at, (size_t)(digits + DIGITS_MAX - at));
}

static void put_hex(const uint8_t *digest, char ret[DB_HASH_LENGTH + 1])
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < SHA256_DIGEST_SIZE; i++) {
        ret[2 * i] = digits[digest[i] >> 4];
        ret[2 * i + 1] = digits[digest[i] & 15];
    }
    ret[DB_HASH_LENGTH] = '\0';
}

void db_ledger_hash(const db_ledger_row *row, const char *predecessor, char ret[DB_HASH_LENGTH + 1])
{
    struct text text;
    struct value values[ROW_COLUMNS_MAX];
    uint8_t digest[SHA256_DIGEST_SIZE];
    size_t n = row_values(&new_ledger_type, row, values);
    sha256_init(&text.sha);
    text.length = 0;
    add_line(&text, predecessor, strlen(predecessor));
    for (size_t i = 0; i + 1 < n; i++) /* the hash comes last */
        add_value(&text, &values[i]);
    hash_bytes(&text);
    sha256_digest(&text.sha, sizeof digest, digest);
    put_hex(digest, ret);
}

void db_ledger_seal(db_ledger_row *row, char chain[DB_HASH_LENGTH + 1])
{
    db_ledger_hash(row, chain, row->hash);
    memcpy(chain, row->hash, sizeof row->hash);
}

void db_ledger_shop_leg(const db_ledger_row *row, db_ledger_row *ret)
{
    *ret = *row;
    memcpy(ret->resource, row->counterpart, sizeof ret->resource);
    memcpy(ret->counterpart, row->resource, sizeof ret->counterpart);
    ret->delta = ret->after = -row->delta;
    ret->id = ret->before = ret->version_before = ret->epoch = ret->fence = 0;
    ret->guard[0] = '\0';
    db_ledger_hash(ret, row->hash, ret->hash);
}
