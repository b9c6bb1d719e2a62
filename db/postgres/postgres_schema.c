#include "postgres.h"

/*
 * The tables of schema.c in PostgreSQL's words, for the reasons given there. Text sorts by bytes
 * (COLLATE "C") whatever the database's language is, as in SQLite.
 *
 * Ledger ids come from a sequence, which does not wait for commits: they rise in commit order among
 * the rows of one resource, since each of those was appended under the lock of the resource's row.
 *
 * items and accounts leave half of each page free: a hot row's new versions then stay on its page
 * and touch no index.
 */
const char pg_schema_sql[] =
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
