/* Private to the room: a request, and what is answered. */
#ifndef CLASSROOM_HTTP_H
#define CLASSROOM_HTTP_H

#include "classroom.h"
#include "lan.h"
#include "room.h"
#include "site_files.h"

#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

struct classroom;

struct listener {
    struct classroom *classroom;
    bool presenter;
    struct MHD_Daemon *daemon;
    struct lan_address address;
    int epoll;
};

/* A connection has one request, and is closed after it. */
struct visit {
    struct listener *listener;
    struct MHD_Connection *connection;
    int64_t ends_ms;      /* it is closed then */
    int64_t waits_ms;     /* > 0: it is suspended until the next position, or then */
    bool has_waited;      /* it is answered as it is */
    char id[ROOM_ID_MAX]; /* of the client that waits */
    bool begun, too_long; /* its head was read; its body is longer than allowed */
    char body[CLASSROOM_BODY_MAX + 1];
    size_t length;
    struct visit *prev, *next;
};

struct classroom {
    struct classroom_times times;
    struct room room;
    struct site_files site;
    struct listener listeners[2]; /* the class's, the presenter's */
    struct visit visits;          /* head of the ring of all connections */
    char key[ROOM_ID_MAX];
    char url[CLASSROOM_URL_MAX], presenter_url[CLASSROOM_URL_MAX];
    char *qr;
    pthread_t thread;
    int stop_fd;
    bool has_thread, woken; /* woken: visits were resumed, and are served at once */
};

/* Answers a request whose head and body are there, or suspends it. */
enum MHD_Result classroom_answer(struct visit *visit, const char *method, const char *path);
/* Resumes all that wait; those of the room's changes. Only from the classroom's thread. */
void classroom_wake(struct classroom *classroom);

#endif
