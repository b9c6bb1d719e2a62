/* Shared by the two files of the fake service. */
#ifndef FAKE_PRIVATE_H
#define FAKE_PRIVATE_H

#include "fake_service.h"
#include "hash_table.h"
#include "toy_server.h"

#include <jansson.h>

enum { RESOURCES_MAX = 512, KEY_MAX = 80, BODY_MAX = 400 };

struct resource {
    char name[80]; /* "item:1" */
    int64_t initial, current, version, sold, ledger_sum;
    int64_t lost_updates, duplicates;
    json_t *forks;
    /* the last accepted change; a lost update starts from the same reading */
    int64_t last_before;
    json_t *last_row;
};

struct answered {
    char key[KEY_MAX];
    int sendings, number; /* number: position among the new keys, from 1 */
    char *reply;          /* the stored answer; NULL: undecided */
    char *body;
    UT_hash_handle hh;
};

struct fake_service {
    struct fake_options options;
    struct toy_server *server;
    struct resource resources[RESOURCES_MAX];
    int n_resources, n_accepted, n_keys;
    struct answered *keys;
    json_t *ledger; /* rows of all resources */
    char *scratch;  /* the answer being sent, if it is not stored */
    atomic_int posts;
};

/* An answer that is not stored. The server sends it before it takes the next request. */
void fake_answer(struct fake_service *service, struct toy_reply *reply, int status,
                 const char *body);
struct resource *fake_find(struct fake_service *service, const char *kind, const char *id,
                           bool create);

/* fake_told.c: answers to GET. name NULL: all resources. */
void fake_tell_audit(struct fake_service *service, const char *name, struct toy_reply *reply);
/* query: "after=N&limit=N" */
void fake_tell_ledger(struct fake_service *service, const char *query, struct toy_reply *reply);
void fake_tell_value(struct fake_service *service, const char *kind, const char *id,
                     const char *text, struct toy_reply *reply);

#endif
