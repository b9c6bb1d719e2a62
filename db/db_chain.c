/*
 * The chain of the ledger: each row's hash covers the hash of the row before it.
 *
 * What is hashed is text that a shell can make: the predecessor's hash, then each column of
 * NEW_LEDGER_ROW but the hash itself, in their order, each followed by a line feed. Numbers are
 * decimal. db_tx_append_ledger() refuses text with a line feed, so no two rows have one text.
 */
#include "columns.h"

#include <inttypes.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>

static void add_text(struct sha256_ctx *sha, const char *text)
{
    sha256_update(sha, strlen(text), (const uint8_t *)text);
    sha256_update(sha, 1, (const uint8_t *)"\n");
}

static void add_value(struct sha256_ctx *sha, const struct value *value)
{
    char number[24];
    if (value->text) {
        add_text(sha, value->text);
        return;
    }
    snprintf(number, sizeof number, "%" PRId64, value->number);
    add_text(sha, number);
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
    struct sha256_ctx sha;
    struct value values[ROW_COLUMNS_MAX];
    uint8_t digest[SHA256_DIGEST_SIZE];
    size_t n = row_values(&new_ledger_type, row, values);
    sha256_init(&sha);
    add_text(&sha, predecessor);
    for (size_t i = 0; i + 1 < n; i++) /* the hash comes last */
        add_value(&sha, &values[i]);
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
