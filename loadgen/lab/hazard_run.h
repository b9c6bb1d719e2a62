/*
 * One run of one experiment. The steps run in order; each is observed to have happened before the
 * next. Then the run is judged by the service's audit and the answers. A step that does not happen
 * within its bound fails the run: the fault did not take effect.
 */
#ifndef HAZARD_RUN_H
#define HAZARD_RUN_H

#include "hazard_lab.h"
#include "hazard_world.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>

enum {
    RUN_EVENTS_MAX = 2048, /* before retries are folded */
    RUN_PAUSES_MAX = 8,    /* of one actor's request */
    RUN_ANSWER_MS = 60000, /* an answer is waited for at most */
    RUN_LOOK_MS = 2        /* between two looks */
};

/* A pause that an actor's request will meet, or has met. */
struct actor_pause {
    int id; /* 0: none */
    char point[LAB_POINT_MAX];
};

/* A client that sends one request at a time. */
struct actor {
    struct hazard_run *run;
    enum hazard_who who;
    struct world_instance *instance;
    pthread_t thread;
    bool started;         /* and not yet joined */
    atomic_bool answered; /* the thread has ended */
    int times;            /* keys used */
    char key[LAB_KEY_MAX];
    struct actor_pause pauses[RUN_PAUSES_MAX];
    int n_pauses, held_at; /* index of the pause it is held at; -1: none */
    bool was_held;         /* at any pause of this request */
    int waits_id;          /* the note at lock.wait */
    int64_t sent_us, took_us;
    bool retried, pays;
    char order[LAB_KEY_MAX]; /* that it placed; "": none */
    int status;              /* of the last answer; -1: none came; 0: not sent yet */
    char problem[64];
    enum hazard_answer answer; /* the same in one word */
};

/* Pauses that observe the crowd: hazard_crowd.c. */
enum crowd_watch { CROWD_DECIDED, CROWD_WAITS, CROWD_WOKEN, CROWD_WATCHES };

/* Many clients that send one request each. */
struct crowd {
    pthread_t thread;
    bool started;
    int pauses[HAZARD_INSTANCES][CROWD_WATCHES];
    int64_t first_wakes, wakes; /* after the first release; in all */
    atomic_long accepted, refused, failed;
    atomic_long again;             /* asked once more */
    char message[LAB_MESSAGE_MAX]; /* why it could not be sent */
};

/* Waiters for the lock; the nth has the key "ID-uN". */
struct queue {
    struct waiter {
        struct hazard_run *run;
        pthread_t thread;
        atomic_bool queues; /* it was seen to */
        int status, waits_id;
        int64_t came_us, served_us;
    } waiters[HAZARD_QUEUE_MAX];
    int n; /* threads that are not joined */
    int accepted;
};

/* The scheduled tasks, which come to A's order. */
struct tasks {
    int hold_ids[HAZARD_INSTANCES], wait_ids[HAZARD_INSTANCES], done_ids[HAZARD_INSTANCES],
        door_ids[HAZARD_INSTANCES];     /* pauses */
    bool turned_away[HAZARD_INSTANCES]; /* at the task's lock */
    bool closed;                        /* the order was seen to be */
};

/* Two readers that take turns: hazard_readers.h. */
struct readers {
    struct hazard_run *run;
    lk_client *client;
    pthread_t thread;
    bool started;
    atomic_bool stop, waits;       /* one waits for a writer; none is inside */
    atomic_long together, torn;    /* times both were inside; a value changed under one */
    long wanted;                   /* of together */
    char message[LAB_MESSAGE_MAX]; /* why they gave up; read when the thread has ended */
};

/* One line of the timeline: from the service's trace, or of the lab itself. */
struct run_event {
    int64_t t_us; /* from the first one on */
    char actor[12], point[LAB_POINT_MAX + 64];
    bool has_value;
    int64_t value, fence;
};

struct run_outcome {
    int64_t initial, expected_final, final;
    int64_t lost_updates, lost_amount, oversold, duplicates;
    int64_t failed;       /* of the crowd: neither accepted nor turned away */
    int64_t measure_ms;   /* B's wait for its answer; without B, A's */
    int64_t wakes;        /* per release */
    int64_t overtakings;  /* of the waiter that was overtaken most often */
    int64_t mean_wait_ms; /* of the queue; measure_ms is the longest */
    bool has_fork;
    struct ledger_row fork[2];
};

/* What the user wants to see. */
struct run_how {
    FILE *narrate; /* NULL: silent */
    enum hazard_language language;
    bool step;                         /* waits for Enter after each step */
    int64_t patience_ms;               /* a step has happened within this, or the run has failed */
    const volatile sig_atomic_t *stop; /* not 0: stop */
};

struct hazard_run {
    const struct hazard *hazard;
    const struct hazard_case *one;
    struct hazard_setting with;
    struct world *world;
    struct run_how how;

    char id[16], other_id[24], resource[40], lock[LAB_KEY_MAX];
    struct actor actors[HAZARD_ACTORS];
    struct crowd crowd;
    struct tasks tasks;
    struct queue queue;
    struct readers readers;
    int64_t lease_from_us; /* when a request was last seen at its point; OUTLIVE counts from it */
    int lost_wanted;       /* what the proxies must have lost for the fault to have happened */

    /* the result */
    bool took_effect; /* every step was seen to happen */
    enum hazard_outcome observed;
    struct run_outcome outcome;
    struct run_event events[RUN_EVENTS_MAX];
    int n_events;
    char message[LAB_MESSAGE_MAX]; /* why a step was not seen to happen */
};

/* Fills *ret. Returns 0, or -1 with ret->message when it could not be run. */
int hazard_run_once(struct world *world, const struct hazard *hazard, const struct hazard_case *one,
                    const struct run_how *how, struct hazard_run *ret);

/* hazard_actor.c: the actors' requests. 0, or -1 with run->message. */
int actor_send(struct actor *actor, const struct hazard_step *steps, bool new_key);
int actor_until(struct actor *actor, const char *point);
int actor_as_far_as(struct actor *actor, const char *point);
int actor_passed(struct actor *actor, const char *point);
int actor_release(struct actor *actor);
/* The request is over: removes the pauses that it did not reach. */
int actor_forget(struct actor *actor);
/* -1 also when its answer is ANSWER_FAILED. */
int actor_answer(struct actor *actor);
bool actor_was_refused(const struct actor *actor); /* or never answered */
/* status: of HTTP; -1: none came. problem: its name; "": none. */
enum hazard_answer actor_answer_of(int status, const char *problem);

/* hazard_timeline.c: redlock's nodes "45", for a reader: "4, 5". */
enum { RUN_NODES_MAX = 16 };
void run_node_list(const char *nodes, char out[RUN_NODES_MAX]);

/* hazard_steps.c */
int step_do(struct hazard_run *run, const struct hazard_step *step);

/* hazard_judge.c: reads the audit and classifies. 0, or -1 with run->message. */
int run_judge(struct hazard_run *run);
/* The outcome of a run whose run->outcome is filled in. */
enum hazard_outcome run_classify(const struct hazard_run *run, const struct audit_row *audit);

/* hazard_timeline.c */
void run_note(struct hazard_run *run, const char *actor, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Copies the instance's trace into the events: before it is killed, and at the end. */
void run_take_trace(struct hazard_run *run, const struct world_instance *instance);
/* By time, from 0 on. Tries of a client that end alike, without the lock, become one event. */
void run_sort_events(struct hazard_run *run);

/* hazard_narrate.c */
void narrate_begin(struct hazard_run *run);
void narrate_step(struct hazard_run *run, const struct hazard_step *step);
void narrate_end(struct hazard_run *run);

const char *who_name(enum hazard_who who); /* "A", ..., "locks", "crowd" */

/* Polls seen(arg). Returns 0 when it is true, -1 after run->how.patience_ms. */
int run_until(const struct hazard_run *run, bool (*seen)(void *arg), void *arg);

#endif
