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
