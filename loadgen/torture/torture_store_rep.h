/* The inside of a store, for torture_store.c and torture_store_archive.c. */
#ifndef TORTURE_STORE_REP_H
#define TORTURE_STORE_REP_H

#include "torture_store.h"

#include <libpq-fe.h>
#include <sqlite3.h>

struct torture_store {
    sqlite3 *sqlite;  /* NULL: it is in PostgreSQL */
    PGconn *postgres; /* NULL: it is in SQLite */
};

#endif
