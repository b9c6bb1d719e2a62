/* Step mode of the live page, operated by keys as a learner does. */
#ifndef STEPS_RIG_H
#define STEPS_RIG_H

#include "page_rig.h"

/* Loads the exercise ("ex=lost-update&lang=en") and waits for its actors. False: no actors. */
bool steps_go(const char *query);
/* Presses the actor's key and waits until the actor is at `where`: a point, or a state ("waiting",
 * "accepted" ...). False, with a message: it did not get there. */
bool steps_move(const char *name, const char *where);
/* The same for each of these points in turn, NULL-terminated. */
bool steps_moves(const char *name, const char *const *points);

/* True if this is so within PAGE_WAIT_MS:
 * - the actor has this state
 * - the page shows this text for the row or lock
 * - the verdict has this state and contains this word */
bool steps_state_is(const char *name, const char *state);
bool steps_world_is(const char *what, const char *text);
bool steps_verdict_is(const char *state, const char *word);

/* The same as assertions. */
#define GO(query)            assert_true(steps_go(query))
#define MOVE(name, where)    assert_true(steps_move(name, where))
#define MOVES(name, ...)     assert_true(steps_moves(name, (const char *const[]){__VA_ARGS__, NULL}))
#define STATE(name, state)   assert_true(steps_state_is(name, state))
#define WORLD(what, text)    assert_true(steps_world_is(what, text))
#define VERDICT(state, word) assert_true(steps_verdict_is(state, word))

#endif
