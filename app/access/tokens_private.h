/* What the files tokens*.c share. */
#ifndef TOKENS_PRIVATE_H
#define TOKENS_PRIVATE_H

#include "tokens.h"

#include <nettle/sha2.h>
#include <stdint.h>

struct token {
    uint8_t hash[SHA256_DIGEST_SIZE];
    struct caller caller;
};

struct token_list {
    struct token *list; /* ascending by hash */
    size_t n, room;
};

/* -- tokens_read.c -- */

/* Adds the tokens of the source. False with a message; the list is to be freed in both cases. */
bool tokens_read(const struct tokens_source *source, struct token_list *ret, char *message,
                 size_t size);
/* "buyer" or "operator". False: neither. */
bool tokens_role(const char *word, enum role *ret);
/* NULL, or what is wrong with a caller's name. */
const char *tokens_name_wrong(const char *name);

#endif
