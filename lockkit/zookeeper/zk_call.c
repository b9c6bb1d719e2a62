/*
 * One request to ZooKeeper and its answer. The answer may come after its caller has left, so a
 * ticket connects the two. The answer frees the ticket. The library delivers each answer: from the
 * server, as a lost connection, or when the session is closed.
 */
#include "zk_session.h"

#include <stdlib.h>
#include <string.h>

/* On the caller's stack. */
struct pending {
    lk_zk_answer *answer;
    bool done;
    pthread_cond_t answered;
};

struct ticket {
    lk_zk *zk;
    struct pending *pending; /* NULL: the caller has left; under zk->lock */
};

struct ask {
    const char *path, *data;
    int mode;
    bool watch;
};

/* -- answers: in the library's thread --------------------------------------------------------- */

/* Takes the lock; the answer to be filled, or NULL. */
static lk_zk_answer *arrive(const void *data)
{
    const struct ticket *ticket = data;
    pthread_mutex_lock(&ticket->zk->lock);
    return ticket->pending ? ticket->pending->answer : NULL;
}

static void depart(const void *data, int code)
{
    struct ticket *ticket = (struct ticket *)data;
    if (ticket->pending) {
        ticket->pending->answer->code = code;
        ticket->pending->done = true;
        pthread_cond_signal(&ticket->pending->answered);
    }
    pthread_mutex_unlock(&ticket->zk->lock);
    free(ticket);
}

static void set_text(lk_zk_answer *answer, const char *text, size_t length)
{
    if (length >= sizeof answer->text)
        length = sizeof answer->text - 1;
    memcpy(answer->text, text, length);
    answer->text[length] = '\0';
}

static void on_created(int code, const char *path, const struct Stat *stat, const void *data)
{
    lk_zk_answer *answer = arrive(data);
    if (answer && code == ZOK) {
        set_text(answer, path, strlen(path));
        answer->stat = *stat;
    }
    depart(data, code);
}

static void on_data(int code, const char *value, int length, const struct Stat *stat,
                    const void *data)
{
    lk_zk_answer *answer = arrive(data);
    if (answer && code == ZOK) {
        set_text(answer, value ? value : "", length > 0 ? (size_t)length : 0);
        answer->stat = *stat;
    }
    depart(data, code);
}

/* Pointers and texts in one block. */
static char **copy_names(const struct String_vector *names)
{
    size_t n = (size_t)names->count, bytes = n * sizeof(char *);
    for (size_t i = 0; i < n; i++)
        bytes += strlen(names->data[i]) + 1;
    char **copy = malloc(bytes);
    if (!copy)
        return NULL;
    char *text = (char *)(copy + n);
    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(names->data[i]) + 1;
        copy[i] = memcpy(text, names->data[i], length);
        text += length;
    }
    return copy;
}

static void on_children(int code, const struct String_vector *names, const void *data)
{
    lk_zk_answer *answer = arrive(data);
    if (answer && code == ZOK && names->count > 0) {
        answer->names = copy_names(names);
        answer->n = answer->names ? (size_t)names->count : 0;
        code = answer->names ? ZOK : ZSYSTEMERROR;
    }
    depart(data, code);
}

static void on_text(int code, const char *text, const void *data)
{
    (void)text;
    arrive(data);
    depart(data, code);
}

static void on_done(int code, const void *data)
{
    arrive(data);
    depart(data, code);
}

/* -- asking ----------------------------------------------------------------------------------- */

static lk_status judge(int code)
{
    switch (code) {
    case ZOK:
    case ZNONODE:
    case ZNODEEXISTS:
    case ZNOTEMPTY:
        return LK_OK;
    case ZSESSIONEXPIRED:
    case ZAUTHFAILED:
        return LK_LOST;
    case ZNOAUTH: /* nothing was done */
        return LK_UNAVAILABLE;
    case ZCONNECTIONLOSS:
    case ZOPERATIONTIMEOUT:
    case ZCLOSING:
    case ZSESSIONMOVED:
    case ZINVALIDSTATE:
    case ZSYSTEMERROR: /* set by us: an answer came, and there was no memory for it */
        return LK_UNKNOWN;
    default:
        return LK_PROTOCOL;
    }
}

static const char *text_of(int code)
{
    return code == ZNOAUTH ? "access refused; give the login of its nodes, user:password, "
                             "in " LK_ZOOKEEPER_LOGIN
                           : zerror(code);
}

/* The lock is held. It queues the request and wakes the library's thread; it does not block. */
typedef int send_fn(struct lk_zk_connection *connection, const struct ask *ask,
                    struct ticket *ticket);

static lk_status run(const lk_zk_turn *turn, send_fn *send_it, const struct ask *ask,
                     lk_zk_answer *ret)
{
    lk_zk *zk = turn->zk;
    struct pending pending = {.answer = ret, .answered = PTHREAD_COND_INITIALIZER};
    struct ticket *ticket = malloc(sizeof *ticket);
    if (!ticket)
        return LK_NO_MEMORY;
    *ticket = (struct ticket){zk, &pending};
    ret->code = ZINVALIDSTATE;
    ret->names = NULL;
    ret->n = 0;
    pthread_mutex_lock(&zk->lock);
    lk_status status = LK_UNAVAILABLE;
    struct lk_zk_connection *connection = zk->connection;
    if (!connection || connection->ended || connection->epoch != turn->epoch)
        status = LK_LOST;
    else if (connection->connected && send_it(connection, ask, ticket) == ZOK)
        status = LK_OK;
    if (status == LK_OK) {
        atomic_fetch_add_explicit(zk->context->commands, 1, memory_order_relaxed);
        while (!pending.done && lk_wait_until(&pending.answered, &zk->lock, turn->until_us))
            continue;
        status = pending.done ? judge(ret->code) : LK_UNKNOWN;
        if (status != LK_OK)
            lk_zk_note(zk, status, pending.done ? text_of(ret->code) : "no answer in time");
        if (!pending.done)
            ticket->pending = NULL;
    } else {
        free(ticket);
    }
    pthread_mutex_unlock(&zk->lock);
    pthread_cond_destroy(&pending.answered);
    return status;
}

static int send_create(struct lk_zk_connection *connection, const struct ask *ask,
                       struct ticket *ticket)
{
    return zoo_acreate2(connection->handle, ask->path, ask->data, (int)strlen(ask->data),
                        connection->zk->access, ask->mode, on_created, ticket);
}

static int send_delete(struct lk_zk_connection *connection, const struct ask *ask,
                       struct ticket *ticket)
{
    return zoo_adelete(connection->handle, ask->path, -1, on_done, ticket);
}

/* Reads, because "exists" would leave a watch on the server for a node that is gone. */
static int send_get(struct lk_zk_connection *connection, const struct ask *ask,
                    struct ticket *ticket)
{
    return zoo_aget(connection->handle, ask->path, ask->watch, on_data, ticket);
}

static int send_children(struct lk_zk_connection *connection, const struct ask *ask,
                         struct ticket *ticket)
{
    return zoo_aget_children(connection->handle, ask->path, 0, on_children, ticket);
}

static int send_sync(struct lk_zk_connection *connection, const struct ask *ask,
                     struct ticket *ticket)
{
    return zoo_async(connection->handle, ask->path, on_text, ticket);
}

lk_status lk_zk_create(const lk_zk_turn *turn, const char *path, const char *data, int mode,
                       lk_zk_answer *ret)
{
    return run(turn, send_create, &(struct ask){.path = path, .data = data, .mode = mode}, ret);
}

lk_status lk_zk_delete(const lk_zk_turn *turn, const char *path, lk_zk_answer *ret)
{
    return run(turn, send_delete, &(struct ask){.path = path}, ret);
}

lk_status lk_zk_get(const lk_zk_turn *turn, const char *path, bool watch, lk_zk_answer *ret)
{
    return run(turn, send_get, &(struct ask){.path = path, .watch = watch}, ret);
}

lk_status lk_zk_children(const lk_zk_turn *turn, const char *path, lk_zk_answer *ret)
{
    return run(turn, send_children, &(struct ask){.path = path}, ret);
}

lk_status lk_zk_sync(const lk_zk_turn *turn, const char *path, lk_zk_answer *ret)
{
    return run(turn, send_sync, &(struct ask){.path = path}, ret);
}
