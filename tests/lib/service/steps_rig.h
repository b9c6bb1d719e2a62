/* Step mode of the live page, moved by keys as a learner does. */
#ifndef STEPS_RIG_H
#define STEPS_RIG_H

#include "page_rig.h"

/* Loads the exercise ("ex=lost-update&lang=en") and waits for its actors. False: they did not come.
 */
bool steps_go(const char *query);
/* One key; then that actor stands where it says: a point, or a state ("waiting", "accepted" ...).
 * False, with a message: it did not come there. */
bool steps_move(const char *name, const char *where);
/* So on to each of these, NULL-terminated. */
bool steps_moves(const char *name, const char *const *points);

/* Within PAGE_WAIT_MS the actor has this state, what is shown of the row or lock is this text, the
 * verdict is of this state and has this word. */
bool steps_state_is(const char *name, const char *state);
bool steps_world_is(const char *what, const char *text);
bool steps_verdict_is(const char *state, const char *word);

/* The same, claimed. */
#define GO(query)            assert_true(steps_go(query))
#define MOVE(name, where)    assert_true(steps_move(name, where))
#define MOVES(name, ...)     assert_true(steps_moves(name, (const char *const[]){__VA_ARGS__, NULL}))
#define STATE(name, state)   assert_true(steps_state_is(name, state))
#define WORLD(what, text)    assert_true(steps_world_is(what, text))
#define VERDICT(state, word) assert_true(steps_verdict_is(state, word))

#endif
