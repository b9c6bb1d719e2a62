/* The tables of each engine. What they mean stands in README.md, their columns in columns.h. */
#include "schema.h"

/*
 * No CHECK and no trigger guards stock or balance: a lost update must be able to happen, or no lock
 * could be shown to prevent it. Only the ledger defends itself: nothing may be changed in it.
 *
 * Why these keys: each insert should touch few pages, because every touched page is written to the
 * log at commit.
 *
 *   - The ledger and the answers are appended in rowid order.
 *   - Orders are read by id and counted by item. Only live orders are counted, so closed ones leave
 *     that index. Where the item has a limit per user, orders are counted by user as well, each on
 * a page of its own. Where it has none, they are appended to those of the item. The index has all
 *     columns that a count needs, so no order is looked up.
 *   - The ledger has no index. Only the audit reads it, and sorts it once, in the time that a walk
 *     along an index takes. An index would cost each order of another item one more page.
 */
const char sqlite_schema_sql[] =
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

/*
 * The same tables in PostgreSQL's words. Text sorts by bytes (COLLATE "C") whatever the database's
 * language is, as in SQLite.
 *
 * Ledger ids come from a sequence, which does not wait for commits: they rise in commit order among
 * the rows of one resource, since each of those was appended under the lock of the resource's row.
 *
 * items and accounts leave half of each page free: a hot row's new versions then stay on its page
 * and touch no index.
 */
const char postgres_schema_sql[] =
    "CREATE TABLE seckill_schema (version bigint NOT NULL);"

    "CREATE TABLE items ("
    " id text COLLATE \"C\" PRIMARY KEY,"
    " guard text NOT NULL,"
    " initial_stock bigint NOT NULL,"
    " stock bigint NOT NULL,"
    " price bigint NOT NULL,"
    " per_user_limit bigint NOT NULL,"
    " reserve_s bigint NOT NULL,"
    " fence bigint NOT NULL,"
    " version bigint NOT NULL,"
    " last_fence bigint NOT NULL,"
    " epoch bigint NOT NULL"
    ") WITH (fillfactor = 50);"

    "CREATE TABLE accounts ("
    " id text COLLATE \"C\" PRIMARY KEY,"
    " guard text NOT NULL,"
    " initial_balance bigint NOT NULL,"
    " balance bigint NOT NULL,"
    " fence bigint NOT NULL,"
    " version bigint NOT NULL,"
    " last_fence bigint NOT NULL,"
    " epoch bigint NOT NULL"
    ") WITH (fillfactor = 50);"

    "CREATE TABLE orders ("
    " id text COLLATE \"C\" PRIMARY KEY,"
    " item_id text COLLATE \"C\" NOT NULL,"
    " user_id text COLLATE \"C\" NOT NULL,"
    " quantity bigint NOT NULL,"
    " amount bigint NOT NULL,"
    " state bigint NOT NULL," /* 0 reserved, 1 paid, 2 cancelled, 3 closed */
    " version bigint NOT NULL,"
    " last_fence bigint NOT NULL DEFAULT 0,"
    " item_epoch bigint NOT NULL,"
    " created_us bigint NOT NULL,"
    " expires_us bigint NOT NULL,"
    " counted_user text COLLATE \"C\" NOT NULL" /* user_id, or '' where the item has no limit per
                                                   user */
    ");"
    "CREATE INDEX orders_live ON orders(item_id, item_epoch, counted_user) INCLUDE (quantity)"
    " WHERE state <= 1;"
    "CREATE INDEX orders_unpaid ON orders(expires_us) WHERE state = 0;"

    "CREATE TABLE ledger ("
    " id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
    " resource text COLLATE \"C\" NOT NULL,"
    " epoch bigint NOT NULL,"
    " version_before bigint NOT NULL,"
    " txn_id text COLLATE \"C\" NOT NULL,"
    " delta bigint NOT NULL,"
    " before bigint NOT NULL,"
    " after bigint NOT NULL,"
    " fence bigint NOT NULL,"
    " guard text NOT NULL,"
    " instance text NOT NULL,"
    " at_us bigint NOT NULL"
    ");"
    "CREATE INDEX ledger_chain ON ledger(resource, epoch, version_before, id);"
    "CREATE FUNCTION ledger_refuses() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    " RAISE EXCEPTION 'the ledger is append-only: book a correction instead'; END $$;"
    "CREATE TRIGGER ledger_keeps_values BEFORE UPDATE ON ledger"
    " FOR EACH ROW EXECUTE FUNCTION ledger_refuses();"
    "CREATE TRIGGER ledger_keeps_rows BEFORE DELETE ON ledger"
    " FOR EACH ROW EXECUTE FUNCTION ledger_refuses();"
    "CREATE TRIGGER ledger_keeps_all BEFORE TRUNCATE ON ledger"
    " EXECUTE FUNCTION ledger_refuses();"

    "CREATE TABLE idempotency ("
    " key text COLLATE \"C\" PRIMARY KEY,"
    " request text NOT NULL,"
    " http_status bigint NOT NULL,"
    " body text NOT NULL,"
    " at_us bigint NOT NULL"
    ");"

    "CREATE TABLE locks ("
    " key text COLLATE \"C\" PRIMARY KEY,"
    " owner text NOT NULL,"
    " fence bigint NOT NULL,"
    " expires_us bigint NOT NULL"
    ");"

    "CREATE TABLE tasks ("
    " name text COLLATE \"C\" PRIMARY KEY,"
    " instance text NOT NULL,"
    " at_us bigint NOT NULL,"
    " done bigint NOT NULL"
    ");";
