/*
 * Judges a store by SQL alone: no code of the service reads it. An SQLite file is copied with its
 * log, and the copy is opened, so that the service finds its own file as the last process left it.
 * No process may have the file open.
 */
#ifndef TEST_BOOKS_H
#define TEST_BOOKS_H

#include <stdbool.h>
#include <stdint.h>

struct books {
    const char *url;    /* "sqlite:FILE" or "postgres://..." */
    const char *folder; /* for the copy */
};

/* The first value that the statement yields. On an error: prints it, and returns INT64_MIN. */
int64_t books_number(const struct books *books, const char *sql);
/* True if values, ledger, orders and answers agree. Otherwise prints the rules that are broken.
 * Keys of clients begin with the name of the operation: "order", "payment", "cancellation",
 * "transfer". All accepted operations have a key, and no account was put twice. */
bool books_agree(const struct books *books);
/* True if this answer is stored for this key. body: as it was sent, with its line end. */
bool books_have_answer(const struct books *books, const char *key, const char *body);

#endif
