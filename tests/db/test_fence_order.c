/*
 * Enumerates the invariant of a fenced write (db.h). Two or three holders take two turns each; a
 * turn reads the row, then writes it. Every order of these steps is tried on every kind of row. A
 * model of three numbers gives the expected status of each write.
 */
#include "fixture.h"

enum {
    HOLDERS_MAX = 3,
    STEPS_EACH = 4, /* read, write, read, write */
    STEPS_MAX = HOLDERS_MAX * STEPS_EACH,
    ORDERS_MAX = 7134, /* of three holders' steps */
    ROWS = 500,        /* orders of steps tried at once, each on its own row */
    STOCK = 1000
};

enum kind { ITEM, ACCOUNT, ORDER, KINDS };
static const char *const kind_names[] = {"item", "account", "order"};

union row {
    db_item item;
    db_account account;
    db_order order;
};

/* -- orders of steps -------------------------------------------------------------------------- */

struct orders {
    size_t n;
    uint8_t holder[ORDERS_MAX][STEPS_MAX]; /* which holder takes the step */
};

static bool is_read(int step)
{
    return step % 2 == 0;
}

/* The order of adjacent reads does not matter, so only one such order is kept: 34 of 70 for two
 * holders, 7,134 of 34,650 for three. */
static void add_orders(struct orders *orders, int holders, int *taken, uint8_t *steps, int n)
{
    if (n == holders * STEPS_EACH) {
        assert_true(orders->n < ORDERS_MAX);
        memcpy(orders->holder[orders->n++], steps, (size_t)n);
        return;
    }
    for (int holder = 0; holder < holders; holder++) {
        if (taken[holder] == STEPS_EACH ||
            (n > 0 && is_read(taken[holder]) && is_read(taken[steps[n - 1]] - 1) &&
             steps[n - 1] > holder))
            continue;
        taken[holder]++;
        steps[n] = (uint8_t)holder;
        add_orders(orders, holders, taken, steps, n + 1);
        taken[holder]--;
    }
}

static struct orders *all_orders(int holders)
{
    struct orders *orders = calloc(1, sizeof *orders);
    int taken[HOLDERS_MAX] = {0};
    uint8_t steps[STEPS_MAX];
    assert_non_null(orders);
    add_orders(orders, holders, taken, steps, 0);
    return orders;
}

/* -- the model: what one row has seen --------------------------------------------------------- */

struct trial {
    const uint8_t *steps;
    int step_of[HOLDERS_MAX];  /* how many steps each holder has taken */
    union row of[HOLDERS_MAX]; /* the row as each holder has read it */
    int64_t version, fence;    /* of the row, by the model */
    int64_t base_version;
    bool begun_from[HOLDERS_MAX * 2]; /* an accepted write began from this version */
    bool writes;                      /* in this step */
    db_status told;
};

static int64_t version_of(enum kind kind, const union row *row)
{
    return kind == ITEM      ? row->item.version
           : kind == ACCOUNT ? row->account.version
                             : row->order.version;
}

static void judge(struct trial *trial, enum kind kind, int holder, int64_t fence)
{
    int64_t read = version_of(kind, &trial->of[holder]);
    db_status expected = trial->fence > fence     ? DB_STALE_FENCE
                         : trial->version != read ? DB_CONFLICT
                                                  : DB_OK;
    if (trial->told != expected)
        fail_msg("%s: fence %d read version %d; the row has version %d and fence %d: told \"%s\", "
                 "not \"%s\"",
                 kind_names[kind], (int)fence, (int)read, (int)trial->version, (int)trial->fence,
                 db_status_text(trial->told), db_status_text(expected));
    if (trial->told != DB_OK)
        return;
    assert_false(trial->begun_from[read - trial->base_version]); /* a fork */
    trial->begun_from[read - trial->base_version] = true;
    trial->version++;
    trial->fence = fence;
}

/* -- steps ------------------------------------------------------------------------------------ */

static void row_id(char ret[DB_ID_MAX + 1], size_t i)
{
    snprintf(ret, DB_ID_MAX + 1, "r%zu", i);
}

static db_status work_rows(db_tx *tx, void *arg)
{
    const enum kind kind = *(const enum kind *)arg;
    db_status status = DB_OK;
    for (size_t i = 0; i < ROWS && status == DB_OK; i++) {
        union row row = {.item = {.initial_stock = 0}};
        if (kind == ITEM) {
            row.item.initial_stock = STOCK;
            row_id(row.item.id, i);
            status = db_tx_reset_item(tx, &row.item, "test", "test");
        } else if (kind == ACCOUNT) {
            row.account.initial_balance = STOCK;
            row_id(row.account.id, i);
            status = db_tx_reset_account(tx, &row.account, "test", "test");
        } else {
            row.order = (db_order){.item_id = "1", .user_id = "u", .quantity = 1, .item_epoch = 1};
            row_id(row.order.id, i);
            status = db_tx_insert_order(tx, &row.order);
        }
    }
    return status;
}

static void read_row(struct fixture *fixture, enum kind kind, size_t i, union row *ret)
{
    char id[DB_ID_MAX + 1];
    row_id(id, i);
    db_status status = kind == ITEM      ? db_read_item(fixture->reader, id, &ret->item)
                       : kind == ACCOUNT ? db_read_account(fixture->reader, id, &ret->account)
                                         : db_read_order(fixture->reader, id, &ret->order);
    assert_int_equal(DB_OK, status);
}

struct step {
    enum kind kind;
    struct trial *trials;
    size_t n;
    int at;
    const int *fences; /* of each holder, above base */
    int64_t base_fence;
};

static int holder_at(const struct step *step, size_t i)
{
    return step->trials[i].steps[step->at];
}

static int64_t fence_at(const struct step *step, size_t i)
{
    return step->base_fence + step->fences[holder_at(step, i)];
}

static db_status put_row(db_tx *tx, enum kind kind, union row row, int64_t fence)
{
    const db_put how = {
        .fence = fence, .expected_version = version_of(kind, &row), .item_guard = ""};
    switch (kind) {
    case ITEM:
        row.item.version++;
        row.item.stock--;
        return db_tx_put_item(tx, &row.item, &how);
    case ACCOUNT:
        row.account.version++;
        row.account.balance--;
        return db_tx_put_account(tx, &row.account, &how);
    case ORDER:
    case KINDS:
        break;
    }
    row.order.version++;
    row.order.state = row.order.state == DB_PAID ? DB_CLOSED : DB_PAID;
    return db_tx_put_order(tx, &row.order, &how);
}

/* The writes of all trials in one transaction; their rows are independent. */
static db_status work_writes(db_tx *tx, void *arg)
{
    struct step *step = arg;
    for (size_t i = 0; i < step->n; i++) {
        struct trial *trial = &step->trials[i];
        if (trial->writes)
            trial->told = put_row(tx, step->kind, trial->of[holder_at(step, i)], fence_at(step, i));
    }
    return DB_OK;
}

static void take_step(struct fixture *fixture, struct step *step)
{
    bool any = false;
    for (size_t i = 0; i < step->n; i++) {
        struct trial *trial = &step->trials[i];
        int holder = holder_at(step, i);
        trial->writes = !is_read(trial->step_of[holder]++);
        any |= trial->writes;
        if (!trial->writes)
            read_row(fixture, step->kind, i, &trial->of[holder]);
    }
    if (any)
        assert_int_equal(DB_OK, db_run(fixture->store, work_writes, step, NULL));
    for (size_t i = 0; i < step->n; i++) {
        if (step->trials[i].writes)
            judge(&step->trials[i], step->kind, holder_at(step, i), fence_at(step, i));
    }
}

/* -- all of it -------------------------------------------------------------------------------- */

static void try_orders(struct fixture *fixture, enum kind kind, int holders, const int *fences,
                       int64_t *base_fence)
{
    struct orders *orders = all_orders(holders);
    struct trial *trials = calloc(ROWS, sizeof *trials);
    assert_non_null(trials);
    assert_int_equal(orders->n, holders == 2 ? 34 : ORDERS_MAX);
    for (size_t from = 0; from < orders->n; from += ROWS) {
        struct step step = {.kind = kind,
                            .trials = trials,
                            .n = orders->n - from < ROWS ? orders->n - from : ROWS,
                            .fences = fences,
                            .base_fence = *base_fence};
        for (size_t i = 0; i < step.n; i++) {
            union row row;
            read_row(fixture, kind, i, &row);
            int64_t version = version_of(kind, &row);
            trials[i] = (struct trial){.steps = orders->holder[from + i],
                                       .version = version,
                                       .base_version = version,
                                       .fence = *base_fence};
        }
        for (step.at = 0; step.at < holders * STEPS_EACH; step.at++)
            take_step(fixture, &step);
        *base_fence += HOLDERS_MAX;
    }
    free(trials);
    free(orders);
}

static void make_rows(struct fixture *fixture, enum kind kind)
{
    if (kind == ORDER)
        fixture_item(fixture, "1", STOCK);
    assert_int_equal(DB_OK, db_run(fixture->store, work_rows, &kind, NULL));
}

TEST_FIXTURE(fixture_setup, fixture_teardown);
ON_BOTH_ENGINES;

TEST_THAT(two_holders_never_fork_and_a_lone_one_is_never_refused)
{
    static const int fences[][2] = {{1, 2}, {1, 1}};
    for (enum kind kind = ITEM; kind < KINDS; kind++) {
        int64_t base_fence = 0;
        make_rows(*state, kind);
        for (size_t i = 0; i < sizeof fences / sizeof *fences; i++)
            try_orders(*state, kind, 2, fences[i], &base_fence);
    }
}

TEST_THAT(three_holders_never_fork_and_a_lone_one_is_never_refused)
{
    static const int fences[][3] = {{1, 2, 3}, {1, 1, 2}, {1, 2, 2}, {1, 1, 1}};
    const size_t n_fences = (size_t)full_or(4, 1);                /* a push: only {1, 2, 3} */
    const int kinds = pg_server ? full_or(KINDS, 1) : (int)KINDS; /* a push, PostgreSQL: items */
    for (int kind = ITEM; kind < kinds; kind++) {
        int64_t base_fence = 0;
        make_rows(*state, (enum kind)kind);
        for (size_t i = 0; i < n_fences; i++)
            try_orders(*state, (enum kind)kind, 3, fences[i], &base_fence);
    }
}
