/* Callers with tokens: of the roles, and with none. The tokens are those that `seckilld token`
 * makes.
 */
#ifndef CALLERS_H
#define CALLERS_H

#include "raw_http.h"
#include "sandbox.h"

enum { CALLERS_TEXT = 512, CALLERS_KEY = 32 };

/* A buyer's name is a user. WRONG: a token that differs from that of the operator in one digit. */
enum who { NONE, WRONG, ANN, BOB, OPERATOR, WHO_COUNT };
extern const char *const callers_names[WHO_COUNT];

/* One per test binary. */
extern struct sandbox *callers_sandbox;
extern char callers_file[CALLERS_TEXT]; /* for --tokens */
extern char callers_tokens[WHO_COUNT][80];

void callers_open(void); /* sandbox and tokens */
void callers_close(void);

/* A service with guard mutex on a database of this name. more: further arguments. */
struct sandbox_server *callers_service(const char *name, const char *const *more);
/* PUTs item i1 (1,000 pieces at 1) and the accounts of ann and bob (1,000 each). */
void callers_fill(const struct sandbox_server *server, enum who who);

/* One request on a connection of its own; key and body may be NULL. The caller frees the reply. */
struct raw_reply callers_ask(const struct sandbox_server *server, enum who who, const char *method,
                             const char *path, const char *key, const char *body);
int callers_status(const struct sandbox_server *server, enum who who, const char *method,
                   const char *path, const char *key, const char *body);
/* Copies a text of a JSON answer; "": there is none of this name. */
void callers_text(const struct raw_reply *reply, const char *name, char ret[CALLERS_TEXT]);

void callers_new_key(char ret[CALLERS_KEY]);
/* Orders a piece of item i1 for ann; who: ann, or an operator. */
void callers_new_order(const struct sandbox_server *server, enum who who, char ret[CALLERS_TEXT]);

#endif
