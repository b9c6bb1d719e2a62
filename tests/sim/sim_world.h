/*
 * One run: instances of the service on one machine, clients with books of their own, and faults.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "config.h"
#include "op.h"
#include "service.h"
#include "sim_settings.h"

enum { SIM_INSTANCES_MAX = 3, SIM_DEALS_MAX = 512, SIM_BROKEN_MAX = 400 };

enum sim_state { SIM_DOWN, SIM_STARTING, SIM_UP, SIM_STOPPING, SIM_CLOSING };

struct sim_instance {
    int number, group; /* a group for each of its lives */
    uint32_t life;     /* rises with each start and each end */
    uint32_t starts;   /* rises with sim_instance_start() and sim_instance_kill() */
    enum sim_state state;
    bool stop;       /* asked to */
    bool supervised; /* it is running, or will soon */
    int64_t kill_in; /* steps; 0: not at all */
    int entering;    /* threads in service_submit() */
    struct config config;
    struct service *service;
};

/* What a client wants once. It asks until it is decided. */
struct sim_deal {
    enum op_kind kind;
    char key[32], id[DB_ID_MAX + 1], other[DB_ID_MAX + 1];
    int64_t amount;
    uint32_t asking;      /* under way */
    int64_t asked_us;     /* first */
    int64_t refused_us;   /* its last refusal was stored then, or later */
    bool decided, unseen; /* unseen: accepted, and its answer pruned before it was told */
    int status;
    char body[DB_BODY_MAX + 1];
};

struct sim_result {
    uint64_t hash, events[SIM_EVENTS], deals, looks;
    int64_t virtual_us;
    char broken[SIM_BROKEN_MAX]; /* "": nothing */
};

extern struct sim_world {
    struct sim_settings is;
    struct sim_instance instances[SIM_INSTANCES_MAX];
    struct sim_deal deals[SIM_DEALS_MAX];
    uint32_t n_deals, n_open, clients_left;
    bool healed;
    int64_t healed_us;
    int last_group;
    FILE *timeline; /* NULL: nobody reads it */
    struct sim_result *result;
} sim_world;

extern const char sim_store[], sim_lock_store[]; /* the paths of the databases */

/* The whole run, in the calling process, which is to end after it. */
void sim_world_run(const struct sim_settings *settings, struct sim_result *ret, FILE *timeline);

/* The first one counts. */
void sim_broken(const char *format, ...) __attribute__((format(printf, 1, 2)));
void sim_count(enum sim_event event);
void sim_tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* sim_instances.c. From the world's fibers. */
void sim_instance_start(struct sim_instance *instance);
void sim_instance_kill(struct sim_instance *instance);
void sim_instance_stop(struct sim_instance *instance); /* waits until it has ended */
struct sim_instance *sim_instance_any(void);           /* that takes requests; NULL: none */

/* sim_clients.c: spawns them. */
void sim_clients_start(void);

/* sim_books.c: what a client is told goes into its books, and must fit what they have. asked_us:
 * when it asked. */
void sim_enter(struct sim_deal *deal, const struct op *op, int64_t asked_us);
/* Its answer may be gone from the store by now: old enough, or so by a clock that leapt. */
bool sim_may_be_pruned(const struct sim_deal *deal);
bool sim_refusal_may_go(const struct sim_deal *deal);
/* A refusal has gone that was stored at refused_us or later: so many as new ones must be there, by
 * the store's clock since *ret_us. False: clocks leap. */
bool sim_newer_refusals_since(const struct sim_deal *deal, int64_t *ret_us);
/* Asks an operator's question until it is answered with 2xx. */
void sim_put(enum op_kind kind, const char *id, int64_t amount, const char *guard);
/* A PATCH of the guard of an item or account, over the version that a GET shows; a few times, if
 * others change it. False: it was not to be done. */
bool sim_patch(bool item, const char *id, const char *guard);

/* Makes a lock free whoever holds it, as a lock server that forgets. resource: "item:1". */
void sim_free_lock(const char *resource);

/* sim_nemesis.c: the faults, then heals all. */
void sim_nemesis(void);
/* This kind of fault, now, by the running thread if it is the victim's. key: the lock at hand, or
 * "". Does not return if that ends the thread. */
void sim_harm(struct sim_instance *victim, enum sim_event kind, const char *key);

/* sim_judge.c: reads the database alone, once all instances have ended. */
void sim_judge(void);
/* The rules that hold after each commit. */
struct sqlite3;
void sim_judge_rows(struct sqlite3 *store);
/* sim_judge_chains.c: each row's hash covers the one before it. */
void sim_judge_chains(struct sqlite3 *store);

#endif
