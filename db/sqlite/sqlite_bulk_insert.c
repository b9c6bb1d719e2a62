/*
 * New rows gather over all runs of a transaction. Before it ends, one INSERT for each table inserts
 * them. It reads them through a virtual table (sqlite.org/vtab.html). One statement for each row,
 * with a search in each b-tree, would cost about twice as much.
 *
 * The ledger has a trigger on INSERT. SQLite then copies what a SELECT gives into a table of its
 * own, and each text once more. So its rows have a statement each, which costs less.
 *
 * OR IGNORE, OR FAIL: a statement that can be undone alone copies each page before it changes it;
 * these do not. A row whose key is taken is skipped. If fewer rows were inserted than gathered, the
 * transaction is undone and run again row by row, to find the run that added the row.
 */
#include "sqlite.h"

#include <stdlib.h>
#include <string.h>

enum { CELLS_MIN = 1024, TEXTS_MIN = 16384, NUMBER = -1 };

/* The tables that take new rows. Each one's virtual table has the columns of a new row. No module:
 * a statement for each row. */
static const struct {
    const char *module, *declaration;
    enum db_table table;
    enum sqlite_sql insert;
} kinds[NEW_KINDS] = {
    {"new_answers", "CREATE TABLE new_answers (" ANSWER_COLUMNS ")", TABLE_ANSWERS,
     SQL_INSERT_ANSWERS},
    {"new_orders", "CREATE TABLE new_orders (" ORDER_COLUMNS ")", TABLE_ORDERS, SQL_INSERT_ORDERS},
    {NULL, NULL, TABLE_LEDGER, SQL_APPEND_LEDGER},
};

/* -- gathering -------------------------------------------------------------------------------- */

/* Makes room for `needed` elements of `item` bytes. False: no memory. */
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
    size_t needed = pile->texts_used + length + 1; /* + 1: a NULL pointer would be SQL's NULL */
    if (!grow((void **)&pile->texts, &pile->texts_room, needed, TEXTS_MIN, 1))
        return false;
    memcpy(pile->texts + pile->texts_used, text, length);
    *ret = (struct kept_cell){.number = (int64_t)pile->texts_used, .length = (int)length};
    pile->texts_used += length;
    return true;
}

/* Copies a row. Returns DB_OK, or trouble if there is no memory. */
static db_status add_row(struct conn *conn, struct pile *pile, const struct value *values, size_t n)
{
    if (!grow((void **)&pile->cells, &pile->cells_room, pile->n_cells + n, CELLS_MIN,
              sizeof *pile->cells))
        return conn_trouble(conn, SQLITE_NOMEM);
    for (size_t i = 0; i < n; i++) {
        struct kept_cell *cell = &pile->cells[pile->n_cells + i];
        *cell = (struct kept_cell){.number = values[i].number, .length = NUMBER};
        if (values[i].text && !add_text(pile, values[i].text, cell))
            return conn_trouble(conn, SQLITE_NOMEM);
    }
    pile->columns = n;
    pile->n_cells += n;
    return DB_OK;
}

static struct pile *pile_of(struct new_rows *rows, enum db_table table)
{
    int kind = 0;
    while (kinds[kind].table != table)
        kind++;
    return &rows->piles[kind];
}

db_status sqlite_insert(db_tx *tx, enum db_table table, const void *row)
{
    struct conn *conn = ((struct sqlite_tx *)tx)->conn;
    struct new_rows *rows = conn->new_rows;
    struct value values[ROW_COLUMNS_MAX];
    const struct row_type *type = table == TABLE_LEDGER ? &new_ledger_type : &row_types[table];
    size_t n = row_values(type, row, values);
    db_status status = conn->trouble.status;
    if (status == DB_OK)
        status = add_row(conn, pile_of(rows, table), values, n);
    if (status != DB_OK || !rows->one_by_one)
        return status;
    status = tx_insert_new_rows(tx);
    if (status == DB_OK && rows->missed) {
        rows->missed = false;
        status = DB_REFUSED;
    }
    return status;
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
        rows->missed |= mark->any; /* older rows were inserted after the mark, and undone */
        clear(rows);
        return;
    }
    for (int kind = 0; kind < NEW_KINDS; kind++)
        rows->piles[kind].n_cells = mark->n_cells[kind];
}

/* -- inserting -------------------------------------------------------------------------------- */

static void bind_row(sqlite3_stmt *statement, const struct pile *pile, size_t at)
{
    for (size_t i = 0; i < pile->columns; i++) {
        const struct kept_cell *cell = &pile->cells[at + i];
        if (cell->length == NUMBER)
            sqlite3_bind_int64(statement, (int)i + 1, cell->number);
        else
            sqlite3_bind_text(statement, (int)i + 1, pile->texts + cell->number, cell->length,
                              SQLITE_STATIC);
    }
}

static db_status insert_each(struct conn *conn, const struct pile *pile, sqlite3_stmt *statement)
{
    db_status status = DB_OK;
    for (size_t at = 0; at < pile->n_cells && status == DB_OK; at += pile->columns) {
        bind_row(statement, pile, at);
        status = conn_run(conn, statement);
    }
    return status;
}

static db_status insert_all(struct conn *conn, const struct pile *pile, sqlite3_stmt *statement,
                            bool *ret_missed)
{
    db_status status = conn_run(conn, statement);
    *ret_missed |= (size_t)sqlite3_changes(conn->handle) * pile->columns != pile->n_cells;
    return status;
}

static db_status insert_pile(struct conn *conn, int kind)
{
    struct new_rows *rows = conn->new_rows;
    const struct pile *pile = &rows->piles[kind];
    sqlite3_stmt *statement = conn->statements[kinds[kind].insert];
    if (pile->n_cells == 0)
        return DB_OK;
    db_status status = kinds[kind].module ? insert_all(conn, pile, statement, &rows->missed)
                                          : insert_each(conn, pile, statement);
    rows->missed |= status != DB_OK;
    return status;
}

db_status new_rows_insert(struct conn *conn)
{
    db_status status = DB_OK;
    for (int kind = 0; kind < NEW_KINDS && status == DB_OK; kind++)
        status = insert_pile(conn, kind);
    conn->new_rows->insertions++;
    clear(conn->new_rows);
    return status;
}

/* -- the virtual table ------------------------------------------------------------------------ */

struct table {
    sqlite3_vtab base;
    const struct pile *pile;
};

struct cursor {
    sqlite3_vtab_cursor base;
    const struct pile *pile;
    size_t at; /* the first cell of the current row */
};

/* argv[0] is the module's name. */
static int table_connect(sqlite3 *handle, void *rows, int argc, const char *const *argv,
                         sqlite3_vtab **ret, char **ret_message)
{
    int kind = 0;
    (void)argc;
    (void)ret_message;
    while (!kinds[kind].module || strcmp(kinds[kind].module, argv[0]) != 0)
        kind++;
    struct table *table = sqlite3_malloc(sizeof *table);
    if (!table)
        return SQLITE_NOMEM;
    *table = (struct table){.pile = &((struct new_rows *)rows)->piles[kind]};
    *ret = &table->base;
    return sqlite3_declare_vtab(handle, kinds[kind].declaration);
}

static int table_disconnect(sqlite3_vtab *table)
{
    sqlite3_free(table);
    return SQLITE_OK;
}

static int table_plan(sqlite3_vtab *table, sqlite3_index_info *info)
{
    (void)table;
    (void)info; /* always all rows */
    return SQLITE_OK;
}

static int cursor_open(sqlite3_vtab *table, sqlite3_vtab_cursor **ret)
{
    struct cursor *cursor = sqlite3_malloc(sizeof *cursor);
    if (!cursor)
        return SQLITE_NOMEM;
    *cursor = (struct cursor){.pile = ((struct table *)table)->pile};
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

/* No xCreate: the table is always there, by the name of the module, and in no schema. */
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
    for (int kind = 0; kind < NEW_KINDS; kind++) {
        if (!kinds[kind].module)
            continue;
        int code = sqlite3_create_module(conn->handle, kinds[kind].module, &module, conn->new_rows);
        if (code != SQLITE_OK)
            return conn_trouble(conn, code);
    }
    return DB_OK;
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
