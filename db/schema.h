/* The tables, as SQL of the SQLite engine; what they mean stands in README.md. */
#ifndef DB_SCHEMA_H
#define DB_SCHEMA_H

enum {
    SCHEMA_VERSION = 2,                /* PRAGMA user_version */
    SCHEMA_APPLICATION_ID = 0x5ec1713d /* PRAGMA application_id: this file is ours */
};

extern const char schema_sql[];

#endif
