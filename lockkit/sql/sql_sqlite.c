/*
 * SQLite: one connection per client, which its threads take in turn.
 *
 * Rollback journal, never WAL: before 3.51.3 two connections that write to one WAL file at the same
 * instant can corrupt it, and a lock file is there for several processes to write to. The journal
 * is kept between transactions (PERSIST): no directory entry changes. synchronous=FULL: a power cut
 * ends the holders too, so the locks could be forgotten, but a fence that goes back would let a
 * write of theirs that is still on its way to another machine pass for a new one; and OFF may leave
 * a file that nobody can read.
 */
#include "monotonic.h"
#include "sql_conn.h"

#include <fcntl.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUSY_SLEEP_US_MIN = 20, BUSY_RANGE_US_MIN = 40, BUSY_RANGE_US_MAX = 1000 };

static const char scheme[] = "sqlite:";

/* A thread that waits for the connection, on its stack. */
struct turn {
    pthread_cond_t come;
    struct turn *next;
    bool is;
};

struct lite {
    const lk_context *context;
    const lk_sql_set *set;
    const char *path; /* in the context's endpoints */
    pthread_mutex_t mutex;
    struct turn *turns; /* in order of arrival */
    bool busy;          /* one thread is inside; all that follows is its */
    sqlite3 *handle;    /* NULL: to be opened */
    sqlite3_stmt *statements[LK_SQL_STATEMENTS_MAX];
    int64_t entered_us, deadline_us;
};

static int64_t now_us(const struct lite *lite)
{
    return lite->context->env->now_us(lite->context->env->ctx);
}

/* -- one statement ---------------------------------------------------------------------------- */

/* What a failed statement leaves: SQLite has rolled it back, unless the disk failed in the moment
 * of the commit. */
static lk_status status_of(int code)
{
    switch (code & 0xff) {
    case SQLITE_OK:
        return LK_OK;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_FULL:
    case SQLITE_CANTOPEN:
    case SQLITE_READONLY: /* also: the file was moved away */
    case SQLITE_PERM:
        return LK_UNAVAILABLE;
    case SQLITE_NOMEM:
        return LK_NO_MEMORY;
    case SQLITE_IOERR:
        return LK_UNKNOWN;
    default:
        return LK_PROTOCOL;
    }
}

static void bind(sqlite3_stmt *statement, const char *types, const lk_sql_arg *args)
{
    for (int i = 0; types[i] != '\0'; i++) {
        char name[] = {'$', (char)('1' + i), '\0'};
        int at = sqlite3_bind_parameter_index(statement, name);
        if (types[i] == 't')
            sqlite3_bind_text(statement, at, args[i].text, -1, SQLITE_STATIC);
        else
            sqlite3_bind_int64(statement, at, args[i].number);
    }
}

static int give_row(sqlite3_stmt *statement, lk_sql_each *each, void *arg)
{
    lk_sql_row row;
    int n = sqlite3_column_count(statement);
    for (int i = 0; i < LK_SQL_COLUMNS_MAX; i++) {
        const char *text = i < n ? (const char *)sqlite3_column_text(statement, i) : NULL;
        row.text[i] = text != NULL ? text : "";
        row.number[i] = i < n ? sqlite3_column_int64(statement, i) : 0;
    }
    return each(arg, &row);
}

/* Steps to the end, because the commit is there. */
static int step(struct lite *lite, int at, const lk_sql_arg *args, lk_sql_each *each, void *arg)
{
    sqlite3_stmt *statement = lite->statements[at];
    int code;
    bind(statement, lite->set->statements[at].types, args);
    while ((code = sqlite3_step(statement)) == SQLITE_ROW)
        if (each != NULL && give_row(statement, each, arg) != 0)
            each = NULL;
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return code == SQLITE_DONE ? SQLITE_OK : code;
}

/* SQLite's own handler sleeps 1, 2, 5, 10 ... ms, but another process needs less than one. So these
 * sleeps are short, random, and grow with the time waited. db/sqlite has the same rule: the two
 * libraries include nothing of each other. */
static int on_busy(void *arg, int calls)
{
    struct lite *lite = arg;
    const lk_env *env = lite->context->env;
    int64_t now = now_us(lite), range_us = (now - lite->entered_us) / 8;
    (void)calls;
    if (now >= lite->deadline_us)
        return 0;
    if (range_us < BUSY_RANGE_US_MIN)
        range_us = BUSY_RANGE_US_MIN;
    if (range_us > BUSY_RANGE_US_MAX)
        range_us = BUSY_RANGE_US_MAX;
    env->sleep_us(env->ctx,
                  BUSY_SLEEP_US_MIN + (int64_t)(env->random(env->ctx) % (uint64_t)range_us));
    return 1;
}

/* -- the file --------------------------------------------------------------------------------- */

static void shut(struct lite *lite)
{
    for (int i = 0; i < LK_SQL_STATEMENTS_MAX; i++) {
        sqlite3_finalize(lite->statements[i]);
        lite->statements[i] = NULL;
    }
    sqlite3_close(lite->handle);
    lite->handle = NULL;
}

static int note_wal(void *arg, int n, char **values, char **names)
{
    (void)n;
    (void)names;
    *(bool *)arg = strcmp(values[0], "wal") == 0;
    return 0;
}

static int prepare(struct lite *lite)
{
    int code = SQLITE_OK;
    for (int i = 0; i < lite->set->n && code == SQLITE_OK; i++) {
        const char *text = lite->set->statements[i].text[LK_SQL_SQLITE];
        if (text != NULL)
            code = sqlite3_prepare_v3(lite->handle, text, -1, SQLITE_PREPARE_PERSISTENT,
                                      &lite->statements[i], NULL);
    }
    return code;
}

/* SQLite would let everybody read a new file, with the tokens of the locks. */
static void create_private(const char *path)
{
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd >= 0)
        close(fd);
}

/* Returns a SQLite code; shut again if it is not SQLITE_OK. A WAL file is somebody's database, and
 * must not be touched by one more connection. */
static int set_up(struct lite *lite, lk_error *error)
{
    bool wal = false;
    create_private(lite->path);
    int code = sqlite3_open_v2(lite->path, &lite->handle,
                               SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX |
                                   SQLITE_OPEN_EXRESCODE,
                               NULL);
    if (code == SQLITE_OK) {
        sqlite3_busy_handler(lite->handle, on_busy, lite);
        code = sqlite3_exec(lite->handle, "PRAGMA journal_mode", note_wal, &wal, NULL);
    }
    if (wal) {
        lk_fail(error, LK_INVALID,
                "%.120s is a database in WAL mode; locks want a file of their own", lite->path);
        shut(lite);
        return SQLITE_NOTADB;
    }
    if (code == SQLITE_OK)
        code =
            sqlite3_exec(lite->handle, "PRAGMA journal_mode = PERSIST; PRAGMA synchronous = FULL",
                         NULL, NULL, NULL);
    if (code == SQLITE_OK)
        code = sqlite3_exec(lite->handle, lite->set->schema[LK_SQL_SQLITE], NULL, NULL, NULL);
    if (code == SQLITE_OK)
        code = prepare(lite);
    if (code == SQLITE_OK)
        return code;
    lk_fail(error, LK_INVALID, "%.120s: %.80s", lite->path,
            lite->handle != NULL ? sqlite3_errmsg(lite->handle) : sqlite3_errstr(code));
    shut(lite);
    return code;
}

/* -- the client's threads --------------------------------------------------------------------- */

/* With the mutex, in order of arrival. */
static bool await_turn(struct lite *lite, int64_t until_us)
{
    struct turn turn = {.come = PTHREAD_COND_INITIALIZER}, **at = &lite->turns;
    while (*at != NULL)
        at = &(*at)->next;
    *at = &turn;
    while (!turn.is && lk_wait_until(&turn.come, &lite->mutex, until_us))
        continue;
    if (!turn.is) {
        for (at = &lite->turns; *at != &turn; at = &(*at)->next)
            ;
        *at = turn.next;
    }
    pthread_cond_destroy(&turn.come);
    return turn.is;
}

/* False: it was not this thread's turn within the command timeout. */
static bool enter(struct lite *lite)
{
    int64_t timeout_us = lite->context->options->command_timeout_ms * 1000;
    int64_t until_us = lk_monotonic_us() + timeout_us;
    pthread_mutex_lock(&lite->mutex);
    bool entered = !lite->busy || await_turn(lite, until_us);
    lite->busy = true;
    pthread_mutex_unlock(&lite->mutex);
    if (entered) {
        lite->entered_us = now_us(lite);
        lite->deadline_us = lite->entered_us + timeout_us;
    }
    return entered;
}

static void leave(struct lite *lite)
{
    pthread_mutex_lock(&lite->mutex);
    struct turn *next = lite->turns;
    lite->busy = next != NULL;
    if (next != NULL) {
        lite->turns = next->next;
        next->is = true;
        pthread_cond_signal(&next->come);
    }
    pthread_mutex_unlock(&lite->mutex);
}

/* Returns a SQLite code. The next call after a failure finds out whether the file can be had again.
 */
static int run_inside(struct lite *lite, int statement, const lk_sql_arg *args, lk_sql_each *each,
                      void *arg)
{
    lk_error error;
    int code = lite->handle != NULL ? SQLITE_OK : set_up(lite, &error);
    if (code != SQLITE_OK) {
        lk_note(lite->context, status_of(code), "%s", error.message);
        return code;
    }
    atomic_fetch_add_explicit(lite->context->commands, 1, memory_order_relaxed);
    code = step(lite, statement, args, each, arg);
    if (code != SQLITE_OK)
        lk_note(lite->context, status_of(code), "%.200s: %.200s", lite->path,
                sqlite3_errmsg(lite->handle));
    if (code != SQLITE_OK && (code & 0xff) != SQLITE_BUSY)
        shut(lite);
    return code;
}

static lk_status run(void *self, int statement, const lk_sql_arg *args, lk_sql_each *each,
                     void *arg)
{
    struct lite *lite = self;
    if (!enter(lite))
        return lk_note(
            lite->context, LK_UNAVAILABLE,
            "%.200s: other threads of this client took too long; raise command_timeout_ms",
            lite->path);
    int code = run_inside(lite, statement, args, each, arg);
    leave(lite);
    return status_of(code);
}

static void close_file(void *self)
{
    struct lite *lite = self;
    shut(lite);
    pthread_mutex_destroy(&lite->mutex);
    free(lite);
}

static lk_status open_file(const lk_context *context, const char *address, const lk_sql_set *set,
                           void **ret_self, lk_error *error)
{
    const char *path = address + strlen(scheme);
    if (path[0] == '\0' || path[0] == ':')
        return lk_fail(error, LK_INVALID, "sqlite: wants a file's name: sqlite:FILE");
    struct lite *lite = calloc(1, sizeof *lite);
    if (lite == NULL)
        return lk_fail(error, LK_NO_MEMORY, "out of memory for a SQLite connection");
    pthread_mutex_init(&lite->mutex, NULL);
    lite->context = context;
    lite->set = set;
    lite->path = path;
    lite->entered_us = now_us(lite);
    lite->deadline_us = lite->entered_us + context->options->command_timeout_ms * 1000;
    int code = set_up(lite, error);
    if (code == SQLITE_OK || (code & 0xff) == SQLITE_BUSY) { /* the first acquire reports BUSY */
        *ret_self = lite;
        return LK_OK;
    }
    close_file(lite);
    return LK_INVALID;
}

static const char *const schemes[] = {scheme, NULL};

/* A statement is done, or undone, when its call returns. */
static lk_status settle(void *self, int statement)
{
    (void)self;
    (void)statement;
    return LK_OK;
}

const struct lk_sql_backend lk_sqlite_backend = {
    .schemes = schemes,
    .open = open_file,
    .close = close_file,
    .run = run,
    .settle = settle,
};
