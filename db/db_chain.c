/*
 * The chain of the ledger: each row's hash covers the hash of the row before it.
 *
 * What is hashed is text that a shell can make: the predecessor's hash, then each column of
 * NEW_LEDGER_ROW but the hash itself, in their order, each followed by a line feed. Numbers are
 * decimal. db_tx_append_ledger() refuses text with a line feed, so no two rows have one text.
 */
#include "columns.h"

#include <assert.h>
#include <nettle/sha2.h>
#include <string.h>

enum {
    DIGITS_MAX = 20, /* "-9223372036854775808" */
    TEXT_MAX = DB_HASH_LENGTH + sizeof(db_ledger_row) + ROW_COLUMNS_MAX * (DIGITS_MAX + 1)
};

static char *add_text(char *end, const char *text)
{
    end = stpcpy(end, text);
    *end++ = '\n';
    return end;
}

/* Without a format: each row has many numbers. */
static char *add_number(char *end, int64_t number)
{
    char digits[DIGITS_MAX + 1] = "", *at = digits + DIGITS_MAX;
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
    do
        *--at = (char)('0' + rest % 10);
    while ((rest /= 10) > 0);
    if (number < 0)
        *--at = '-';
    return add_text(end, at);
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
    assert(strlen(predecessor) <= DB_HASH_LENGTH);
    char text[TEXT_MAX], *end = add_text(text, predecessor);
    struct value values[ROW_COLUMNS_MAX];
    struct sha256_ctx sha;
    uint8_t digest[SHA256_DIGEST_SIZE];
    size_t n = row_values(&new_ledger_type, row, values);
    for (size_t i = 0; i + 1 < n; i++) /* the hash comes last */
        end = values[i].text ? add_text(end, values[i].text) : add_number(end, values[i].number);
    sha256_init(&sha);
    sha256_update(&sha, (size_t)(end - text), (const uint8_t *)text);
    sha256_digest(&sha, sizeof digest, digest);
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
