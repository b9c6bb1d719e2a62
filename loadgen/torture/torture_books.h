/*
 * The clients' own books: what they asked and what they were told, as they wrote it down while the
 * round ran (history.h). One entry per idempotency key. Reads are left out.
 */
#ifndef TORTURE_BOOKS_H
#define TORTURE_BOOKS_H

#include "hash_table.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct torture_entry {
    char *key, *path;
    int sent;       /* attempts */
    int status;     /* of the decided answer; 0: none */
    json_t *answer; /* its body */
    int odd_status; /* a status that no client may be given; 0: none */
    int differing;  /* decided answers that differ from the first */
    bool seen;      /* for the judge */
    UT_hash_handle hh;
};

struct torture_books {
    struct torture_entry *entries;
    size_t decided, undecided, attempts;
};

/* Returns 0, or -1 with a message. A cut last line is skipped. Free it either way. */
int torture_books_read(const char *path, struct torture_books *ret, char *message, size_t size);
void torture_books_free(struct torture_books *books);
/* NULL: nobody asked. */
struct torture_entry *torture_books_find(const struct torture_books *books, const char *key);
/* Is this answer final, so that it must be stored? */
bool torture_is_decided(int status, const char *problem_type);

#endif
