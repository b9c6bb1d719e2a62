/*
 * The real service, to be killed at its system calls, and the judgement afterwards: SQL alone finds
 * what was answered, one effect for each key, and values that agree.
 *
 * Usually a share of the calls is tried: every nth, from a random one on, which is printed.
 * KILL_FIRST=n repeats it, KILL_STEP=n tries every nth. TEST_FULL=1: every call.
 */
#ifndef TEST_KILL_RIG_H
#define TEST_KILL_RIG_H

#include "books.h"
#include "kill_call.h"
#include "shop.h"

/* One per test program. */
extern struct kill_rig {
    struct shop shop;
    struct sandbox_server *postgres; /* NULL: the store is SQLite */
    struct books books;
    char url[SANDBOX_TEXT_MAX + 32]; /* of the store */
    int next_key, step, first;
    int64_t decided;     /* keys with an answer */
    int at;              /* the call of the last kill */
    struct reply answer; /* the one that a key has got */
} kill_rig;

/* Servers, and the service on an empty store. The service's locks end after a short lease. */
int kill_open(bool postgres, const char *lanes, const char *guard);
int kill_close(void **state); /* tear-down of a test */
/* Puts the item and the accounts that requests are about. */
void kill_fill_books(void);

struct kill_request {
    char path[96], key[32]; /* a new key that begins with a name */
    const char *body;
};

struct kill_request kill_request(const char *name, const char *path, const char *body);
struct kill_request kill_order(void);
/* An order that is placed: its answer is in kill_rig.answer. */
struct kill_request kill_answered_order(void);
/* Sends the same key until the answer is a decision. */
void kill_decide(const struct kill_request *request, struct reply *ret);

/* The service is dead. Fails the test if what it left behind breaks a rule of books.h, has not as
 * many answers as clients have, or one more, or lacks the answer of this request. */
void kill_judge(const struct kill_request *request, bool answered);

/* Calls at(arg, n) for each n of the share, until the process came so far for none of several. at()
 * returns whether it was killed at its nth call. Prints and returns how many kills there were. */
int kill_at_each(const char *name, int usual_step, bool (*at)(const void *arg, int n),
                 const void *arg);

#endif
