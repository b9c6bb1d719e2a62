/* The tables, as SQL of each engine; what they mean stands in README.md. */
#ifndef DB_SCHEMA_H
#define DB_SCHEMA_H

#include "columns.h"

enum { SCHEMA_APPLICATION_ID = 0x5ec1713d }; /* PRAGMA application_id: this file is ours */

#define SCHEMA_VERSION_TEXT         SCHEMA_TEXT_OF(SCHEMA_VERSION)
#define SCHEMA_TEXT_OF(number)      SCHEMA_TEXT_OF_THIS(number)
#define SCHEMA_TEXT_OF_THIS(number) #number

extern const char sqlite_schema_sql[], postgres_schema_sql[];
/* Makes the indexes that a store of an earlier program of this version lacks. */
extern const char sqlite_indexes_sql[], postgres_indexes_sql[];

#endif
