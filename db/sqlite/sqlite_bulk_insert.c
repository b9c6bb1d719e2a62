/*
 * New rows gather over all runs of a transaction, and before it ends one statement a table inserts
 * them, which reads them through a virtual table (sqlite.org/vtab.html): starting a statement, and
 * finding the place in each of its b-trees anew, costs about as much as the rows do.
 *
 * OR IGNORE, OR FAIL: a statement that could be taken back alone would copy each page before it
 * changes it. A row whose key is taken is passed over; whoever counts fewer than there were takes
 * the transaction back and runs it again one row at a time, to learn whose it was.
 */
#include "sqlite.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { CELLS_MIN = 1024, TEXTS_MIN = 16384, NUMBER = -1 };

/* -- gathering -------------------------------------------------------------------------------- */

/* Makes room for as many as are needed, of item bytes each. False: no memory. */
static bool grow(void **array, size_t *room, size_t needed, size_t least, size_t item)
{
    if (needed <= *room)
        return true;
    size_t wanted = 2 * needed > least ? 2 * needed : least;
    void *grown = realloc(*array, wanted * item);
    if (!grown)
        return false;
    *array = grown;
    *room = wanted;
    return true;
}

static bool add_text(struct pile *pile, const char *text, struct kept_cell *ret)
{
    size_t length = strlen(text);
    size_t needed = pile->texts_used + length + 1; /* never none: SQLite takes NULL for no text */
    if (!grow((void **)&pile->texts, &pile->texts_room, needed, TEXTS_MIN, 1))
        return false;
    memcpy(pile->texts + pile->texts_used, text, length);
    *ret = (struct kept_cell){.number = (int64_t)pile->texts_used, .length = (int)length};
    pile->texts_used += length;
    return true;
}

db_status new_rows_add(struct conn *conn, enum new_kind kind, const struct cell *cells, size_t n)
{
    struct new_rows *rows = conn->new_rows;
    struct pile *pile = &rows->piles[kind];
    assert(n <= NEW_COLUMNS_MAX);
    if (!grow((void **)&pile->cells, &pile->cells_room, pile->n_cells + n, CELLS_MIN,
              sizeof *pile->cells))
        return conn_trouble(conn, SQLITE_NOMEM);
    for (size_t i = 0; i < n; i++) {
        struct kept_cell *cell = &pile->cells[pile->n_cells + i];
        *cell = (struct kept_cell){.number = cells[i].number, .length = NUMBER};
        if (cells[i].text && !add_text(pile, cells[i].text, cell))
            return conn_trouble(conn, SQLITE_NOMEM);
    }
    pile->columns = n;
    pile->n_cells += n;
    return DB_OK;
}

bool new_rows_any(const struct conn *conn)
{
    bool any = false;
    for (int kind = 0; kind < NEW_KINDS; kind++)
        any |= conn->new_rows->piles[kind].n_cells > 0;
    return any;
}

static void clear(struct new_rows *rows)
{
    for (int kind = 0; kind < NEW_KINDS; kind++)
        rows->piles[kind].n_cells = rows->piles[kind].texts_used = 0;
}

void new_rows_begin(struct conn *conn, bool one_by_one)
{
    clear(conn->new_rows);
    conn->new_rows->missed = false;
    conn->new_rows->one_by_one = one_by_one;
}

struct new_rows_mark new_rows_mark(const struct conn *conn)
{
    const struct new_rows *rows = conn->new_rows;
    struct new_rows_mark mark = {.any = new_rows_any(conn), .insertions = rows->insertions};
    for (int kind = 0; kind < NEW_KINDS; kind++)
        mark.n_cells[kind] = rows->piles[kind].n_cells;
    return mark;
}

void new_rows_cut(struct conn *conn, const struct new_rows_mark *mark)
{
    struct new_rows *rows = conn->new_rows;
    if (rows->insertions != mark->insertions) {
        rows->missed |= mark->any; /* what was there at the mark was inserted since, and undone */
        clear(rows);
        return;
    }
    for (int kind = 0; kind < NEW_KINDS; kind++)
        rows->piles[kind].n_cells = mark->n_cells[kind];
}

/* -- inserting -------------------------------------------------------------------------------- */

static db_status insert(struct conn *conn, enum new_kind kind, enum sqlite_sql sql)
{
    struct new_rows *rows = conn->new_rows;
    struct pile *pile = &rows->piles[kind];
    if (pile->n_cells == 0)
        return DB_OK;
    rows->read = pile;
    db_status status = conn_run(conn, conn->statements[sql]);
    rows->missed |=
        status != DB_OK || (size_t)sqlite3_changes(conn->handle) * pile->columns != pile->n_cells;
    return status;
}

db_status new_rows_insert(struct conn *conn)
{
    static const enum sqlite_sql statements[NEW_KINDS] = {
        [NEW_ANSWERS] = SQL_INSERT_ANSWERS,
        [NEW_ORDERS] = SQL_INSERT_ORDERS,
        [NEW_LEDGER_ROWS] = SQL_APPEND_LEDGER,
    };
    db_status status = DB_OK;
    for (int kind = 0; kind < NEW_KINDS && status == DB_OK; kind++)
        status = insert(conn, (enum new_kind)kind, statements[kind]);
    conn->new_rows->insertions++;
    clear(conn->new_rows);
    return status;
}

/* -- the virtual table ------------------------------------------------------------------------ */

struct table {
    sqlite3_vtab base;
    const struct new_rows *rows;
};

struct cursor {
    sqlite3_vtab_cursor base;
    const struct pile *pile;
    size_t at; /* its row's first cell */
};

static int table_connect(sqlite3 *handle, void *rows, int argc, const char *const *argv,
                         sqlite3_vtab **ret, char **ret_message)
{
    (void)argc;
    (void)argv;
    (void)ret_message;
    struct table *table = sqlite3_malloc(sizeof *table);
    if (!table)
        return SQLITE_NOMEM;
    *table = (struct table){.rows = rows};
    *ret = &table->base;
    return sqlite3_declare_vtab(handle, "CREATE TABLE gathered (a, b, c, d, e, f, g, h, i, j, k)");
}

static int table_disconnect(sqlite3_vtab *table)
{
    sqlite3_free(table);
    return SQLITE_OK;
}

static int table_plan(sqlite3_vtab *table, sqlite3_index_info *info)
{
    (void)table;
    (void)info; /* from the first to the last */
    return SQLITE_OK;
}

static int cursor_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret)
{
    struct cursor *cursor = sqlite3_malloc(sizeof *cursor);
    if (!cursor)
        return SQLITE_NOMEM;
    *cursor = (struct cursor){.pile = ((struct table *)table)->rows->read};
    *ret = &cursor->base;
    return SQLITE_OK;
}

static int cursor_close(sqlite3_vtab_cursor *cursor)
{
    sqlite3_free(cursor);
    return SQLITE_OK;
}

static int cursor_rewind(sqlite3_vtab_cursor *base, int plan, const char *name, int argc,
                         sqlite3_value **argv)
{
    (void)plan;
    (void)name;
    (void)argc;
    (void)argv;
    ((struct cursor *)base)->at = 0;
    return SQLITE_OK;
}

static int cursor_next(sqlite3_vtab_cursor *base)
{
    struct cursor *cursor = (struct cursor *)base;
    cursor->at += cursor->pile->columns;
    return SQLITE_OK;
}

static int cursor_at_end(sqlite3_vtab_cursor *base)
{
    const struct cursor *cursor = (const struct cursor *)base;
    return cursor->at == cursor->pile->n_cells;
}

static int cursor_column(sqlite3_vtab_cursor *base, sqlite3_context *result, int column)
{
    const struct cursor *cursor = (const struct cursor *)base;
    const struct kept_cell *cell = &cursor->pile->cells[cursor->at + (size_t)column];
    if (cell->length == NUMBER)
        sqlite3_result_int64(result, cell->number);
    else
        sqlite3_result_text(result, cursor->pile->texts + cell->number, cell->length,
                            SQLITE_STATIC);
    return SQLITE_OK;
}

static int cursor_row_id(sqlite3_vtab_cursor *base, sqlite3_int64 *ret)
{
    *ret = (sqlite3_int64)((const struct cursor *)base)->at;
    return SQLITE_OK;
}

/* Without xCreate: it is there under the module's name, and no schema has it. */
static const sqlite3_module module = {
    .xConnect = table_connect,
    .xBestIndex = table_plan,
    .xDisconnect = table_disconnect,
    .xOpen = cursor_open,
    .xClose = cursor_close,
    .xFilter = cursor_rewind,
    .xNext = cursor_next,
    .xEof = cursor_at_end,
    .xColumn = cursor_column,
    .xRowid = cursor_row_id,
};

/* -- life ------------------------------------------------------------------------------------- */

db_status new_rows_open(struct conn *conn)
{
    conn->new_rows = calloc(1, sizeof *conn->new_rows);
    if (!conn->new_rows)
        return conn_trouble(conn, SQLITE_NOMEM);
    int code = sqlite3_create_module(conn->handle, "gathered", &module, conn->new_rows);
    return code == SQLITE_OK ? DB_OK : conn_trouble(conn, code);
}

void new_rows_close(struct conn *conn)
{
    for (int kind = 0; kind < NEW_KINDS && conn->new_rows; kind++) {
        free(conn->new_rows->piles[kind].cells);
        free(conn->new_rows->piles[kind].texts);
    }
    free(conn->new_rows);
    conn->new_rows = NULL;
}
