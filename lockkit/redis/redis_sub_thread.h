/* Inside the subscriber: the listeners (redis_sub.c) say which channels are wanted, and its thread
 * (redis_sub_thread.c) subscribes them. */
#ifndef LOCKKIT_REDIS_SUB_THREAD_H
#define LOCKKIT_REDIS_SUB_THREAD_H

#include "redis_sub.h"
#include "table.h"

#include <pthread.h>

enum lk_redis_channel_state {
    CHANNEL_WANTED, /* to be subscribed */
    CHANNEL_ASKED,  /* SUBSCRIBE sent */
    CHANNEL_LIVE,
    CHANNEL_LEFT,    /* to be unsubscribed */
    CHANNEL_DROPPING /* UNSUBSCRIBE sent */
};

struct lk_redis_channel {
    char name[LK_REDIS_CHANNEL_MAX];
    enum lk_redis_channel_state state;
    int64_t listeners;
    UT_hash_handle hh;
};

struct lk_redis_sub {
    const lk_context *context;
    lk_redis *redis;
    lk_redis_on_message *on_message;
    void *arg;
    int64_t timeout_us;
    int64_t ping_us; /* while there are listeners; the answer is due within this or the timeout */
    int kick_fd;     /* wakes the thread */
    pthread_t thread;

    pthread_mutex_t mutex; /* guards the rest but the connection */
    pthread_cond_t changed;
    struct lk_redis_channel *channels;
    uint64_t n_failures; /* connections that could not be made, or broke */
    size_t n_idle;
    bool started, stop;
    bool silent; /* a SUBSCRIBE was not answered in time: the thread ends the connection */
    bool dozes;  /* there are no listeners: the thread sends no PING until it is kicked */

    lk_redis_connection connection; /* the thread's */
    bool pinged;                    /* and not answered */
    int64_t due_us;                 /* when the next PING or its answer is due; 0: not set */
    lk_redis_reply reply;
};

/* The thread's function; arg is the lk_redis_sub. Runs until sub->stop. kick_fd wakes it. */
void *lk_redis_sub_run(void *arg);

/* The mutex is held. NULL: there is no such channel. */
struct lk_redis_channel *lk_redis_sub_find(lk_redis_sub *sub, const char *name);
/* Removes a channel without listeners. */
void lk_redis_sub_forget(lk_redis_sub *sub, struct lk_redis_channel *channel);

#endif
