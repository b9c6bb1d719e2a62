/*
 * Takes the text of a statement apart, into statements of SQLite on versions of rows. It knows the
 * forms that db/postgres and lockkit use, and aborts at others. ?90 and ?91 are a row and a version
 * of ours.
 */
#include "sim_pg_model.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SQL_MAX = 8192, STATEMENTS_MAX = 256, NAMES_MAX = 40 };

static struct pg_sql *statements[STATEMENTS_MAX];

static void unknown(const char *text)
{
    fprintf(stderr, "the model of PostgreSQL does not know this statement: %s\n", text);
    abort();
}

/* -- words ------------------------------------------------------------------------------------- */

static void replace_all(char *text, const char *from, const char *to)
{
    char copy[SQL_MAX];
    for (char *at = text; (at = strstr(at, from)) != NULL; at += strlen(to)) {
        snprintf(copy, sizeof copy, "%s", at + strlen(from));
        int left = (int)(SQL_MAX - (at - text));
        if (snprintf(at, (size_t)left, "%s%s", to, copy) >= left)
            unknown(text);
    }
}

/* "unnest(?1, ?2) WITH ORDINALITY AS asked (k, n)" becomes "(SELECT c1 AS k, n FROM asked)". */
static bool unnest(char *text)
{
    char copy[SQL_MAX], columns[128] = "", *end;
    char *from = strstr(text, "unnest("), *names = strstr(text, ") WITH ORDINALITY AS asked (");
    if (!from || !names)
        return false;
    snprintf(copy, sizeof copy, "%s", names + strlen(") WITH ORDINALITY AS asked ("));
    end = strchr(copy, ')');
    *end++ = '\0';
    int n = 0;
    char *rest = NULL;
    for (char *name = strtok_r(copy, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest)) {
        size_t used = strlen(columns);
        if (strcmp(name, "n") != 0)
            snprintf(columns + used, sizeof columns - used, "c%d AS %s, ", ++n, name);
    }
    char tail[SQL_MAX];
    snprintf(tail, sizeof tail, "%s", end);
    snprintf(from, (size_t)(SQL_MAX - (from - text)), "(SELECT %sn FROM asked)%s", columns, tail);
    return true;
}

/* In SQLite's words. */
static void translate(const char *text, char ret[SQL_MAX])
{
    char *out = ret;
    replace_all(strcpy(ret, text), "(extract(epoch FROM backend_start) * 1000000)",
                "backend_start_us");
    replace_all(ret, "(extract(epoch FROM clock_timestamp()) * 1000000)", "clock_us()");
    replace_all(ret, "(extract(epoch FROM clock_timestamp()) * 1000)", "clock_ms()");
    replace_all(ret, "lockkit.locks", "lockkit_locks");
    replace_all(ret, "lockkit.rows", "lockkit_rows");
    replace_all(ret, "greatest(", "max(");
    replace_all(ret, "least(", "min(");
    replace_all(ret, " = ANY (ARRAY(", " IN (SELECT * FROM (");
    for (const char *in = ret; *in;) {
        if (in[0] == ':' && in[1] == ':') { /* a type */
            in += 2;
            while (isalnum((unsigned char)*in))
                in++;
        } else {
            *out++ = *in == '$' && isdigit((unsigned char)in[1]) ? '?' : *in;
            in++;
        }
    }
    *out = '\0';
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* Ends the text at the first such word, and gives what follows. NULL: not there. */
static char *cut_at(char *text, const char *word)
{
    char *at = strstr(text, word);
    if (!at)
        return NULL;
    *at = '\0';
    return at + strlen(word);
}

/* Splits at the commas outside of parentheses. */
static int split(char *list, char *ret[NAMES_MAX])
{
    int n = 0, depth = 0;
    ret[n++] = list;
    for (char *at = list; *at; at++) {
        depth += *at == '(' ? 1 : *at == ')' ? -1 : 0;
        if (*at == ',' && depth == 0) {
            *at = '\0';
            assert(n < NAMES_MAX);
            ret[n++] = at + 1 + strspn(at + 1, " ");
        }
    }
    return n;
}

/* -- statements of SQLite ---------------------------------------------------------------------- */

static sqlite3_stmt *prepare(const char *format, ...) __attribute__((format(printf, 1, 2)));
static sqlite3_stmt *prepare(const char *format, ...)
{
    char sql[2 * SQL_MAX];
    sqlite3_stmt *ret = NULL;
    va_list args;
    va_start(args, format);
    vsnprintf(sql, sizeof sql, format, args);
    va_end(args);
    if (sqlite3_prepare_v3(pg_rows(), sql, -1, SQLITE_PREPARE_PERSISTENT, &ret, NULL) !=
        SQLITE_OK) {
        fprintf(stderr, "%s\n", sqlite3_errmsg(pg_rows()));
        unknown(sql);
    }
    return ret;
}

/* The table's columns, without ours. */
static int columns_of(const char *table, char ret[NAMES_MAX][32])
{
    sqlite3_stmt *statement = prepare("SELECT name FROM pragma_table_info('%s_v') WHERE name NOT IN"
                                      " ('row', 'vid', 'xmin', 'xmax') ORDER BY cid",
                                      table);
    int n = 0;
    while (sqlite3_step(statement) == SQLITE_ROW)
        snprintf(ret[n++], 32, "%s", (const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    return n;
}

/* "a = x, b = y" of a table: a new version of the row ?90, if it is there and qualifies. */
static sqlite3_stmt *prepare_new_version(const struct pg_sql *sql, char *sets, const char *from,
                                         const char *alias, const char *where)
{
    char names[NAMES_MAX][32], list[SQL_MAX] = "", values[SQL_MAX] = "";
    char *parts[NAMES_MAX];
    int n = columns_of(sql->table, names), n_parts = split(sets, parts);
    for (int i = 0; i < n; i++) {
        size_t name_n = strlen(names[i]), used = strlen(list), used_values = strlen(values);
        const char *value = NULL;
        for (int j = 0; j < n_parts; j++)
            if (begins(parts[j], names[i]) && begins(parts[j] + name_n, " = "))
                value = parts[j] + name_n + 3;
        snprintf(list + used, sizeof list - used, "%s, ", names[i]);
        if (value)
            snprintf(values + used_values, sizeof values - used_values, "%s, ", value);
        else
            snprintf(values + used_values, sizeof values - used_values, "%s.%s, ", alias, names[i]);
    }
    return prepare("INSERT INTO %s_v (%srow, xmin) SELECT %s?90, own_xid() FROM %s"
                   " WHERE (%s) AND %s.row = ?90",
                   sql->table, list, values, from, where, alias);
}

static void take_versions(struct pg_sql *sql)
{
    sql->live = prepare("SELECT vid FROM %s WHERE row = ?90", sql->table);
    sql->end = prepare("UPDATE %s_v SET xmax = own_xid() WHERE vid = ?91", sql->table);
}

static void take_returning(struct pg_sql *sql, const char *columns)
{
    take_versions(sql);
    sql->returns = columns != NULL;
    if (columns)
        sql->result = prepare("SELECT %s FROM %s_v WHERE vid = ?91", columns, sql->table);
}

/* UPDATE table SET sets WHERE where [RETURNING columns] */
static void take_update(struct pg_sql *sql, char *text)
{
    char *returning = cut_at(text, " RETURNING ");
    char *where = cut_at(text, " WHERE "), *sets = cut_at(text, " SET ");
    if (!where || !sets)
        unknown(sql->text);
    sql->kind = PG_UPDATE;
    sql->lock = begins(sets, "id = ") ? PG_FOR_UPDATE : PG_NO_KEY_UPDATE;
    sscanf(text, "UPDATE %31s", sql->table);
    sql->find = prepare("SELECT vid, row FROM %s WHERE %s", sql->table, where);
    sql->write = prepare_new_version(sql, sets, sql->table, sql->table, where);
    take_returning(sql, returning);
}

/* DELETE FROM table WHERE where [RETURNING columns] */
static void take_delete(struct pg_sql *sql, char *text)
{
    char *returning = cut_at(text, " RETURNING ");
    char *where = cut_at(text, " WHERE ");
    if (!where)
        unknown(sql->text);
    sql->kind = PG_DELETE;
    sql->lock = PG_FOR_UPDATE;
    sscanf(text, "DELETE FROM %31s", sql->table);
    sql->find = prepare("SELECT vid, row FROM %s WHERE %s", sql->table, where);
    sql->again = prepare("SELECT vid FROM %s WHERE (%s) AND row = ?90", sql->table, where);
    take_returning(sql, returning);
}

/* INSERT INTO table [AS alias] (columns) VALUES (values) [ON CONFLICT DO NOTHING | ON CONFLICT
 * (key) DO UPDATE SET sets [WHERE where]] [RETURNING columns]; or SELECT * FROM unnest(values) */
static void take_insert(struct pg_sql *sql, char *text)
{
    char *returning = cut_at(text, " RETURNING "), *sets = cut_at(text, " DO UPDATE SET ");
    char *where = sets ? cut_at(sets, " WHERE ") : NULL;
    char *conflict = cut_at(text, " ON CONFLICT");
    char *many = cut_at(text, ") SELECT * FROM unnest("), *one = cut_at(text, ") VALUES (");
    char *values = many ? many : one, *columns = cut_at(text, " (");
    if (!values || !columns)
        unknown(sql->text);
    values[strlen(values) - 1] = '\0';
    char *alias = cut_at(text, " AS ");
    sql->kind = PG_INSERT;
    sql->of_many = many != NULL;
    sscanf(text, "INSERT INTO %31s", sql->table);
    sql->keyed = strcmp(sql->table, "ledger") != 0;
    sql->do_nothing = conflict && !sets;
    sql->insert =
        prepare("INSERT INTO %s_v (%s%s, row, xmin) VALUES (%s%s, ?90, own_xid())", sql->table,
                columns, sql->keyed ? "" : ", id", values, sql->keyed ? "" : ", ?90");
    char excluded[SQL_MAX] = "", from[SQL_MAX], columns_copy[SQL_MAX], values_copy[SQL_MAX];
    char *names[NAMES_MAX], *each[NAMES_MAX];
    int n = split(strcpy(columns_copy, columns), names);
    if (split(strcpy(values_copy, values), each) != n)
        unknown(sql->text);
    if (sql->keyed)
        sql->find = prepare("SELECT vid, row, xmin FROM %s_v WHERE %s = %s AND NOT seen(xmax)"
                            " AND NOT aborted(xmin)",
                            sql->table, names[0], each[0]);
    take_returning(sql, returning);
    if (!sets)
        return;
    for (int i = 0; i < n; i++) {
        size_t used = strlen(excluded);
        snprintf(excluded + used, sizeof excluded - used, "%s%s AS %s", i ? ", " : "", each[i],
                 names[i]);
    }
    if (!alias)
        alias = sql->table;
    int length = snprintf(from, sizeof from, "%s AS %s, (SELECT %s) AS excluded", sql->table, alias,
                          excluded);
    if (length >= (int)sizeof from)
        unknown(sql->text);
    sql->do_update = true;
    sql->lock = strstr(sets, "id = excluded.id") ? PG_FOR_UPDATE : PG_NO_KEY_UPDATE;
    sql->write = prepare_new_version(sql, sets, from, alias, where ? where : "1");
}

static bool take_lock(struct pg_sql *sql, char *text)
{
    static const struct {
        const char *words;
        enum pg_lock lock;
    } modes[] = {{" FOR NO KEY UPDATE", PG_NO_KEY_UPDATE},
                 {" FOR UPDATE", PG_FOR_UPDATE},
                 {" FOR KEY SHARE", PG_KEY_SHARE}};
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++)
        if (cut_at(text, modes[i].words)) {
            sql->lock = modes[i].lock;
            return true;
        }
    return false;
}

static void take_select(struct pg_sql *sql, char *text)
{
    sql->kind = take_lock(sql, text) ? PG_LOCK : PG_SELECT;
    sql->unnests = unnest(text);
    sql->read = prepare("%s", text);
    if (sql->kind == PG_SELECT)
        return;
    char *from = strstr(text, " FROM ");
    sscanf(from, " FROM %31s", sql->table);
    sql->find = prepare("SELECT vid, row%s", from);
    take_versions(sql);
}

/* WITH free AS (SELECT key FROM table WHERE where FOR UPDATE SKIP LOCKED), taken AS (UPDATE table
 * AS l SET sets FROM free WHERE l.key = free.key RETURNING fence), made AS (INSERT INTO table (...)
 * SELECT values WHERE NOT EXISTS (...) ON CONFLICT (key) DO NOTHING RETURNING fence) SELECT ... */
static void take_lock_row(struct pg_sql *sql, char *text)
{
    char insert[SQL_MAX];
    char *made = cut_at(text, "made AS (  "), *sets = cut_at(text, " SET ");
    char *where = cut_at(text, " WHERE "), *values = made ? cut_at(made, " SELECT ") : NULL;
    if (!sets || !where || !values || !cut_at(where, " FOR UPDATE SKIP LOCKED") ||
        !cut_at(sets, "  FROM free WHERE l.key = free.key RETURNING fence") ||
        !cut_at(values, "  WHERE NOT EXISTS (SELECT 1 FROM lockkit_locks WHERE key = ?1)"))
        unknown(sql->text);
    sql->kind = PG_TAKE;
    sql->lock = PG_FOR_UPDATE;
    strcpy(sql->table, "lockkit_locks");
    sql->find = prepare("SELECT vid, row FROM %s WHERE %s", sql->table, where);
    sql->write = prepare_new_version(sql, sets, sql->table, sql->table, where);
    sql->read = prepare("SELECT 1 FROM %s WHERE key = ?1", sql->table);
    take_returning(sql, "fence");
    snprintf(insert, sizeof insert, "%s VALUES (%s) ON CONFLICT (key) DO NOTHING RETURNING fence",
             made, values);
    sql->made = pg_sql(insert);
}

/* WITH standing AS (SELECT key, token FROM table WHERE key = $1 FOR UPDATE) UPDATE table AS l SET
 * token = NULL FROM standing WHERE l.key = standing.key AND standing.token = $2 RETURNING what */
static void take_release(struct pg_sql *sql, char *text)
{
    char *returning = cut_at(text, " RETURNING ");
    if (!returning || !strstr(text, "WHERE key = ?1 FOR UPDATE) UPDATE lockkit_locks AS l SET token"
                                    " = NULL FROM standing WHERE l.key = standing.key AND"
                                    " standing.token = ?2"))
        unknown(sql->text);
    char sets[] = "token = NULL";
    sql->kind = PG_UPDATE;
    sql->lock = PG_FOR_UPDATE;
    strcpy(sql->table, "lockkit_locks");
    sql->find = prepare("SELECT vid, row FROM %s WHERE key = ?1", sql->table);
    sql->write = prepare_new_version(sql, sets, sql->table, sql->table, "token = ?2");
    take_returning(sql, returning);
}

/* lockkit's. False: it is none of them. */
static bool take_lockkits(struct pg_sql *sql, char *text)
{
    if (begins(text, "WITH free AS ("))
        take_lock_row(sql, text);
    else if (begins(text, "WITH standing AS ("))
        take_release(sql, text);
    else if (begins(text, "SELECT pg_advisory_lock(") ||
             begins(text, "SELECT pg_advisory_xact_lock(hash"))
        sql->kind = PG_ADVISORY;
    else if (begins(text, "SELECT pg_terminate_backend(pid, ?3)"))
        sql->kind = PG_END;
    else if (begins(text, "SELECT nextval(") || begins(text, "SELECT pg_advisory_unlock("))
        take_select(sql, text);
    else if (!begins(text, "SELECT pg_advisory_xact_lock("))
        return false;
    return true;
}

/* The simulation never runs these: they are prepared only. */
static bool is_foreign(const char *text)
{
    static const char *const words[] = {"set_config(", "pg_current_snapshot(", "txid",
                                        "pg_prepared_xacts"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strstr(text, words[i]))
            return true;
    return false;
}

struct pg_sql *pg_sql(const char *text)
{
    size_t i = 0;
    for (; statements[i]; i++) {
        assert(i + 1 < STATEMENTS_MAX);
        if (strcmp(statements[i]->text, text) == 0)
            return statements[i];
    }
    struct pg_sql *sql = calloc(1, sizeof *sql);
    char copy[SQL_MAX];
    if (!sql || strlen(text) >= SQL_MAX || !(sql->text = strdup(text)))
        abort();
    translate(text, copy);
    statements[i] = sql;
    if (take_lockkits(sql, copy))
        return sql;
    if (begins(copy, "WITH gone AS (DELETE ")) /* of an archive */
        return sql;
    if ((begins(copy, "SELECT ") && !is_foreign(copy)) || begins(copy, "WITH "))
        take_select(sql, copy);
    else if (begins(copy, "UPDATE "))
        take_update(sql, copy);
    else if (begins(copy, "DELETE FROM "))
        take_delete(sql, copy);
    else if (begins(copy, "INSERT INTO ") && !begins(copy, "INSERT INTO seckill_schema"))
        take_insert(sql, copy);
    return sql;
}
