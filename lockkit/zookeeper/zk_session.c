#include "zk_session.h"

#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

lk_status lk_zk_note(const lk_zk *zk, lk_status status, const char *what)
{
    return lk_note(zk->context, status, "ZooKeeper at %.300s: %.100s", zk->context->endpoints,
                   what);
}

/* -- waiters: the lock is held ---------------------------------------------------------------- */

/* path NULL: all. */
static void fire(lk_zk *zk, const char *path)
{
    for (lk_zk_waiter *waiter = zk->waiters; waiter; waiter = waiter->next) {
        if (path && strcmp(waiter->path, path) != 0)
            continue;
        waiter->fired = true;
        pthread_cond_signal(&waiter->woken);
    }
}

void lk_zk_enter(lk_zk *zk, lk_zk_waiter *waiter, const char *path)
{
    memcpy(waiter->path, path, strlen(path) + 1);
    waiter->fired = false;
    waiter->prev = NULL;
    pthread_cond_init(&waiter->woken, NULL);
    pthread_mutex_lock(&zk->lock);
    waiter->next = zk->waiters;
    if (waiter->next)
        waiter->next->prev = waiter;
    zk->waiters = waiter;
    pthread_mutex_unlock(&zk->lock);
}

void lk_zk_leave(lk_zk *zk, lk_zk_waiter *waiter)
{
    pthread_mutex_lock(&zk->lock);
    *(waiter->prev ? &waiter->prev->next : &zk->waiters) = waiter->next;
    if (waiter->next)
        waiter->next->prev = waiter->prev;
    pthread_mutex_unlock(&zk->lock);
    pthread_cond_destroy(&waiter->woken);
}

bool lk_zk_sleep(lk_zk *zk, lk_zk_waiter *waiter, int64_t left_us)
{
    int64_t until_us = lk_monotonic_us() + (left_us > 0 ? left_us : 0);
    pthread_mutex_lock(&zk->lock);
    while (!waiter->fired && lk_wait_until(&waiter->woken, &zk->lock, until_us))
        continue;
    bool fired = waiter->fired;
    waiter->fired = false;
    pthread_mutex_unlock(&zk->lock);
    return fired;
}

/* -- one session ------------------------------------------------------------------------------ */

/* The lock is held. lk_session_ended() is to be called without it. */
static void end_connection(struct lk_zk_connection *connection)
{
    uint32_t epoch = connection->epoch;
    connection->ended = true;
    connection->connected = false;
    atomic_compare_exchange_strong(&connection->zk->epoch, &epoch, 0);
    fire(connection->zk, NULL);
}

/* Of the session, and of every watch that we set; in the library's thread. */
static void on_event(zhandle_t *handle, int type, int state, const char *path, void *context)
{
    struct lk_zk_connection *connection = context;
    lk_zk *zk = connection->zk;
    bool ended = false;
    pthread_mutex_lock(&zk->lock);
    if (type != ZOO_SESSION_EVENT) {
        fire(zk, path);
    } else if (!connection->ended) {
        bool was_connected = connection->connected;
        connection->connected = state == ZOO_CONNECTED_STATE;
        if (connection->connected)
            connection->session_ms = zoo_recv_timeout(handle);
        else if (was_connected)
            connection->away_since_us = lk_monotonic_us();
        ended = state == ZOO_EXPIRED_SESSION_STATE || state == ZOO_AUTH_FAILED_STATE;
        if (ended) {
            bool expired = state == ZOO_EXPIRED_SESSION_STATE;
            lk_zk_note(zk, LK_LOST, zerror(expired ? ZSESSIONEXPIRED : ZAUTHFAILED));
            end_connection(connection);
        }
        pthread_cond_broadcast(&zk->changed);
    }
    pthread_mutex_unlock(&zk->lock);
    if (ended)
        lk_session_ended(zk->context);
}

/* The library's messages would go to stderr. Errors arrive as a status. */
static void ignore_log(const char *message)
{
    (void)message;
}

/* Before the first request of the session: the library sends it first when it connects. */
static bool log_in(const lk_zk *zk, zhandle_t *handle)
{
    return zk->login[0] == '\0' ||
           zoo_add_auth(handle, "digest", zk->login, (int)strlen(zk->login), NULL, NULL) == ZOK;
}

/* Without the lock: resolves host names. NULL: no memory, or no such host. */
static struct lk_zk_connection *open_connection(lk_zk *zk, uint32_t epoch)
{
    struct lk_zk_connection *connection = calloc(1, sizeof *connection);
    if (!connection)
        return NULL;
    int64_t session_ms = zk->context->options->lease_ms;
    if (session_ms < LK_ZK_SESSION_MS_MIN)
        session_ms = LK_ZK_SESSION_MS_MIN;
    *connection = (struct lk_zk_connection){
        .zk = zk, .epoch = epoch, .session_ms = session_ms, .away_since_us = lk_monotonic_us()};
    sigset_t all, before; /* the program's signals are for the program's threads */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    zhandle_t *handle = zookeeper_init2(zk->context->endpoints, on_event, (int)session_ms, NULL,
                                        connection, ZOO_NO_LOG_CLIENTENV, ignore_log);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!handle) {
        lk_zk_note(zk, LK_UNAVAILABLE, errno == ENOENT ? "no such host" : strerror(errno));
        free(connection);
        return NULL;
    }
    if (!log_in(zk, handle)) {
        lk_zk_note(zk, LK_UNAVAILABLE, "out of memory for the login");
        zookeeper_close(handle);
        free(connection);
        return NULL;
    }
    /* Names are looked up again at each reconnection, but not, as is the default, at each turn of
     * the library's loop. */
    zoo_set_servers_resolution_delay(handle, -1);
    pthread_mutex_lock(&zk->lock);
    connection->handle = handle;
    pthread_mutex_unlock(&zk->lock);
    return connection;
}

/* Without the lock, and not from the library's threads, because it joins them. Requests of this
 * session that still wait get ZCLOSING. */
static void close_connection(struct lk_zk_connection *connection)
{
    if (!connection)
        return;
    zookeeper_close(connection->handle);
    free(connection);
}

/* The lock is held on entry and on return, not meanwhile. */
static lk_status reopen(lk_zk *zk)
{
    struct lk_zk_connection *old = zk->connection;
    uint32_t epoch = ++zk->last_epoch;
    zk->connection = NULL;
    zk->opening = true;
    pthread_mutex_unlock(&zk->lock);
    close_connection(old);
    struct lk_zk_connection *connection = open_connection(zk, epoch);
    pthread_mutex_lock(&zk->lock);
    zk->opening = false;
    zk->connection = connection;
    if (connection && !connection->ended)
        atomic_store(&zk->epoch, epoch);
    pthread_cond_broadcast(&zk->changed);
    return connection ? LK_OK : LK_UNAVAILABLE;
}

void lk_zk_abandon(lk_zk *zk, uint32_t epoch)
{
    pthread_mutex_lock(&zk->lock);
    struct lk_zk_connection *connection = zk->connection;
    bool ours = connection && connection->epoch == epoch;
    if (ours) {
        zk->connection = NULL;
        end_connection(connection);
        pthread_cond_broadcast(&zk->changed);
    }
    pthread_mutex_unlock(&zk->lock);
    if (!ours)
        return;
    lk_session_ended(zk->context);
    close_connection(connection);
}

/* -- turns ------------------------------------------------------------------------------------ */

static int64_t timeout_us(const lk_zk *zk)
{
    return zk->context->options->command_timeout_ms * 1000;
}

/* epoch 0: whatever session there is, or a new one. The lock is held. */
static lk_status connect_to(lk_zk *zk, uint32_t epoch, int64_t until_us)
{
    for (;;) {
        struct lk_zk_connection *connection = zk->connection;
        if (epoch != 0 && atomic_load(&zk->epoch) != epoch)
            return LK_LOST;
        if (connection && connection->connected)
            return LK_OK;
        int64_t bound_us = until_us;
        if (!zk->opening && (!connection || connection->ended)) {
            if (lk_monotonic_us() >= until_us || reopen(zk) != LK_OK)
                return LK_UNAVAILABLE;
            continue;
        }
        if (connection && connection->away_since_us + timeout_us(zk) < bound_us)
            bound_us = connection->away_since_us + timeout_us(zk);
        if (!lk_wait_until(&zk->changed, &zk->lock, bound_us) &&
            !(zk->connection && zk->connection->connected))
            return lk_zk_note(zk, LK_UNAVAILABLE, "none of these answers in time");
    }
}

static lk_status take_turn(lk_zk *zk, uint32_t epoch, lk_zk_turn *ret)
{
    pthread_mutex_lock(&zk->lock);
    lk_status status = connect_to(zk, epoch, lk_monotonic_us() + timeout_us(zk));
    if (status == LK_OK)
        *ret = (lk_zk_turn){.zk = zk,
                            .epoch = zk->connection->epoch,
                            .session_ms = zk->connection->session_ms,
                            .until_us = lk_monotonic_us() + timeout_us(zk)};
    pthread_mutex_unlock(&zk->lock);
    return status;
}

lk_status lk_zk_begin(lk_zk *zk, lk_zk_turn *ret)
{
    return take_turn(zk, 0, ret);
}

lk_status lk_zk_resume(lk_zk *zk, uint32_t epoch, lk_zk_turn *ret)
{
    return epoch == 0 ? LK_LOST : take_turn(zk, epoch, ret);
}

/* -- opening and closing ---------------------------------------------------------------------- */

/* "host:port[,host:port...][/folder]": one colon and a port in each, no blanks. */
static bool hosts_valid(const char *hosts)
{
    for (const char *host = hosts;; host++) {
        size_t length = strcspn(host, ",/");
        const char *colon = memchr(host, ':', length);
        if (!colon || colon == host)
            return false;
        char *end;
        long port = isdigit((unsigned char)colon[1]) ? strtol(colon + 1, &end, 10) : 0;
        if (port < 1 || port > 65535 || end != host + length)
            return false;
        host += length;
        if (*host != ',')
            return host[strcspn(host, " \t\r\n")] == '\0' && (*host == '\0' || host[1] != '\0');
    }
}

/* LK_OK, LK_INVALID. */
static lk_status read_login(lk_zk *zk, lk_error *error)
{
    lk_login login;
    const char *wrong = lk_login_read(LK_ZOOKEEPER_LOGIN, &login);
    if (!wrong && login.password[0] != '\0' && login.user[0] == '\0')
        wrong = "has no user, which ZooKeeper wants";
    if (wrong)
        return lk_fail(error, LK_INVALID,
                       "the environment variable %s %s: give \"user:password\", of at most %d "
                       "bytes each",
                       LK_ZOOKEEPER_LOGIN, wrong, LK_LOGIN_MAX);
    bool given = login.password[0] != '\0';
    if (given)
        snprintf(zk->login, sizeof zk->login, "%s:%s", login.user, login.password);
    zk->access = given ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
    return LK_OK;
}

lk_status lk_zk_open(const lk_context *context, lk_zk **ret, lk_error *error)
{
    if (!context->endpoints || !hosts_valid(context->endpoints))
        return lk_fail(
            error, LK_INVALID,
            "\"%.100s\" is no ZooKeeper endpoint; give host:port[,host:port...][/folder]",
            context->endpoints ? context->endpoints : "");
    lk_zk *zk = calloc(1, sizeof *zk);
    if (!zk)
        return lk_fail(error, LK_NO_MEMORY, "out of memory for a ZooKeeper guard");
    lk_status status = read_login(zk, error);
    if (status != LK_OK) {
        free(zk);
        return status;
    }
    zk->context = context;
    pthread_mutex_init(&zk->lock, NULL);
    pthread_cond_init(&zk->changed, NULL);
    *ret = zk;
    return LK_OK;
}

void lk_zk_close(lk_zk *zk)
{
    lk_zk_stop_janitor(zk);
    close_connection(zk->connection);
    pthread_cond_destroy(&zk->changed);
    pthread_mutex_destroy(&zk->lock);
    free(zk);
}
