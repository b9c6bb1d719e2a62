/* Looking after a store. These functions open it by its URL themselves. Threading: any thread. */
#ifndef DB_UPKEEP_H
#define DB_UPKEEP_H

#include "db.h"

/* Copies a SQLite store, as it is at one moment, to a new file with mode 0600. A service may sell
 * meanwhile. The copy gets its name once it is whole and flushed. Until then it is
 * FILE.partial-XXXXXX, which stays if the process is killed.
 * Returns DB_OK; DB_INVALID (the file exists; no store of this service; a shared file; PostgreSQL:
 * the message names pg_dump); or what db_open() returns when a file fails. */
db_status db_backup(const char *url, const char *file, db_error *error);

#endif
