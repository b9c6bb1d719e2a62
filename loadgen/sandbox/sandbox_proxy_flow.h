/*
 * Inside of the fault proxy, for its two files:
 *   sandbox_proxy.c        what a test asks for, under the mutex
 *   sandbox_proxy_flow.c   the thread: it passes bytes and does what was asked for
 */
#ifndef SANDBOX_PROXY_FLOW_H
#define SANDBOX_PROXY_FLOW_H

#include "sandbox_proxy.h"

#include <pthread.h>
#include <stddef.h>

enum { PROXY_PAIRS_MAX = 64, PROXY_TEXT_MAX = 64 };

/* A piece on its way. As long as there is one, nothing more is read from its sender. */
struct parked {
    char *bytes; /* malloc()ed; NULL: none */
    size_t n;
    int64_t due_ms;
    bool held; /* until proxy_let_go() */
};

/* Both ends of one connection. */
struct pair {
    struct parked parked[2]; /* by enum proxy_way */
    bool client_gone;        /* the client has hung up; what is parked still goes to the server */
    int client, server;      /* -1: none */
    bool loses_answer;       /* the next answer is lost */
    bool silent;             /* and so are all after it */
    bool may_be_muted;       /* has sent the text of proxy_mute() */
};

struct proxy {
    pthread_t thread;
    int listener, port, server_port;
    struct pair pairs[PROXY_PAIRS_MAX];

    pthread_mutex_t mutex; /* guards the rest */
    pthread_cond_t has_cut;
    char lose_text[PROXY_TEXT_MAX], mute_text[PROXY_TEXT_MAX];
    int lose_in;       /* matching pieces until one is lost; 0: none */
    bool lose_request; /* it, not its answer */
    char hold_text[PROXY_TEXT_MAX];
    int hold_in; /* likewise, until one is held */
    enum proxy_then then;
    int64_t delay_ms;
    int lost, muted, held, dropped;
    bool mute, drop[2], let_go, hang_up, cut, stop;
};

/* The thread's function; arg: the proxy. Ends once proxy->stop is set. */
void *proxy_flow(void *arg);

#endif
