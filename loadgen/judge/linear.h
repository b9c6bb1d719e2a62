/*
 * Linearizability of one object's history: is there an order of its operations, each at one
 * instant between its invocation and its answer, in which one client alone would have got the same
 * answers? (Herlihy, Wing: Linearizability, ACM TOPLAS 12(3), 1990)
 *
 * The search is that of Wing and Gong (Testing and verifying concurrent objects, JPDC 17, 1993).
 * It takes an operation that no outstanding one must precede, applies it and goes on. Where
 * nothing fits it goes back. Lowe (Testing for linearizability, CCPE 29(4), 2017) remembers each
 * pair of operations done and state reached, so that no pair is entered twice. Objects are judged
 * one by one, which is enough (P-compositionality: Horn, Kroening, Faster linearizability
 * checking, FORTE 2015). Both are as in Porcupine (https://github.com/anishathalye/porcupine).
 *
 * Three additions shorten the search. Each skips only orders that another order represents:
 * - an operation that changes nothing is done as soon as the state allows it
 * - a model may know that only one change fits a state (a version that an answer names)
 * - of like operations that may have happened, the one invoked first goes first
 *
 * Pure functions: no clock, no input, no output. Any thread.
 */
#ifndef LINEAR_H
#define LINEAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LINEAR_WORDS = 2 };

/* A state. Two states are equal when all their words are. */
struct linear_state {
    int64_t words[LINEAR_WORDS];
};

enum linear_kind {
    LINEAR_CHANGE, /* happened */
    LINEAR_LOOK,   /* happened, and changed nothing */
    LINEAR_MAYBE   /* a change that perhaps happened, at any time after its invocation */
};

struct linear_op {
    enum linear_kind kind;
    int64_t invoked_us, answered_us; /* answered: of a CHANGE or LOOK */
    uint64_t likeness;               /* two MAYBEs with one likeness do the same in every state */
};

#define LINEAR_NONE SIZE_MAX

/* The object: its first state, and the effect of an operation on a state. op is an index. */
struct linear_model {
    const void *object;
    struct linear_state first;
    /* False: the operation does not fit this state. A LOOK leaves *ret alone. */
    bool (*step)(const void *object, const struct linear_state *state, size_t op,
                 struct linear_state *ret);
    /* The only CHANGE that can come next in this state. LINEAR_NONE: not known. */
    size_t (*only)(const void *object, const struct linear_state *state);
};

enum { LINEAR_STEPS_PER_CHANGE = 10 };

/* The bound of a search. */
struct linear_bound {
    uint64_t steps; /* calls of the model's step(); a change counts LINEAR_STEPS_PER_CHANGE */
    size_t bytes;   /* of the pairs remembered */
};

enum linear_verdict {
    LINEAR_HOLDS,
    LINEAR_BROKEN,
    LINEAR_UNDECIDED /* the bound was reached, or there was no memory */
};

/* ret_steps (may be NULL): the steps it took. */
enum linear_verdict linear_check(const struct linear_op *ops, size_t n,
                                 const struct linear_model *model, const struct linear_bound *bound,
                                 uint64_t *ret_steps);

#endif
