/* The tables, as SQL of each engine; what they mean stands in README.md. */
#ifndef DB_SCHEMA_H
#define DB_SCHEMA_H

#include "columns.h"

enum { SCHEMA_APPLICATION_ID = 0x5ec1713d }; /* PRAGMA application_id: this file is ours */

#define SCHEMA_VERSION_TEXT         SCHEMA_TEXT_OF(SCHEMA_VERSION)
#define SCHEMA_TEXT_OF(number)      SCHEMA_TEXT_OF_THIS(number)
#define SCHEMA_TEXT_OF_THIS(number) #number

extern const char sqlite_schema_sql[], postgres_schema_sql[];

/* The index of refusals. It changes no row, so a store of an earlier program, which lacks it, is of
 * the same version. Only a migration makes it there: it may take minutes, needs the owner of the
 * table, and keeps out who writes. */
#define SCHEMA_REFUSALS "idempotency_refusals"
extern const char schema_refusals_sql[];

#endif
