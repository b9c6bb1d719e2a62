/* The pairs of operations done and state reached that a search has entered. Whole pairs are
 * compared: the hash only finds them. */
#ifndef LINEAR_MEMO_H
#define LINEAR_MEMO_H

#include "linear_queue.h"

struct linear_memo {
    size_t bytes_max;
    uint64_t *words; /* the pairs, each with its length first */
    size_t n_words, room;
    size_t *table; /* indices into words, plus 1; 0: free */
    size_t n_pairs, table_size;
};

enum linear_seen {
    LINEAR_NEW,
    LINEAR_KNOWN,
    LINEAR_FULL /* no room within bytes_max, or no memory */
};

void linear_memo_init(struct linear_memo *memo, size_t bytes_max);
void linear_memo_free(struct linear_memo *memo);
enum linear_seen linear_memo_add(struct linear_memo *memo, const struct linear_queue *queue,
                                 const struct linear_state *state);

#endif
