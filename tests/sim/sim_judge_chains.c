/*
 * The chains of the ledger, by a second reader of its own: what is hashed is text, as db/README.md
 * has it. The predecessor's hash, then the columns, each followed by a line feed.
 */
#include "sim_world.h"

#include <nettle/sha2.h>
#include <sqlite3.h>
#include <string.h>

#define COLUMNS                                                                                    \
    "resource, epoch, txn_id, delta, before, after, version_before, fence, guard, instance, kind," \
    " order_id, counterpart, reason, reference, at_us"
enum { COLUMNS_N = 16, HASH = COLUMNS_N, EXPECTED, HEX = 64 };

static void add_line(struct sha256_ctx *sha, const char *text)
{
    sha256_update(sha, strlen(text), (const uint8_t *)text);
    sha256_update(sha, 1, (const uint8_t *)"\n");
}

static void hash_row(sqlite3_stmt *row, const char *before, char ret[HEX + 1])
{
    struct sha256_ctx sha;
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_init(&sha);
    add_line(&sha, before);
    for (int i = 0; i < COLUMNS_N; i++)
        add_line(&sha, (const char *)sqlite3_column_text(row, i));
    sha256_digest(&sha, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++)
        snprintf(ret + 2 * i, 3, "%02x", digest[i]);
}

/* Of rows, the first column tells the chain, the one after the hash what it must follow; NULL: the
 * row before it, or nothing where a chain begins. */
static void walk(sqlite3 *store, const char *sql)
{
    sqlite3_stmt *row = NULL;
    char chain[DB_RESOURCE_MAX + 1] = "", last[HEX + 1] = "", hash[HEX + 1];
    int code;
    if (sqlite3_prepare_v2(store, sql, -1, &row, NULL) != SQLITE_OK)
        sim_broken("the judge cannot read the chains: %s", sqlite3_errmsg(store));
    while (row && (code = sqlite3_step(row)) == SQLITE_ROW) {
        const char *resource = (const char *)sqlite3_column_text(row, 0);
        const char *told = (const char *)sqlite3_column_text(row, EXPECTED);
        if (strcmp(resource, chain) != 0)
            last[0] = '\0';
        snprintf(chain, sizeof chain, "%s", resource);
        hash_row(row, told ? told : last, hash);
        if (strcmp(hash, (const char *)sqlite3_column_text(row, HASH)) != 0)
            sim_broken("a row's hash does not follow the row before it: %s %s", resource,
                       (const char *)sqlite3_column_text(row, 2));
        snprintf(last, sizeof last, "%s", hash);
    }
    if (row && code != SQLITE_DONE)
        sim_broken("the judge cannot read the chains: %s", sqlite3_errmsg(store));
    sqlite3_finalize(row);
}

void sim_judge_chains(sqlite3 *store)
{
    walk(store, "SELECT " COLUMNS ", hash, NULL FROM ledger WHERE resource NOT LIKE 'shop:%'"
                " ORDER BY resource, epoch, version_before, id");
    walk(store, "SELECT " COLUMNS ", hash, (SELECT hash FROM ledger o WHERE o.txn_id = l.txn_id"
                " AND o.resource = l.counterpart) FROM ledger l WHERE resource LIKE 'shop:%'"
                " ORDER BY resource, id");
}
