/*
 * Private to the two files of the fault proxy:
 *
 * - sandbox_proxy.c        sets what a test asks for, under the mutex
 * - sandbox_proxy_flow.c   the thread: passes bytes and makes the faults
 */
#ifndef SANDBOX_PROXY_FLOW_H
#define SANDBOX_PROXY_FLOW_H

#include "sandbox_proxy.h"

#include <pthread.h>
#include <stddef.h>

enum { PROXY_PAIRS_MAX = 64, PROXY_TEXT_MAX = 64 };

/* A piece on its way. Until it is sent, nothing more is read from its sender. */
struct parked {
    char *bytes; /* malloc()ed; NULL: none */
    size_t n;
    int64_t due_ms;
    bool held; /* until proxy_let_go() */
};

/* Both ends of one connection. */
struct pair {
    struct parked parked[2]; /* by enum proxy_way */
    bool client_gone;        /* the client has hung up; parked data still goes to the server */
    int client, server;      /* -1: none */
    bool loses_answer;       /* the next answer is lost */
    bool silent;             /* an answer was lost, and all later ones are */
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
    bool lose_request; /* the piece itself, not its answer */
    char hold_text[PROXY_TEXT_MAX];
    int hold_in; /* the same, until one is held */
    enum proxy_then then;
    int64_t delay_ms;
    int lost, muted, held, dropped;
    bool mute, drop[2], let_go, hang_up, cut, stop;
};

/* The thread's function; arg: the proxy. Ends once proxy->stop is set. */
void *proxy_flow(void *arg);

#endif
