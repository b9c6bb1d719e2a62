/* The tables of each engine. What they mean stands in README.md, their columns in columns.h. */
#include "schema.h"

/* Not IN (...): inside a CHECK, SQLite makes an index of that list for each row. */
#define FIRST_KIND(name, text) "kind = '" text "'"
#define NEXT_KIND(name, text)  " OR kind = '" text "'"
#define IS_LEDGER_KIND         DB_KIND_MAP(FIRST_KIND, NEXT_KIND)

#define CREATE_REFUSALS                                                                            \
    "CREATE INDEX " SCHEMA_REFUSALS " ON idempotency(at_us, http_status) WHERE http_status >= 400"
const char schema_refusals_sql[] = CREATE_REFUSALS;

#define APPEND_ONLY "the ledger is append-only: book a correction instead"

#define CREATE_KEEPS_ROWS                                                                          \
    "CREATE TRIGGER " SCHEMA_KEEPS_ROWS " BEFORE DELETE ON ledger BEGIN"                           \
    " SELECT RAISE(ABORT, '" APPEND_ONLY "'); END"
const char sqlite_keeps_rows_sql[] = CREATE_KEEPS_ROWS;

/* INSERT OR REPLACE deletes without a trigger. RAISE(ROLLBACK), because ABORT makes each insert
 * keep a journal of its own. The number of a row that was moved is not free: the feed is behind it.
 */
#define CREATE_KEEPS_IDS                                                                           \
    "CREATE TRIGGER ledger_keeps_ids BEFORE INSERT ON ledger"                                      \
    " WHEN NEW.id > 0 AND (EXISTS (SELECT 1 FROM ledger WHERE id = NEW.id)"                        \
    " OR EXISTS (SELECT 1 FROM archives WHERE last_id >= NEW.id)) BEGIN"                           \
    " SELECT RAISE(ROLLBACK, '" APPEND_ONLY "'); END"

/* What the store keeps of rows that were moved to an archive, see db_archive.h. */
#define CREATE_ARCHIVE(text, number, end, given)                                                   \
    "CREATE TABLE archives ("                                                                      \
    " part " number " PRIMARY KEY,"                                                                \
    " before_us " number " NOT NULL,"                                                              \
    " last_transaction " number " NOT NULL,"                                                       \
    " last_id " number " NOT NULL,"                                                                \
    " n " number " NOT NULL,"                                                                      \
    " digest text NOT NULL" given ")" end ";"                                                      \
    "CREATE TABLE carried ("                                                                       \
    " resource " text " PRIMARY KEY,"                                                              \
    " epoch " number " NOT NULL,"                                                                  \
    " version_before " number " NOT NULL,"                                                         \
    " last_id " number " NOT NULL,"                                                                \
    " hash text NOT NULL,"                                                                         \
    " total " number " NOT NULL,"                                                                  \
    " moved " number " NOT NULL,"                                                                  \
    " restocked " number " NOT NULL,"                                                              \
    " n " number " NOT NULL)" end ";"                                                              \
    "CREATE TABLE carried_orders ("                                                                \
    " order_id " text " PRIMARY KEY,"                                                              \
    " delta " number " NOT NULL)" end ";"
#define SQLITE_ARCHIVE CREATE_ARCHIVE("TEXT", "INTEGER", " STRICT, WITHOUT ROWID", "")
#define POSTGRES_ARCHIVE                                                                           \
    CREATE_ARCHIVE("text COLLATE \"C\"", "bigint", "",                                             \
                   ", txid xid8 NOT NULL DEFAULT pg_current_xact_id()")

/* The transaction that has recorded a part may delete the rows of that part. */
#define POSTGRES_KEEPS_ROWS                                                                        \
    "CREATE FUNCTION ledger_moves() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"                  \
    " IF (SELECT txid = pg_current_xact_id() AND"                                                  \
    " (last_transaction, last_id) >= (OLD.txid::text::bigint, OLD.id)"                             \
    " FROM archives ORDER BY part DESC LIMIT 1) THEN RETURN OLD; END IF;"                          \
    " RAISE EXCEPTION '" APPEND_ONLY "'; END $$;"                                                  \
    "CREATE TRIGGER " SCHEMA_KEEPS_ROWS " BEFORE DELETE ON ledger"                                 \
    " FOR EACH ROW EXECUTE FUNCTION ledger_moves();"

const char sqlite_archive_sql[] =
    SQLITE_ARCHIVE "DROP TRIGGER ledger_keeps_ids;" CREATE_KEEPS_IDS ";";
const char postgres_archive_sql[] =
    POSTGRES_ARCHIVE "DROP TRIGGER " SCHEMA_KEEPS_ROWS " ON ledger;" POSTGRES_KEEPS_ROWS;

/*
 * No CHECK and no trigger guards stock or balance: a lost update must be able to happen, or no lock
 * could be shown to prevent it. Only the ledger defends itself: nothing may be changed in it.
 *
 * Why these keys: each insert should touch few pages, because every touched page is written to the
 * log at commit.
 *
 *   - The ledger and the answers are appended in rowid order. Refusals are also found by their
 *     time; an order that is accepted has no entry there.
 *   - Orders are read by id and counted by item. Only live orders are counted, so closed ones leave
 *     that index. Where the item has a limit per user, orders are counted by user as well, each on
 * a page of its own. Where it has none, they are appended to those of the item. The index has all
 *     columns that a count needs, so no order is looked up.
 *   - The ledger's index has the rows of one resource in the order of its chain: for the audit and
 *     for statements. A hot item appends to one place of it.
 *   - Each order has an entry in the index of its user's orders, on a page of its own.
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
    " epoch INTEGER NOT NULL CHECK (epoch >= 1),"
    " chain TEXT NOT NULL" /* hash of its last ledger row */
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE accounts ("
    " id TEXT PRIMARY KEY,"
    " guard TEXT NOT NULL,"
    " initial_balance INTEGER NOT NULL,"
    " balance INTEGER NOT NULL,"
    " fence INTEGER NOT NULL,"
    " version INTEGER NOT NULL,"
    " last_fence INTEGER NOT NULL,"
    " epoch INTEGER NOT NULL CHECK (epoch >= 1),"
    " chain TEXT NOT NULL" /* hash of its last ledger row */
    ") STRICT, WITHOUT ROWID;"

    "CREATE TABLE orders ("
    " id TEXT PRIMARY KEY,"
    " item_id TEXT NOT NULL,"
    " user_id TEXT NOT NULL,"
    " quantity INTEGER NOT NULL CHECK (quantity >= 1),"
    " amount INTEGER NOT NULL,"
    " state INTEGER NOT NULL CHECK (state BETWEEN 0 AND 4)," /* db_order_state */
    " version INTEGER NOT NULL,"
    " last_fence INTEGER NOT NULL DEFAULT 0,"
    " item_epoch INTEGER NOT NULL CHECK (item_epoch >= 1),"
    " created_us INTEGER NOT NULL,"
    " expires_us INTEGER NOT NULL,"
    " counted_user TEXT NOT NULL" /* user_id, or '' where the item has no limit per user */
    ") STRICT, WITHOUT ROWID;"
    "CREATE INDEX orders_live ON orders(item_id, item_epoch, counted_user, quantity, state)"
    " WHERE state <= 1;"
    "CREATE INDEX orders_of_user ON orders(user_id, id);"
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
    " kind TEXT NOT NULL CHECK (" IS_LEDGER_KIND "),"
    " order_id TEXT NOT NULL DEFAULT '',"
    " counterpart TEXT NOT NULL DEFAULT '',"
    " reason TEXT NOT NULL DEFAULT '',"
    " reference TEXT NOT NULL DEFAULT '',"
    " at_us INTEGER NOT NULL,"
    " hash TEXT NOT NULL DEFAULT '',"
    " CONSTRAINT ledger_adds CHECK (after = before + delta)"
    ") STRICT;"
    "CREATE INDEX ledger_chain ON ledger(resource, epoch, version_before, id);" CREATE_KEEPS_ROWS
    ";"
    "CREATE TRIGGER ledger_keeps_values BEFORE UPDATE ON ledger BEGIN"
    " SELECT RAISE(ABORT, '" APPEND_ONLY "'); END;" SQLITE_ARCHIVE CREATE_KEEPS_IDS ";"

    "CREATE TABLE idempotency ("
    " key TEXT PRIMARY KEY,"
    " request TEXT NOT NULL,"
    " http_status INTEGER NOT NULL,"
    " body TEXT NOT NULL,"
    " at_us INTEGER NOT NULL"
    ") STRICT;" CREATE_REFUSALS ";"

    "CREATE TABLE fences ("
    " key TEXT PRIMARY KEY,"
    " fence INTEGER NOT NULL"
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
    " epoch bigint NOT NULL CHECK (epoch >= 1),"
    " chain text NOT NULL"
    ") WITH (fillfactor = 50);"

    "CREATE TABLE accounts ("
    " id text COLLATE \"C\" PRIMARY KEY,"
    " guard text NOT NULL,"
    " initial_balance bigint NOT NULL,"
    " balance bigint NOT NULL,"
    " fence bigint NOT NULL,"
    " version bigint NOT NULL,"
    " last_fence bigint NOT NULL,"
    " epoch bigint NOT NULL CHECK (epoch >= 1),"
    " chain text NOT NULL"
    ") WITH (fillfactor = 50);"

    "CREATE TABLE orders ("
    " id text COLLATE \"C\" PRIMARY KEY,"
    " item_id text COLLATE \"C\" NOT NULL,"
    " user_id text COLLATE \"C\" NOT NULL,"
    " quantity bigint NOT NULL CHECK (quantity >= 1),"
    " amount bigint NOT NULL,"
    " state bigint NOT NULL CHECK (state BETWEEN 0 AND 4)," /* db_order_state */
    " version bigint NOT NULL,"
    " last_fence bigint NOT NULL DEFAULT 0,"
    " item_epoch bigint NOT NULL CHECK (item_epoch >= 1),"
    " created_us bigint NOT NULL,"
    " expires_us bigint NOT NULL,"
    " counted_user text COLLATE \"C\" NOT NULL" /* user_id, or '' where the item has no limit per
                                                   user */
    ");"
    "CREATE INDEX orders_live ON orders(item_id, item_epoch, counted_user) INCLUDE (quantity)"
    " WHERE state <= 1;"
    "CREATE INDEX orders_of_user ON orders(user_id, id);"
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
    " kind text NOT NULL CHECK (" IS_LEDGER_KIND "),"
    " order_id text COLLATE \"C\" NOT NULL DEFAULT '',"
    " counterpart text COLLATE \"C\" NOT NULL DEFAULT '',"
    " reason text NOT NULL DEFAULT '',"
    " reference text NOT NULL DEFAULT '',"
    " at_us bigint NOT NULL,"
    " hash text NOT NULL DEFAULT '',"
    " txid xid8 NOT NULL DEFAULT pg_current_xact_id(),"
    " CONSTRAINT ledger_adds CHECK (after = before + delta)"
    ");"
    "CREATE INDEX ledger_chain ON ledger(resource, epoch, version_before, id);"
    "CREATE INDEX ledger_feed ON ledger(txid, id);"
    "CREATE FUNCTION ledger_refuses() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
    " RAISE EXCEPTION '" APPEND_ONLY "'; END $$;"
    "CREATE TRIGGER ledger_keeps_values BEFORE UPDATE ON ledger"
    " FOR EACH ROW EXECUTE FUNCTION ledger_refuses();" POSTGRES_ARCHIVE POSTGRES_KEEPS_ROWS
    "CREATE TRIGGER ledger_keeps_all BEFORE TRUNCATE ON ledger"
    " EXECUTE FUNCTION ledger_refuses();"

    "CREATE TABLE idempotency ("
    " key text COLLATE \"C\" PRIMARY KEY,"
    " request text NOT NULL,"
    " http_status bigint NOT NULL,"
    " body text NOT NULL,"
    " at_us bigint NOT NULL"
    ");" CREATE_REFUSALS ";"

    "CREATE TABLE fences ("
    " key text COLLATE \"C\" PRIMARY KEY,"
    " fence bigint NOT NULL"
    ");"

    "CREATE TABLE tasks ("
    " name text COLLATE \"C\" PRIMARY KEY,"
    " instance text NOT NULL,"
    " at_us bigint NOT NULL,"
    " done bigint NOT NULL"
    ");";
