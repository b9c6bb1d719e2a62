/* SQL on the database alone, whichever it is. */
#ifndef TORTURE_STORE_H
#define TORTURE_STORE_H

#include <stdbool.h>
#include <stddef.h>

struct torture_store;

/* url: "sqlite:FILE" or "postgres://...". Returns NULL after a message. */
struct torture_store *torture_store_open(const char *url, char *message, size_t size);
void torture_store_close(struct torture_store *store);
bool torture_store_is_postgres(const struct torture_store *store);

/* Calls each() with the columns of each row as text; NULL: none is wanted. Returns how many rows,
 * or -1 with a message. */
long torture_store_ask(struct torture_store *store, const char *sql,
                       void (*each)(void *ctx, const char *const *columns), void *ctx,
                       char *message, size_t size);

/* Rows of an archive file beside those of the store: from now on this connection finds
 * - "ledger": the rows of both, as the archive has their columns
 * - "moved": those of the archive alone, with their part; "parts": its parts.
 * 0, or -1 with a message. */
int torture_store_add_archive(struct torture_store *store, const char *file, char *message,
                              size_t size);

#endif
