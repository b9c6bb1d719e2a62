/*
 * Linearizability of one object's history: is there an order of its operations, each at one instant
 * between its invocation and its answer, in which the object, used by one client alone, would have
 * given the same answers? (Herlihy, Wing: Linearizability, ACM TOPLAS 12(3), 1990)
 *
 * The search is that of Wing and Gong (Testing and verifying concurrent objects, JPDC 17, 1993):
 * take an operation that no outstanding one has to precede, apply it, go on; go back where nothing
 * fits. Lowe (Testing for linearizability, CCPE 29(4), 2017) remembers each pair of operations done
 * and state reached, so that no pair is entered twice. Objects are judged one by one, which is
 * enough (P-compositionality: Horn, Kroening, Faster linearizability checking, FORTE 2015). Both
 * are as in Porcupine (https://github.com/anishathalye/porcupine).
 *
 * Three additions keep real histories short; each leaves out only orders that another order
 * stands for:
 *   - an operation that changes nothing is done as soon as the state allows it
 *   - a model may know that only one change fits a state (a version that an answer names)
 *   - of operations that may have happened and are alike, the one asked first goes first
 *
 * Pure functions: no clock, no input, no output. Any thread.
 */
#ifndef LINEAR_H
#define LINEAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LINEAR_WORDS = 2 };

/* A state; equal when all its words are. */
struct linear_state {
    int64_t words[LINEAR_WORDS];
};

enum linear_kind {
    LINEAR_CHANGE, /* happened */
    LINEAR_LOOK,   /* happened, and changed nothing */
    LINEAR_MAYBE   /* a change that may have happened, at any time after its invocation, or not */
};

struct linear_op {
    enum linear_kind kind;
    int64_t invoked_us, answered_us; /* answered: of a CHANGE or LOOK */
    uint64_t likeness;               /* two MAYBEs with one likeness do the same in every state */
};

#define LINEAR_NONE SIZE_MAX

/* The object: how it begins, and what an operation makes of a state. op is an index. */
struct linear_model {
    const void *object;
    struct linear_state first;
    /* False: it does not fit this state. A LOOK leaves *ret alone. */
    bool (*step)(const void *object, const struct linear_state *state, size_t op,
                 struct linear_state *ret);
    /* The CHANGE that comes next in this state if any does: no other can. LINEAR_NONE: not known.
     */
    size_t (*only)(const void *object, const struct linear_state *state);
};

enum { LINEAR_STEPS_PER_CHANGE = 10 };

/* What a search may cost. */
struct linear_bound {
    uint64_t steps; /* calls of the model's step(); a change counts LINEAR_STEPS_PER_CHANGE */
    size_t bytes;   /* of the pairs remembered */
};

enum linear_verdict {
    LINEAR_HOLDS,
    LINEAR_BROKEN,
    LINEAR_UNDECIDED /* the bound was reached, or there was no memory */
};

/* ret_steps (may be NULL): what it took. */
enum linear_verdict linear_check(const struct linear_op *ops, size_t n,
                                 const struct linear_model *model, const struct linear_bound *bound,
                                 uint64_t *ret_steps);

#endif
