#include "inflight.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum { HEADS = 1 << 14 }; /* a few times the operations that usually run at once */

struct inflight {
    pthread_mutex_t mutex;
    uint64_t seed; /* keys come from strangers: they cannot aim at one chain */
    struct op *heads[HEADS];
};

struct inflight *inflight_open(void)
{
    struct inflight *table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    pthread_mutex_init(&table->mutex, NULL);
    if (getrandom(&table->seed, sizeof table->seed, 0) != (ssize_t)sizeof table->seed) {
        inflight_close(table);
        return NULL;
    }
    return table;
}

void inflight_close(struct inflight *table)
{
    if (!table)
        return;
    pthread_mutex_destroy(&table->mutex);
    free(table);
}

/* FNV-1a from a secret start, with a final mix: http://www.isthe.com/chongo/tech/comp/fnv/ */
static struct op **head_of(struct inflight *table, const char *key)
{
    uint64_t hash = table->seed;
    for (; *key; key++)
        hash = (hash ^ (unsigned char)*key) * UINT64_C(0x100000001b3);
    hash ^= hash >> 32;
    return &table->heads[hash % HEADS];
}

static struct op *find(struct op *head, const char *key)
{
    while (head && strcmp(head->key, key) != 0)
        head = head->same_hash;
    return head;
}

bool inflight_add(struct inflight *table, struct op *op)
{
    struct op **head = head_of(table, op->key);
    pthread_mutex_lock(&table->mutex);
    bool added = !find(*head, op->key);
    if (added) {
        op->same_hash = *head;
        *head = op;
    }
    pthread_mutex_unlock(&table->mutex);
    return added;
}

void inflight_remove(struct inflight *table, struct op *op)
{
    struct op **at = head_of(table, op->key);
    pthread_mutex_lock(&table->mutex);
    while (*at && *at != op)
        at = &(*at)->same_hash;
    assert(*at == op);
    *at = op->same_hash;
    pthread_mutex_unlock(&table->mutex);
}

bool inflight_has(struct inflight *table, const char *key)
{
    struct op **head = head_of(table, key);
    pthread_mutex_lock(&table->mutex);
    bool found = find(*head, key) != NULL;
    pthread_mutex_unlock(&table->mutex);
    return found;
}
