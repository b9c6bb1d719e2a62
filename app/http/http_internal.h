/* What the files http_*.c share. Everything here belongs to the loop thread, except the members
 * below "shared". */
#ifndef HTTP_INTERNAL_H
#define HTTP_INTERNAL_H

#include "http.h"
#include "http_done.h"
#include "http_events.h"
#include "http_framing.h"
#include "http_metrics.h"
#include "routes.h"

#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>

/* What a connection is waiting for; each phase has its allowance in http_limits. */
enum phase {
    PHASE_DOOR,    /* its turn to be let in; it is in a list of struct door */
    PHASE_SILENT,  /* at the door, too: the first bytes of its first request */
    PHASE_IDLE,    /* the next request */
    PHASE_READING, /* the first request, or the rest of a request */
    PHASE_SERVICE, /* the service's answer; the connection is suspended */
    PHASE_AUDIT,   /* the same for GET /v1/audit, which reads the whole ledger */
    PHASE_SENDING, /* the client taking our answer */
    PHASE_STREAM,  /* events; no allowance: see http_events.h */
    PHASE_ENDING,  /* shut down; libmicrohttpd is about to close it */
    PHASE_COUNT
};

struct conn {
    struct conn *prev, *next; /* in the list of its phase, the longest waiting first */
    struct MHD_Connection *mhd;
    struct conn_list *waits_in; /* at the door */
    struct sockaddr_in6 from;   /* or a struct sockaddr_in */
    uint8_t line;               /* of its address */
    uint32_t watch;             /* what http_gone.c waits for: epoll_ctl(2); 0: nothing */
    int fd;
    enum phase phase;
    int64_t due_us; /* end of the phase's allowance; of PHASE_DOOR: see lined_up_us */
    /* Since when it waits to be let in. The allowance to send its request stands meanwhile. */
    int64_t lined_up_us;
    bool gone; /* its client has ended the connection, or its own sending side */
    struct request *request;
    struct peer *peer; /* its address is counted there; NULL: not counted */
};

struct conn_list {
    struct conn *first, *last;
    int n;
};

/* See http_door.c. */
enum {
    DOOR_MAX = 1024, /* connections accepted beyond --connections: they wait at the door */
    DOOR_LINES = 64,
    HTTP_BEYOND = 40 /* connections let in beyond --connections, until others give way */
};

struct door {
    struct conn_list probes, left, lines[DOOR_LINES]; /* the silent ones are in their phase */
    unsigned next_line;
    int n;
    int taken; /* accepted in the spell that began at spell_us */
    int64_t spell_us, shut_until_us, left_from_us;
    struct conn *enters; /* into libmicrohttpd, during let_in() */
};

/* An operation and the request that waits for it. After request_give_up() the service still has the
 * operation, and the request has another call with the 503; after request_abandon() it has none. */
struct call {
    struct op op;            /* op.http: the struct http, for done() */
    struct request *request; /* NULL: given up */
};

/* How far a request has come. */
enum stage {
    STAGE_HEAD,    /* request line read */
    STAGE_BODY,    /* head good; the body is coming */
    STAGE_SERVICE, /* submitted */
    STAGE_ANSWER,  /* op->answer is to be sent */
    STAGE_SENT     /* given to libmicrohttpd */
};

struct request {
    struct request *next; /* free list */
    struct conn *conn;
    struct call *call; /* in STAGE_SERVICE the service has it; NULL: the connection ends */
    struct route_match match;
    enum stage stage;
    bool bad_token;   /* a token was sent, and it is nobody's */
    bool close;       /* the connection ends with this answer */
    const char *text; /* answer's body; NULL: that of the operation */
    size_t text_bytes;
    const char *type;  /* Content-Type of the answer; NULL: by its status */
    int64_t begun_us;  /* request line read */
    const char *raw;   /* request line in libmicrohttpd's buffer, the target's first byte */
    size_t raw_length; /* of the target, up to its first NUL */
    /* What the client sent: the target, NUL-terminated, and from target_bytes on the body. When the
     * service gets the operation, this memory becomes that of the answer's body, and sent is NULL.
     */
    char *sent;
    size_t sent_room, target_bytes;
    size_t body_bytes; /* that have arrived, also those not kept */
};

struct http_log_ration {
    int64_t second;
    int lines;
    uint64_t dropped;
    bool skips; /* the next line */
};

struct http {
    const struct config *config;
    struct service *service;
    struct http_limits limits;
    struct tokens *tokens; /* NULL: open to everybody as an operator */
    const struct extra_routes *extras[EXTRAS_MAX];
    struct MHD_Daemon *daemon;
    int listen_fd; /* -1 once draining */
    pthread_t thread;
    char url[HTTP_URL_MAX];

    struct door door;
    struct conn_list phases[PHASE_COUNT];
    struct conn *free_conns; /* linked by next */
    struct request *free_requests;
    struct op *free_calls; /* linked by op.next */
    bool draining;
    /* libmicrohttpd has to run before the next wait: a connection was resumed, or a closed one has
     * made place for another. No descriptor tells of either. */
    bool runs_next;
    long in_flight;    /* operations with the service */
    uint64_t id_state; /* of the made request ids */
    struct http_metrics metrics;
    struct http_events *events;
    struct http_log_ration log_ration;
    struct peer *peers;      /* uthash, see http_peers.c */
    uint32_t line_seed;      /* random: no client can choose addresses for one line */
    int gone_fd;             /* epoll, see http_gone.c */
    bool withdraws;          /* an operation in the service was abandoned since the last look */
    int64_t withdraw_due_us; /* not before */

    /* shared */
    struct http_done done;
    atomic_bool not_ready, drain_wanted, stop_wanted;
    atomic_uint turns;          /* of the loop */
    atomic_long open_conns;     /* with those at the door */
    pthread_mutex_t gone_mutex; /* for gone_cond: open_conns has become 0 while draining */
    pthread_cond_t gone_cond;
};

int64_t http_now_us(void);

/* -- http_conn.c: connections, their phases and deadlines -- */
/* How many overdue connections are ended per turn. A turn that resumes one walks through all that
 * wait for the service: the more wait, the more are ended. */
long conn_ended_max(const struct http *http);
int64_t conn_allowance_us(const struct http *http, enum phase phase);
void conn_list_append(struct conn_list *list, struct conn *conn);
void conn_list_remove(struct conn_list *list, struct conn *conn);
/* A new one at the door, not yet in a list. NULL: it is not let in. */
struct conn *conn_accepted(struct http *http, int fd, const struct sockaddr_in6 *from);
void conn_forget(struct http *http, struct conn *conn); /* its socket is closed, or will be */
void conn_opened_or_closed(void *http, struct MHD_Connection *mhd, void **conn,
                           enum MHD_ConnectionNotificationCode code);
void conn_phase(struct http *http, struct conn *conn, enum phase phase, int64_t now_us);
/* Ends what is overdue; returns when the next is due, INT64_MAX for never. */
int64_t conn_expire(struct http *http, int64_t now_us);
void conn_end_unused(struct http *http); /* those without a request */
void conn_shutdown(struct http *http, struct conn *conn);
void conn_resume(struct http *http, struct conn *conn); /* its handler is called again */

/* -- http_door.c: from the kernel's queue to libmicrohttpd, in order -- */
/* Accepts connections, if there are new ones, and lets some in. Returns when it wants to be called
 * again, besides for new connections; INT64_MAX: not. */
int64_t door_turn(struct http *http, int64_t now_us, bool any_new);
bool door_is_open(const struct http *http, int64_t now_us); /* door_turn() would accept */
void door_event(struct http *http, struct conn *conn, bool speaks, bool left); /* a silent one */
void door_close(struct http *http, struct conn *conn); /* one that is at the door */
/* No more is accepted. Connections at the door are closed, or, if they have sent something, let in.
 */
void door_end(struct http *http, bool lets_in);

/* -- http_gone.c: clients that end their connection while they wait -- */
int gone_open(struct http *http); /* 0, or -1 with errno */
void gone_close(struct http *http);
void gone_watch(struct http *http, struct conn *conn);        /* from now on, if it is not yet */
bool gone_watch_silent(struct http *http, struct conn *conn); /* also for bytes; false: cannot */
void gone_forget(struct http *http, struct conn *conn);
void gone_take(struct http *http); /* ends what they waited for */
/* Tells the service. Returns when it wants to be called again; INT64_MAX: not. */
int64_t gone_tick(struct http *http, int64_t now_us);

/* -- http_request.c: one request from its first line to its last byte -- */
void *request_begin(void *http, const char *target, struct MHD_Connection *mhd);
enum MHD_Result request_step(void *http, struct MHD_Connection *mhd, const char *url,
                             const char *method, const char *version, const char *data,
                             size_t *data_bytes, void **request);
void request_end(void *http, struct MHD_Connection *mhd, void **request,
                 enum MHD_RequestTerminationCode why);
const char *request_query(const struct request *request); /* NULL: none */

/* -- http_wait.c: a request while the service has its operation -- */
/* Hands the operation to the service. The connection is suspended until the answer. */
enum MHD_Result request_hand_over(struct http *http, struct request *request);
void request_done(struct http *http, struct op *op);        /* taken from http->done */
void request_give_up(struct http *http, struct conn *conn); /* answered 503 in the op's place */
void request_abandon(struct http *http, struct conn *conn); /* nobody waits for its answer */
/* Ends the connection: its client has gone. libmicrohttpd's line about this says nothing new. */
enum MHD_Result request_end_unanswered(struct http *http, struct request *request);

/* -- http_answer.c -- */
enum MHD_Result answer_send(struct http *http, struct request *request);
/* The same with a body of the caller's making. */
enum MHD_Result answer_queue(struct http *http, struct request *request,
                             struct MHD_Response *response);
/* Writes the problem straight to the socket, where libmicrohttpd takes no answer: the request is
 * half read, or malformed. The connection must end then. */
void answer_straight(struct http *http, struct conn *conn, enum problem problem, const char *detail,
                     int64_t duration_us);
void answer_local(struct http *http, struct request *request); /* /livez, /metrics, /openapi.json */
void answer_request_id(struct http *http, struct op *op, const struct http_value *sent);

/* -- http_pool.c: calls, requests, connections, kept for reuse; NULL without memory -- */
bool request_room(struct request *request, size_t bytes); /* for sent; false: no memory */
void request_give_room(struct request *request);          /* sent becomes the answer's memory */
struct call *call_get(struct http *http);
void call_put(struct http *http, struct call *call);
struct request *request_get(struct http *http);
void request_put(struct http *http, struct request *request);
struct conn *conn_get(struct http *http);
void conn_put(struct http *http, struct conn *conn);
void pool_free(struct http *http);

/* -- http_peers.c: connections per address; who gives way when all are taken -- */
/* Counts it, and finds the line of its address. False: its address has too many. */
bool peers_enter(struct http *http, struct conn *conn);
void peers_leave(struct http *http, struct conn *conn);
/* Ends connections beyond --connections. Returns when it wants to be called again; INT64_MAX: not.
 */
int64_t peers_give_way(struct http *http, int64_t now_us);

/* -- http_malformed.c: requests that libmicrohttpd refuses, but not well -- */
/* It is about to refuse a Content-Length. It would answer twice. */
void malformed_length(struct http *http);
/* It has closed a connection. If it had no answer for the first request line, this gives one. */
void malformed_line(struct http *http, struct conn *conn);

/* -- http_log.c: libmicrohttpd's messages, a few per second -- */
void http_log(void *http, const char *format, va_list args);

#endif
