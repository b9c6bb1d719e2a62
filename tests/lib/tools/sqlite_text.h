/* The text of a statement of the SQLite engine, by its name in sqlite_sql.h; NULL: there is none.
 */
#ifndef TEST_SQLITE_TEXT_H
#define TEST_SQLITE_TEXT_H

const char *sqlite_text(const char *name);

#endif
