/*
 * The bearer tokens that a service knows (RFC 6750), and who has them.
 *
 * The file has lines "ROLE NAME SHA256HEX"; empty lines and lines that begin with # are skipped.
 * ROLE is buyer or operator. NAME is 1 to 64 of [A-Za-z0-9_-]: a buyer's user id, and the owner of
 * the idempotency keys that come with the token. A name may have several tokens, of one role.
 *
 * Only hashes are kept. One SHA-256 is enough, without salt and without a slow hash: a token is 256
 * random bits (tokens_make()), too many to try. A password that a person chooses would need more,
 * and a hash does not show what was hashed. So the operator must make tokens by `seckilld token`.
 *
 * Comparison: the hash of what was sent leads to the entries with the same first 32 bits. Each of
 * these is compared in constant time (memeql_sec() of libnettle). The time of the search
 * reveals bits of hashes only, and a hash does not lead back to its token.
 *
 * Threading: tokens_load() and tokens_find() may be called by any threads at any time.
 */
#ifndef TOKENS_H
#define TOKENS_H

#include "roles.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    TOKENS_NAME_MAX = 64,
    TOKENS_MAX = 1000000, /* lines with a token in a file */
    TOKENS_TEXT_MAX = 64, /* of a made token, in hex */
    TOKENS_MESSAGE_MAX = 512
};

/* Who sent a request. */
struct caller {
    enum role role;
    char name[TOKENS_NAME_MAX + 1]; /* "": nobody said who */
};

struct tokens;

/* What is known of the tokens of a service. */
struct tokens_source {
    const char *file;            /* "": none */
    const char *operator_sha256; /* of one more token, of the operator "operator"; "": none */
    bool open;                   /* a request without a token is an operator's without a name */
};

/* Loads the tokens for the first time. source's texts are borrowed until tokens_close(). NULL with
 * a message: the file cannot be read, other users may read it, or a line is wrong. */
struct tokens *tokens_open(const struct tokens_source *source, char *message, size_t size);
void tokens_close(struct tokens *tokens); /* NULL: nothing */

/* Reads the file again. The new tokens count from the next tokens_find() on. -1 with a message: the
 * tokens stay as they were. */
int tokens_load(struct tokens *tokens, char *message, size_t size);

/* How many tokens there are; NULL: none. */
size_t tokens_count(struct tokens *tokens);

enum tokens_found {
    TOKENS_OK,      /* *ret is filled */
    TOKENS_NONE,    /* no token was sent, and one is needed */
    TOKENS_UNKNOWN, /* the token that was sent belongs to nobody */
};

/* The caller of a request with this token; token NULL: none was sent. An open service without any
 * tokens does not look at what is sent; tokens NULL is such a service. */
enum tokens_found tokens_find(struct tokens *tokens, const char *token, size_t length,
                              struct caller *ret);

/* The command `seckilld token ROLE NAME`: makes a token, prints it to stderr and its line for the
 * file to stdout. Returns the exit status. */
int tokens_make(int argc, char **argv);

#endif
