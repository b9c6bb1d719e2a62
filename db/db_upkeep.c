#include "upkeep.h"
#include "engine.h"

db_status db_backup(const char *url, const char *file, db_error *error)
{
    const char *address;
    const db_engine *engine = db_engine_of(url, &address, error);
    if (engine == NULL)
        return DB_INVALID;
    if (file[0] == '\0')
        return db_fail(error, DB_INVALID, "give the name of a new file for the copy");
    return engine->backup(address, file, error);
}

db_status db_read_bite(db_reader *reader, const char *after, int64_t before_us, db_bite *ret)
{
    return reader->engine->read_bite(reader, after, before_us, ret);
}

db_status db_tx_prune_bite(db_tx *tx, const char *after, const char *last, int64_t before_us)
{
    if (!db_text_ok(after, DB_KEY_MAX) || !db_name_ok(last, DB_KEY_MAX))
        return DB_INVALID;
    return tx->engine->tx_prune_bite(tx, after, last, before_us);
}

db_status db_read_refusals(db_reader *reader, int64_t keep, db_refusals *ret)
{
    return reader->engine->read_refusals(reader, keep, ret);
}

db_status db_tx_prune_refusals(db_tx *tx, int64_t before_us, int64_t *ret_n)
{
    return tx->engine->tx_prune_refusals(tx, before_us, ret_n);
}

db_status db_migrate(const char *url, db_versions *ret, db_error *error)
{
    const char *address;
    const db_engine *engine = db_engine_of(url, &address, error);
    *ret = (db_versions){.to = SCHEMA_VERSION};
    return engine ? engine->migrate(address, ret, error) : DB_INVALID;
}
