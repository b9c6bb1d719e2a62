#include "tokens_private.h"

#include <endian.h>
#include <nettle/memops.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tokens {
    struct tokens_source source;
    pthread_mutex_t mutex; /* for known, which is replaced and never changed */
    struct token_list known;
};

struct tokens *tokens_open(const struct tokens_source *source, char *message, size_t size)
{
    struct tokens *tokens = calloc(1, sizeof *tokens);
    if (tokens == NULL) {
        snprintf(message, size, "tokens: out of memory");
        return NULL;
    }
    tokens->source = *source;
    pthread_mutex_init(&tokens->mutex, NULL);
    if (tokens_load(tokens, message, size) == 0)
        return tokens;
    tokens_close(tokens);
    return NULL;
}

void tokens_close(struct tokens *tokens)
{
    if (tokens == NULL)
        return;
    pthread_mutex_destroy(&tokens->mutex);
    free(tokens->known.list);
    free(tokens);
}

int tokens_load(struct tokens *tokens, char *message, size_t size)
{
    struct token_list fresh;
    if (!tokens_read(&tokens->source, &fresh, message, size)) {
        free(fresh.list);
        return -1;
    }
    pthread_mutex_lock(&tokens->mutex);
    const struct token_list before = tokens->known;
    tokens->known = fresh;
    pthread_mutex_unlock(&tokens->mutex);
    free(before.list); /* tokens_find() copies, and keeps nothing */
    return 0;
}

size_t tokens_count(struct tokens *tokens)
{
    if (tokens == NULL)
        return 0;
    pthread_mutex_lock(&tokens->mutex);
    const size_t n = tokens->known.n;
    pthread_mutex_unlock(&tokens->mutex);
    return n;
}

static uint32_t begin_of(const uint8_t *hash)
{
    uint32_t begin;
    memcpy(&begin, hash, sizeof begin);
    return be32toh(begin);
}

/* The first token whose hash begins with this, or a later one. */
static size_t lower_bound(const struct token_list *known, uint32_t begin)
{
    size_t low = 0, high = known->n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (begin_of(known->list[middle].hash) < begin)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool search(const struct token_list *known, const uint8_t hash[SHA256_DIGEST_SIZE],
                   struct caller *ret)
{
    const uint32_t begin = begin_of(hash);
    for (size_t i = lower_bound(known, begin);
         i < known->n && begin_of(known->list[i].hash) == begin; i++)
        if (memeql_sec(known->list[i].hash, hash, SHA256_DIGEST_SIZE)) {
            *ret = known->list[i].caller;
            return true;
        }
    return false;
}

enum tokens_found tokens_find(struct tokens *tokens, const char *token, size_t length,
                              struct caller *ret)
{
    uint8_t hash[SHA256_DIGEST_SIZE];
    struct sha256_ctx context;
    const bool open = tokens == NULL || tokens->source.open;
    if (token == NULL || (open && tokens_count(tokens) == 0)) {
        *ret = (struct caller){.role = open ? ROLE_OPERATOR : ROLE_NOBODY};
        return open ? TOKENS_OK : TOKENS_NONE;
    }
    sha256_init(&context);
    sha256_update(&context, length, (const uint8_t *)token);
    sha256_digest(&context, sizeof hash, hash);
    pthread_mutex_lock(&tokens->mutex);
    const bool known = search(&tokens->known, hash, ret);
    pthread_mutex_unlock(&tokens->mutex);
    return known ? TOKENS_OK : TOKENS_UNKNOWN;
}
