#include "linear_memo.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 1024, FIRST_TABLE = 256 };

void linear_memo_init(struct linear_memo *memo, size_t bytes_max)
{
    *memo = (struct linear_memo){.bytes_max = bytes_max};
}

void linear_memo_free(struct linear_memo *memo)
{
    free(memo->words);
    free(memo->table);
    *memo = (struct linear_memo){0};
}

static bool make_room(struct linear_memo *memo, size_t needed)
{
    size_t room = memo->room == 0 ? FIRST_ROOM : memo->room;
    while (room - memo->n_words < needed)
        room *= 2;
    if (room == memo->room)
        return true;
    if (room * sizeof *memo->words > memo->bytes_max)
        return false;
    uint64_t *grown = realloc(memo->words, room * sizeof *grown);
    if (grown == NULL)
        return false;
    memo->words = grown;
    memo->room = room;
    return true;
}

/* FNV-1a over words, and a last mix for the low bits. */
static uint64_t hash_of(const uint64_t *words, size_t n)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ words[i]) * 0x100000001b3u ^ hash >> 29;
    return hash ^ hash >> 32;
}

static bool grow_table(struct linear_memo *memo)
{
    if (memo->n_pairs * 2 < memo->table_size)
        return true;
    size_t size = memo->table_size == 0 ? FIRST_TABLE : memo->table_size * 2;
    size_t *table = calloc(size, sizeof *table);
    if (table == NULL)
        return false;
    for (size_t i = 0; i < memo->table_size; i++) {
        if (memo->table[i] == 0)
            continue;
        const uint64_t *pair = &memo->words[memo->table[i] - 1];
        size_t place = hash_of(pair, (size_t)pair[0]) & (size - 1);
        while (table[place] != 0)
            place = (place + 1) & (size - 1);
        table[place] = memo->table[i];
    }
    free(memo->table);
    memo->table = table;
    memo->table_size = size;
    return true;
}

/* Writes the words of a pair. Equal pairs have equal words:
 * - length
 * - state
 * - which MAYBEs are used
 * - index of the first word of ranks that are not all taken
 * - the words from there to the last that is not 0 */
static size_t write_pair(uint64_t *out, const struct linear_queue *queue,
                         const struct linear_state *state)
{
    size_t n = 1;
    for (int i = 0; i < LINEAR_WORDS; i++)
        out[n++] = (uint64_t)state->words[i];
    for (uint32_t i = 0; i < queue->n_groups; i += 2) {
        uint64_t other = i + 1 < queue->n_groups ? queue->groups[i + 1].used : 0;
        out[n++] = queue->groups[i].used | other << 32;
    }
    uint32_t first = linear_queue_first_word(queue);
    out[n++] = first;
    size_t used = n;
    for (uint32_t i = first; i <= queue->highest / 64; i++) {
        out[n++] = queue->taken[i];
        if (queue->taken[i] != 0)
            used = n;
    }
    out[0] = used;
    return used;
}

enum linear_seen linear_memo_add(struct linear_memo *memo, const struct linear_queue *queue,
                                 const struct linear_state *state)
{
    size_t most = 2 + LINEAR_WORDS + queue->n_groups / 2 + 1 + queue->highest / 64 + 1;
    if (!make_room(memo, most) || !grow_table(memo))
        return LINEAR_FULL;
    uint64_t *pair = &memo->words[memo->n_words];
    size_t n = write_pair(pair, queue, state);
    size_t place = hash_of(pair, n) & (memo->table_size - 1);
    while (memo->table[place] != 0) {
        const uint64_t *other = &memo->words[memo->table[place] - 1];
        if (other[0] == n && memcmp(other, pair, n * sizeof *pair) == 0)
            return LINEAR_KNOWN;
        place = (place + 1) & (memo->table_size - 1);
    }
    memo->table[place] = memo->n_words + 1;
    memo->n_words += n;
    memo->n_pairs++;
    return LINEAR_NEW;
}
