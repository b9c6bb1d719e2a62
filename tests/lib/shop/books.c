#include "books.h"

#include <errno.h>
#include <libpq-fe.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <fcntl.h>
#include <unistd.h>

enum { PATH_BYTES = 512, SQL_BYTES = 8192 };

static const struct {
    const char *name;
    const char *broken; /* counts what breaks it */
} rules[] = {
    {"a stock is its first value and what its ledger adds",
     "SELECT count(*) FROM items i WHERE stock <> initial_stock + (SELECT coalesce(sum(delta), 0)"
     " FROM ledger WHERE resource = 'item:' || i.id AND epoch = i.epoch AND kind <> 'reset')"},
    {"a balance is its first value and what its ledger adds",
     "SELECT count(*) FROM accounts a WHERE balance <> initial_balance + (SELECT"
     " coalesce(sum(delta), 0) FROM ledger WHERE resource = 'account:' || a.id"
     " AND epoch = a.epoch AND kind <> 'reset')"},
    {"a stock has what stock changes have added, and lacks what live orders have",
     "SELECT count(*) FROM items i WHERE stock <> initial_stock + (SELECT coalesce(sum(delta), 0)"
     " FROM ledger WHERE resource = 'item:' || i.id AND epoch = i.epoch AND kind = 'restock')"
     " - (SELECT coalesce(sum(quantity),"
     " 0) FROM orders WHERE item_id = i.id AND item_epoch = i.epoch AND state <= 1)"},
    {"no two rows of the ledger continue the same version",
     "SELECT count(*) FROM (SELECT 1 FROM ledger WHERE resource NOT LIKE 'shop:%' GROUP BY "
     "resource, epoch, version_before"
     " HAVING count(*) > 1) forks"},
    {"a row of the ledger adds up", "SELECT count(*) FROM ledger WHERE after <> before + delta"},
    {"the legs of a movement of money sum to zero",
     "SELECT count(*) FROM (SELECT 1 FROM ledger WHERE resource NOT LIKE 'item:%' GROUP BY txn_id"
     " HAVING count(*) <> 2 OR sum(delta) <> 0) odd"},
    {"one key has one effect, and one answer",
     "SELECT count(*) FROM idempotency a FULL JOIN (SELECT txn_id, count(*) AS n FROM ledger"
     " WHERE kind <> 'reset' AND resource NOT LIKE 'shop:%' GROUP BY txn_id) t ON t.txn_id = a.key "
     "WHERE a.key IS NULL OR t.n IS NULL"
     " OR t.n <> CASE WHEN a.key LIKE 'transfer%' THEN 2 ELSE 1 END"},
    {"an order has an answer",
     "SELECT abs((SELECT count(*) FROM orders) - (SELECT count(*) FROM idempotency"
     " WHERE key LIKE 'order%'))"},
    {"a paid order has a payment",
     "SELECT abs((SELECT count(*) FROM orders WHERE state = 1) - (SELECT count(*)"
     " FROM idempotency WHERE key LIKE 'payment%'))"},
    {"a cancelled order has a cancellation",
     "SELECT abs((SELECT count(*) FROM orders WHERE state = 2) - (SELECT count(*)"
     " FROM idempotency WHERE key LIKE 'cancellation%'))"},
};
enum { RULES = sizeof rules / sizeof rules[0] };

static bool copy_file(const char *from, const char *to)
{
    struct stat info;
    unlink(to);
    int in = open(from, O_RDONLY | O_CLOEXEC);
    if (in < 0)
        return errno == ENOENT; /* there is none of the kind */
    int out = open(to, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    bool copied = out >= 0 && fstat(in, &info) == 0;
    for (off_t left = copied ? info.st_size : 0; left > 0 && copied;) {
        ssize_t n = sendfile(out, in, NULL, (size_t)left);
        copied = n > 0;
        left -= n;
    }
    close(in);
    if (out >= 0)
        close(out);
    return copied;
}

/* With its log, or the journal that undoes what was not committed. */
static bool copy_store(const struct books *books, char *ret_file, size_t size)
{
    static const char *const ends[] = {"", "-wal", "-journal"};
    char from[PATH_BYTES], to[PATH_BYTES + 16];
    bool copied = true;
    snprintf(ret_file, size, "%s/books.db", books->folder);
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        snprintf(from, sizeof from, "%s%s", books->url + strlen("sqlite:"), ends[i]);
        snprintf(to, sizeof to, "%s%s", ret_file, ends[i]);
        copied = copied && copy_file(from, to);
    }
    return copied;
}

/* Fills ret with the n columns of the statement's first row. */
static bool ask_sqlite(const struct books *books, const char *sql, int64_t *ret, int n)
{
    char file[PATH_BYTES];
    sqlite3 *handle = NULL;
    sqlite3_stmt *statement = NULL;
    bool done = copy_store(books, file, sizeof file) && sqlite3_open(file, &handle) == SQLITE_OK &&
                sqlite3_prepare_v2(handle, sql, -1, &statement, NULL) == SQLITE_OK &&
                sqlite3_step(statement) == SQLITE_ROW;
    if (!done)
        fprintf(stderr, "%s: %s\n", sql, handle != NULL ? sqlite3_errmsg(handle) : "no copy");
    for (int i = 0; done && i < n; i++)
        ret[i] = sqlite3_column_int64(statement, i);
    sqlite3_finalize(statement);
    sqlite3_close(handle);
    return done;
}

static bool ask_postgres(const struct books *books, const char *sql, int64_t *ret, int n)
{
    PGconn *handle = PQconnectdb(books->url);
    PGresult *result = PQexec(handle, sql);
    bool done = PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) > 0;
    if (!done)
        fprintf(stderr, "%s: %s\n", sql, PQerrorMessage(handle));
    for (int i = 0; done && i < n; i++)
        ret[i] = strtoll(PQgetvalue(result, 0, i), NULL, 10);
    PQclear(result);
    PQfinish(handle);
    return done;
}

static bool ask(const struct books *books, const char *sql, int64_t *ret, int n)
{
    bool embedded = strncmp(books->url, "sqlite:", strlen("sqlite:")) == 0;
    return embedded ? ask_sqlite(books, sql, ret, n) : ask_postgres(books, sql, ret, n);
}

int64_t books_number(const struct books *books, const char *sql)
{
    int64_t number;
    return ask(books, sql, &number, 1) ? number : INT64_MIN;
}

/* One statement, so that all rules see one state of the store. */
bool books_agree(const struct books *books)
{
    char sql[SQL_BYTES];
    int64_t broken[RULES];
    size_t length = 0;
    bool agree = true;
    for (int i = 0; i < RULES; i++)
        length += (size_t)snprintf(sql + length, sizeof sql - length, "%s(%s)",
                                   i == 0 ? "SELECT " : ", ", rules[i].broken);
    if (length >= sizeof sql || !ask(books, sql, broken, RULES))
        return false;
    for (int i = 0; i < RULES; i++) {
        if (broken[i] != 0)
            fprintf(stderr, "broken %lld times: %s\n", (long long)broken[i], rules[i].name);
        agree = agree && broken[i] == 0;
    }
    return agree;
}

bool books_have_answer(const struct books *books, const char *key, const char *body)
{
    char sql[SQL_BYTES];
    int length = snprintf(sql, sizeof sql,
                          "SELECT count(*) FROM idempotency WHERE key = '%s' AND body = '%.*s'",
                          key, (int)strcspn(body, "\n"), body);
    return length < (int)sizeof sql && books_number(books, sql) == 1;
}
