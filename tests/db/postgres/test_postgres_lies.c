/* Each message of a server is replaced by a wrong one. The process goes on, and the store works
 * again. If the lie is an orderly hang-up, reported outcomes of writes are true. */
#include "fixture.h"
#include "lateness.h"
#include "pg_liar.h"
#include "process.h"

enum { FIRST = 1000000, MESSAGES_MAX = 400, BUSY_MS = 200, TRIES = 3 };

static struct pg_liar *liar;

/* One use of the store; i is different for each use. */
typedef db_status use(struct fixture *fixture, int i);

static db_status use_item(struct fixture *fixture, int i)
{
    db_item item;
    (void)i;
    return db_read_item(fixture->reader, "1", &item);
}

static db_status use_account(struct fixture *fixture, int i)
{
    db_account account;
    (void)i;
    return db_read_account(fixture->reader, "a", &account);
}

static db_status use_order(struct fixture *fixture, int i)
{
    db_order order;
    (void)i;
    return db_read_order(fixture->reader, "o1", &order);
}

static db_status use_answers(struct fixture *fixture, int i)
{
    const char *keys[] = {"k0", "none", "k0"};
    bool found[3];
    db_answer answer;
    (void)i;
    db_status status = db_read_answer(fixture->reader, "k0", &answer);
    return status == DB_OK ? db_find_answers(fixture->reader, keys, 3, found) : status;
}

static db_status use_bought(struct fixture *fixture, int i)
{
    const db_item item = {.id = "1", .epoch = 1};
    const char *buyers[] = {"u1", "u2"};
    int64_t bought[2];
    (void)i;
    db_status status = db_read_bought(fixture->reader, &item, buyers, 2, bought);
    return status == DB_OK ? db_read_sold(fixture->reader, &item, bought) : status;
}

static db_status use_expired(struct fixture *fixture, int i)
{
    db_expired expired[1];
    size_t n;
    (void)i;
    return db_read_expired(fixture->reader, 1000, NULL, expired, 1, &n);
}

static db_status use_audit(struct fixture *fixture, int i)
{
    db_audit_row row;
    (void)i;
    return db_audit(fixture->reader, NULL, keep_audit_row, &row, NULL);
}

static db_status use_snapshot(struct fixture *fixture, int i)
{
    db_reader_begin(fixture->reader);
    db_status status = use_item(fixture, i);
    if (status == DB_OK)
        status = use_account(fixture, i);
    db_reader_end(fixture->reader);
    return status;
}

static db_status use_fence(struct fixture *fixture, int i)
{
    int64_t fence;
    (void)i;
    return db_next_fence(fixture->store, "item:1", 0, &fence, NULL);
}

static db_status use_ping(struct fixture *fixture, int i)
{
    (void)i;
    return db_ping(fixture->store);
}

struct addition {
    int64_t delta;
    db_order_state to;
};

static db_status work_add(db_tx *tx, void *arg)
{
    const struct addition *addition = arg;
    db_account account = {.id = "a", .epoch = 1};
    db_order order;
    db_status status = db_tx_add_account(tx, &account, addition->delta);
    if (status == DB_OK)
        status = db_tx_read_order(tx, "o1", true, &order);
    return status == DB_OK ? db_tx_move_order(tx, &order, "", DB_RESERVED, DB_RESERVED) : status;
}

static db_status use_conditional(struct fixture *fixture, int i)
{
    struct addition addition = {.delta = 0};
    (void)i;
    return db_run(fixture->store, work_add, &addition, NULL);
}

/* Refused because of its version, so the store asks for the reason. */
static db_status work_late(db_tx *tx, void *arg)
{
    (void)arg;
    const db_account late = {.id = "a", .balance = 7, .version = 9, .epoch = 1};
    return db_tx_put_account(tx, &late, &(db_put){.fence = 1, .expected_version = 8888});
}

static db_status use_refused(struct fixture *fixture, int i)
{
    (void)i;
    db_status status = db_run(fixture->store, work_late, NULL, NULL);
    return status == DB_CONFLICT || status == DB_STALE_FENCE ? DB_OK : status;
}

static db_status use_change(struct fixture *fixture, int i)
{
    char key[16];
    snprintf(key, sizeof key, "k%d", i);
    struct change change = {.delta = -1,
                            .txn_id = key,
                            .how = {.expected_version = -1, .item_guard = ""},
                            .with_answer = true,
                            .account = {.id = "a", .balance = FIRST, .version = 1, .epoch = 1}};
    return db_run(fixture->store, work_change, &change, NULL);
}

static const struct {
    const char *name;
    use *use;
    bool writes; /* a row "k<i>" */
} uses[] = {
    {"item", use_item, false},
    {"account", use_account, false},
    {"order", use_order, false},
    {"answers", use_answers, false},
    {"bought", use_bought, false},
    {"expired", use_expired, false},
    {"audit", use_audit, false},
    {"snapshot", use_snapshot, false},
    {"fence", use_fence, false},
    {"ping", use_ping, false},
    {"conditional", use_conditional, false},
    {"refused", use_refused, false},
    {"change", use_change, true},
};

static db_status work_orders(db_tx *tx, void *arg)
{
    (void)arg;
    db_order order = {.id = "o1", .item_id = "1", .user_id = "u1", .quantity = 1, .item_epoch = 1};
    order.limited = true;
    db_status status = db_tx_insert_order(tx, &order);
    order.id[1] = '2';
    return status == DB_OK ? db_tx_insert_order(tx, &order) : status;
}

/* Opens the store through the liar; the tables are filled directly. */
static void open_through_liar(struct fixture *fixture)
{
    fixture_item(fixture, "1", 100);
    fixture_account(fixture, "a", FIRST);
    assert_int_equal(DB_OK, db_run(fixture->store, work_orders, NULL, NULL));
    assert_int_equal(DB_OK, use_change(fixture, 0));
    fixture_close(fixture);
    char direct[sizeof fixture->url];
    strcpy(direct, fixture->url);
    snprintf(fixture->url, sizeof fixture->url,
             "postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable&pool=2",
             pg_liar_port(liar));
    fixture_open(fixture, &(db_options){.busy_ms = BUSY_MS});
    strcpy(fixture->url, direct);
}

static bool is_written(struct fixture *fixture, int i)
{
    char sql[96];
    snprintf(sql, sizeof sql, "SELECT count(*) FROM ledger WHERE txn_id = 'k%d'", i);
    return fixture_sql_int(fixture, sql) != 0;
}

/* A server that only hangs up sends no wrong data. */
static bool is_honest(enum pg_lie lie)
{
    return lie == PG_LIE_FATAL_BEFORE || lie == PG_LIE_HANG_UP;
}

static void tell_each(struct fixture *fixture, size_t at, enum pg_lie lie, int *i)
{
    for (int n = 1, told = 1; told > 0; n++) {
        assert_true(n < MESSAGES_MAX);
        int number = ++*i;
        pg_liar_arm(liar, lie, n);
        db_status status = uses[at].use(fixture, number);
        told = pg_liar_disarm(liar);
        if (told > 0 && is_honest(lie) && !uses[at].writes)
            assert_true(status != DB_NOT_FOUND && status != DB_INVALID);
        if (uses[at].writes && is_honest(lie) && status != DB_UNKNOWN &&
            is_written(fixture, number) != (status == DB_OK))
            fail_msg("%s: lie %d in place of message %d: told \"%s\", which is not so",
                     uses[at].name, (int)lie, n, db_status_text(status));
        /* A surplus answer is detected at the next use of the connection. A busy machine may take
         * longer than a use has. */
        int tries = 0;
        do {
            const int64_t start_ms = test_now_ms();
            status = uses[at].use(fixture, ++*i);
            tries += lateness_since(start_ms) < BUSY_MS / 4;
        } while (status != DB_OK && tries < TRIES);
        if (status != DB_OK)
            fail_msg("%s: after lie %d in place of message %d: %s", uses[at].name, (int)lie, n,
                     db_status_text(status));
    }
}

ON_POSTGRES;

TEST_THAT_WITH(no_message_of_the_server_ends_the_process, fixture_setup, fixture_teardown)
{
    struct fixture *fixture = *state;
    int i = 0;
    liar = pg_liar_open(pg_server->port);
    assert_non_null(liar);
    open_through_liar(fixture);
    for (size_t at = 0; at < sizeof uses / sizeof *uses; at++)
        for (int lie = 0; lie < PG_LIES; lie++) /* an audit waits a minute for such a copy */
            if (uses[at].use != use_audit || lie != PG_LIE_COPY_OUT)
                tell_each(fixture, at, (enum pg_lie)lie, &i);
    print_message("%d uses of the store\n", i);
    fixture_close(fixture);
    pg_liar_close(liar);
}
