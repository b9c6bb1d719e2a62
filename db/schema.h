/* The tables, as SQL of each engine; what they mean stands in README.md. */
#ifndef DB_SCHEMA_H
#define DB_SCHEMA_H

#include "columns.h"

enum { SCHEMA_APPLICATION_ID = 0x5ec1713d }; /* PRAGMA application_id: this file is ours */

#define SCHEMA_VERSION_TEXT         SCHEMA_TEXT_OF(SCHEMA_VERSION)
#define SCHEMA_TEXT_OF(number)      SCHEMA_TEXT_OF_THIS(number)
#define SCHEMA_TEXT_OF_THIS(number) #number

extern const char sqlite_schema_sql[], postgres_schema_sql[];

/* What version 4 added, for a store of version 3. */
extern const char sqlite_archive_sql[], postgres_archive_sql[];
/* SQLite: while a part of the ledger is moved (db_archive.h), its transaction drops this trigger
 * and makes it again. So nobody else ever finds a ledger whose rows can be deleted. */
#define SCHEMA_KEEPS_ROWS "ledger_keeps_rows"
extern const char sqlite_keeps_rows_sql[];

/* The index of refusals. It changes no row, so a store of an earlier program, which lacks it, is of
 * the same version. Only a migration makes it there: it may take minutes, needs the owner of the
 * table, and keeps out who writes. */
#define SCHEMA_REFUSALS "idempotency_refusals"
extern const char schema_refusals_sql[];

#endif
