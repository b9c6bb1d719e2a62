#include "schema.h"

/*
 * No CHECK and no trigger guards stock or balance: a lost update must be able to happen, or no lock
 * could be shown to prevent it. The ledger alone defends itself: nothing may be changed in it.
 *
 * Why these keys: each insert should touch few pages, because every touched page is written to the
 * log at commit. The ledger and the answers are appended in rowid order. Orders are read by id and
 * counted by item, the latter only while they are live, so closed ones leave that index. Where the
 * item has a limit per user they are counted by user, too, each on a page of its own; where it has
 * none, they are appended to those of the item. The index has all that is asked of them, the state
 * for its own condition, so that no order is looked up to be counted.
 * The ledger has no index: only the audit reads it, and that sorts it once, in the time that a walk
 * along an index takes; an index would cost each order of another item one more page.
 */
const char schema_sql[] =
    "CREATE TABLE items ("
    " id TEXT PRIMARY KEY,"
    " guard TEXT NOT NULL,"
    " initial_stock INTEGER NOT NULL,"
    " stock INTEGER NOT NULL,"
    " price INTEGER NOT NULL,"
    " per_user_limit INTEGER NOT NULL,"
    " reserve_s INTEGER NOT NULL,"
    " fence INTEGER NOT NULL,"
    " version INTEGER NOT NULL,"
    " last_fence INTEGER NOT NULL,"
    " epoch INTEGER NOT NULL"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE accounts ("
    " id TEXT PRIMARY KEY,"
    " guard TEXT NOT NULL,"
    " initial_balance INTEGER NOT NULL,"
    " balance INTEGER NOT NULL,"
    " fence INTEGER NOT NULL,"
    " version INTEGER NOT NULL,"
    " last_fence INTEGER NOT NULL,"
    " epoch INTEGER NOT NULL"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE orders ("
    " id TEXT PRIMARY KEY,"
    " item_id TEXT NOT NULL,"
    " user_id TEXT NOT NULL,"
    " quantity INTEGER NOT NULL,"
    " amount INTEGER NOT NULL,"
    " state INTEGER NOT NULL," /* 0 reserved, 1 paid, 2 cancelled, 3 closed */
    " version INTEGER NOT NULL,"
    " last_fence INTEGER NOT NULL DEFAULT 0,"
    " item_epoch INTEGER NOT NULL,"
    " created_us INTEGER NOT NULL,"
    " expires_us INTEGER NOT NULL,"
    " counted_user TEXT NOT NULL" /* user_id, or '' where the item has no limit per user */
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX orders_live ON orders(item_id, item_epoch, counted_user, quantity, state)"
    " WHERE state <= 1;"
    "CREATE INDEX orders_unpaid ON orders(expires_us) WHERE state = 0;"

    "CREATE TABLE ledger ("
    " id INTEGER PRIMARY KEY,"
    " resource TEXT NOT NULL,"
    " epoch INTEGER NOT NULL,"
    " version_before INTEGER NOT NULL,"
    " txn_id TEXT NOT NULL,"
    " delta INTEGER NOT NULL,"
    " before INTEGER NOT NULL,"
    " after INTEGER NOT NULL,"
    " fence INTEGER NOT NULL,"
    " guard TEXT NOT NULL,"
    " instance TEXT NOT NULL,"
    " at_us INTEGER NOT NULL"
    ") STRICT;"
    "CREATE TRIGGER ledger_keeps_rows BEFORE DELETE ON ledger BEGIN"
    " SELECT RAISE(ABORT, 'the ledger is append-only: book a correction instead'); END;"
    "CREATE TRIGGER ledger_keeps_values BEFORE UPDATE ON ledger BEGIN"
    " SELECT RAISE(ABORT, 'the ledger is append-only: book a correction instead'); END;"

    "CREATE TABLE idempotency ("
    " key TEXT PRIMARY KEY,"
    " request TEXT NOT NULL,"
    " http_status INTEGER NOT NULL,"
    " body TEXT NOT NULL,"
    " at_us INTEGER NOT NULL"
    ") STRICT;"

    "CREATE TABLE locks ("
    " key TEXT PRIMARY KEY,"
    " owner TEXT NOT NULL,"
    " fence INTEGER NOT NULL,"
    " expires_us INTEGER NOT NULL"
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE tasks ("
    " name TEXT PRIMARY KEY,"
    " instance TEXT NOT NULL,"
    " at_us INTEGER NOT NULL,"
    " done INTEGER NOT NULL"
    ") STRICT, WITHOUT ROWID;";
