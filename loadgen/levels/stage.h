/*
 * The stage of a level: two or three requests on one row of a service with --lab. Each is sent,
 * held at its points, let go, and answered. After each move all of them are watched until each
 * stands.
 */
#ifndef STAGE_H
#define STAGE_H

#include "load.h"

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    STAGE_ACTORS_MAX = 3,
    STAGE_POINTS_MAX = 4, /* of one actor */
    STAGE_ID_MAX = 40,    /* with it, keys are short enough for the trace */
    STAGE_ROW_MAX = STAGE_ID_MAX + 12,
    STAGE_TEXT_MAX = 128,
    STAGE_MESSAGE_MAX = 512
};

/* IDLE: not sent. HELD: at one of its points. WAITING: for the lock. DONE: answered. */
enum stage_state { STAGE_IDLE, STAGE_MOVING, STAGE_HELD, STAGE_WAITING, STAGE_DONE };

struct stage_actor {
    struct stage *stage;
    char name;                /* 'A' */
    char key[STAGE_TEXT_MAX]; /* Idempotency-Key of this run */
    int64_t amount;
    int pauses[STAGE_POINTS_MAX]; /* ids of the pauses at its points */
    int waits, acquired;          /* ids of the notes at the lock */
    enum stage_state state;
    int at;                     /* the id of the pause that holds it; 0: none */
    char token[STAGE_TEXT_MAX]; /* of its lock, as the lock server shows it; "": none */
    pthread_t thread;
    bool sent;            /* the thread is not joined */
    atomic_bool answered; /* what follows is written */
    int status;
    char problem[64];
    int64_t sent_us, answered_us;
};

struct stage {
    struct load_target target;
    const json_t *level; /* of levels.json */
    json_int_t start;    /* the row's first value */
    bool is_item;
    char id[STAGE_ID_MAX], row[STAGE_ROW_MAX]; /* of the level; of its row in this run */
    int runs;
    struct stage_actor actors[STAGE_ACTORS_MAX];
    int n;
    char lock[STAGE_TEXT_MAX], token[STAGE_TEXT_MAX]; /* key and token as seen last; "": none */
    int64_t held_us;                                  /* when A's token was seen last */
    char message[STAGE_MESSAGE_MAX];
};

/* Each returns 0, or -1 with a message. level is borrowed. */
int stage_open(struct stage *stage, const struct load_target *target, const json_t *level,
               const json_t *subject);
/* A new run: the row as at the beginning, nobody sent. lease_ms: of A's lock. The others' leases
 * outlast the run. */
int stage_begin(struct stage *stage, int64_t lease_ms);
/* Lets everybody go and waits for all answers. */
int stage_end(struct stage *stage);

/* What can be moved now, as letters: "AB". 'L' is the end of A's lease. Nobody is sent while
 * another request waits for the lock: which of two waiters comes first is not the scheduler's
 * choice. */
void stage_movable(const struct stage *stage, char ret[STAGE_ACTORS_MAX + 2]);
/* Moves one of these, and waits until each stands. */
int stage_move(struct stage *stage, char who);

/* One call whose answer must be 2xx; *ret (may be NULL) is the parsed answer. */
int stage_call(struct stage *stage, const char *method, const char *path, const char *body,
               json_t **ret);

#endif
