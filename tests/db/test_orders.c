/* Orders, stored answers, tasks, and the length limits of texts. */
#include "fixture.h"

static const db_put any = {.expected_version = -1, .item_guard = ""};

static db_status work_insert_order(db_tx *tx, void *arg)
{
    return db_tx_insert_order(tx, arg);
}

static db_status work_insert_answer(db_tx *tx, void *arg)
{
    return db_tx_insert_answer(tx, arg);
}

static db_status work_append_ledger(db_tx *tx, void *arg)
{
    return db_tx_append_ledger(tx, arg);
}

static db_order make_order(const char *id, const db_item *item, const char *user, int64_t quantity)
{
    db_order order = {.quantity = quantity, .item_epoch = item->epoch, .limited = true};
    snprintf(order.id, sizeof order.id, "%s", id);
    snprintf(order.item_id, sizeof order.item_id, "%s", item->id);
    snprintf(order.user_id, sizeof order.user_id, "%s", user);
    return order;
}

static void insert_order(struct fixture *fixture, db_order order)
{
    assert_int_equal(DB_OK, db_run(fixture->store, work_insert_order, &order, NULL));
}

struct move {
    db_order row;
    db_order_state from, to;
    db_put how;
};

static db_status work_move(db_tx *tx, void *arg)
{
    struct move *move = arg;
    return db_tx_move_order(tx, &move->row, "", move->from, move->to);
}

static db_status work_put_order(db_tx *tx, void *arg)
{
    struct move *move = arg;
    return db_tx_put_order(tx, &move->row, &move->how);
}

TEST_FIXTURE(fixture_setup, fixture_teardown);
ON_BOTH_ENGINES;

TEST_THAT(an_order_comes_back_as_stored)
{
    struct fixture *fixture = *state;
    db_order order = {.item_id = "1",
                      .user_id = "u42",
                      .quantity = 2,
                      .amount = INT64_MAX,
                      .state = DB_PAID,
                      .version = 5,
                      .item_epoch = 3,
                      .created_us = 1700000000000000,
                      .expires_us = 1700000900000000};
    memset(order.id, 'o', DB_ID_MAX);
    insert_order(fixture, order);
    db_order back;
    memset(&back, 0xff, sizeof back);
    assert_int_equal(DB_OK, db_read_order(fixture->reader, order.id, &back));
    assert_string_equal(order.id, back.id);
    assert_string_equal("u42", back.user_id);
    assert_true(back.quantity == 2 && back.amount == INT64_MAX && back.state == DB_PAID);
    assert_true(back.version == 5 && back.item_epoch == 3);
    assert_true(back.created_us == order.created_us && back.expires_us == order.expires_us);
    assert_true(back.last_fence == 0 && !back.limited);
    assert_int_equal(DB_NOT_FOUND, db_read_order(fixture->reader, "none", &back));

    order.id[0] = 'l';
    order.limited = true;
    insert_order(fixture, order);
    assert_int_equal(DB_OK, db_read_order(fixture->reader, order.id, &back));
    assert_true(back.limited && back.last_fence == 0);
}

TEST_THAT(an_order_id_is_used_once)
{
    struct fixture *fixture = *state;
    db_item item = fixture_item(fixture, "1", 10);
    db_order order = make_order("o1", &item, "u1", 1);
    insert_order(fixture, order);
    assert_int_equal(DB_INVALID, db_run(fixture->store, work_insert_order, &order, NULL));
}

TEST_THAT(a_state_moves_only_from_where_it_is)
{
    struct fixture *fixture = *state;
    db_item item = fixture_item(fixture, "1", 10);
    insert_order(fixture, make_order("o1", &item, "u1", 1));
    struct move move = {
        .row = make_order("o1", &item, "u1", 1), .from = DB_RESERVED, .to = DB_PAID};
    assert_int_equal(DB_OK, db_run(fixture->store, work_move, &move, NULL));
    assert_int_equal(DB_PAID, move.row.state);
    assert_int_equal(1, move.row.version);
    assert_int_equal(DB_REFUSED, db_run(fixture->store, work_move, &move, NULL));
    struct move ghost = {.row = {.id = "ghost"}, .from = DB_RESERVED, .to = DB_PAID};
    assert_int_equal(DB_NOT_FOUND, db_run(fixture->store, work_move, &ghost, NULL));
}

TEST_THAT(an_order_state_can_be_put_under_fence_and_version)
{
    struct fixture *fixture = *state;
    db_item item = fixture_item(fixture, "1", 10);
    insert_order(fixture, make_order("o1", &item, "u1", 1));
    struct move put = {.row = make_order("o1", &item, "u1", 1),
                       .how = {.fence = 9, .expected_version = 0, .item_guard = ""}};
    put.row.state = DB_PAID;
    put.row.version = 1;
    assert_int_equal(DB_OK, db_run(fixture->store, work_put_order, &put, NULL));
    put.row.state = DB_CLOSED;
    assert_int_equal(DB_CONFLICT, db_run(fixture->store, work_put_order, &put, NULL));
    put.how.fence = 8;
    assert_int_equal(DB_STALE_FENCE, db_run(fixture->store, work_put_order, &put, NULL));
    db_order back;
    assert_int_equal(DB_OK, db_read_order(fixture->reader, "o1", &back));
    assert_int_equal(DB_PAID, back.state);
    put.how = any; /* unguarded: the closing overwrites the payment */
    assert_int_equal(DB_OK, db_run(fixture->store, work_put_order, &put, NULL));
}

/* Holds for every guard, also with the version that was read, also for sql-atomic. */
TEST_THAT(an_order_of_a_former_sale_is_written_only_on_demand)
{
    struct fixture *fixture = *state;
    db_item item = fixture_item(fixture, "1", 10);
    insert_order(fixture, make_order("o1", &item, "u1", 1));
    struct move put = {.row = make_order("o1", &item, "u1", 1), .to = DB_PAID};
    fixture_item(fixture, "1", 10);
    assert_int_equal(DB_CONFLICT, db_run(fixture->store, work_move, &put, NULL));
    put.row.state = DB_PAID;
    put.row.version = 1;
    static const db_put ways[] = {{.expected_version = -1, .item_guard = ""},
                                  {.expected_version = 0, .item_guard = ""},
                                  {.fence = 1, .expected_version = 0, .item_guard = ""},
                                  {.expected_version = 3, .former_sale = true}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        put.how = ways[i];
        assert_int_equal(DB_CONFLICT, db_run(fixture->store, work_put_order, &put, NULL));
    }
    put.how.expected_version = 0;
    assert_int_equal(DB_OK, db_run(fixture->store, work_put_order, &put, NULL));
}

TEST_THAT(only_live_limited_orders_of_the_epoch_count_as_bought)
{
    struct fixture *fixture = *state;
    db_item old = fixture_item(fixture, "1", 10), other = fixture_item(fixture, "2", 10);
    insert_order(fixture, make_order("history", &old, "u1", 5));
    db_item item = fixture_item(fixture, "1", 10);
    insert_order(fixture, make_order("elsewhere", &other, "u1", 5));
    insert_order(fixture, make_order("reserved", &item, "u1", 1));
    db_order paid = make_order("paid", &item, "u1", 2);
    paid.state = DB_PAID;
    insert_order(fixture, paid);
    insert_order(fixture, make_order("closed", &item, "u1", 4));
    insert_order(fixture, make_order("other user", &item, "u2", 1));
    db_order unlimited = make_order("unlimited", &item, "u2", 1);
    unlimited.limited = false;
    insert_order(fixture, unlimited);
    struct move move = {
        .row = make_order("closed", &item, "u1", 4), .from = DB_RESERVED, .to = DB_CLOSED};
    assert_int_equal(DB_OK, db_run(fixture->store, work_move, &move, NULL));

    const char *users[] = {"u1", "u3", "u2", "u1"};
    int64_t bought[4], quantity;
    assert_int_equal(DB_OK, db_read_bought(fixture->reader, &item, users, 4, bought));
    assert_int_equal(3, bought[0]);
    assert_int_equal(0, bought[1]);
    assert_int_equal(1, bought[2]);
    assert_int_equal(3, bought[3]);
    users[3] = "";
    assert_int_equal(DB_NOT_FOUND, db_read_bought(fixture->reader, &item, users, 4, bought));
    assert_int_equal(DB_OK, db_read_sold(fixture->reader, &item, &quantity));
    assert_int_equal(5, quantity);
}

TEST_THAT(expired_orders_come_oldest_first_and_bounded)
{
    struct fixture *fixture = *state;
    db_item item = fixture_item(fixture, "1", 10);
    static const struct {
        const char *id;
        int64_t expires_us;
        db_order_state state;
    } rows[] = {{"a-late", 300, DB_RESERVED},
                {"z-first", 100, DB_RESERVED},
                {"paid", 50, DB_PAID},
                {"b-second", 200, DB_RESERVED}};
    for (size_t i = 0; i < 4; i++) {
        db_order order = make_order(rows[i].id, &item, "u", 1);
        order.expires_us = rows[i].expires_us;
        order.state = rows[i].state;
        insert_order(fixture, order);
    }
    db_reader *reader = fixture->reader;
    db_expired found[4];
    size_t n;
    assert_int_equal(DB_OK, db_read_expired(reader, 200, NULL, found, 4, &n));
    assert_int_equal(2, n);
    assert_string_equal("z-first", found[0].id);
    assert_string_equal("1", found[0].item_id);
    assert_int_equal(100, found[0].expires_us);
    assert_string_equal("b-second", found[1].id);
    assert_int_equal(DB_OK, db_read_expired(reader, 1000, NULL, found, 1, &n));
    assert_int_equal(1, n);
    assert_int_equal(DB_OK, db_read_expired(reader, 99, NULL, found, 4, &n));
    assert_int_equal(0, n);
}

/* Also orders that expire in the same microsecond. */
TEST_THAT(expired_orders_are_read_page_by_page)
{
    struct fixture *fixture = *state;
    db_item item = fixture_item(fixture, "1", 10);
    enum { N = 7 };
    for (int i = 0; i < N; i++) {
        char id[8];
        snprintf(id, sizeof id, "o%d", i);
        db_order order = make_order(id, &item, "u", 1);
        order.expires_us = i < 5 ? 100 : 200;
        insert_order(fixture, order);
    }
    db_expired page[2], last = {0};
    size_t n = 2;
    int seen = 0;
    for (; n == 2; seen += (int)n) {
        assert_int_equal(DB_OK,
                         db_read_expired(fixture->reader, 300, seen ? &last : NULL, page, 2, &n));
        for (size_t i = 0; i < n; i++)
            assert_int_equal(page[i].id[1], '0' + seen + (int)i);
        if (n > 0)
            last = page[n - 1];
    }
    assert_int_equal(N, seen);
}

TEST_THAT(the_first_answer_of_a_key_stays)
{
    struct fixture *fixture = *state;
    db_answer answer = {.key = "k", .request = "order", .http_status = 201, .at_us = 5}, back;
    memset(answer.body, 'b', DB_BODY_MAX);
    assert_int_equal(DB_NOT_FOUND, db_read_answer(fixture->reader, "k", &back));
    assert_int_equal(DB_OK, db_run(fixture->store, work_insert_answer, &answer, NULL));
    db_answer second = answer;
    second.http_status = 409;
    assert_int_equal(DB_DUPLICATE, db_run(fixture->store, work_insert_answer, &second, NULL));
    assert_int_equal(DB_OK, db_read_answer(fixture->reader, "k", &back));
    assert_int_equal(201, back.http_status);
    assert_string_equal("order", back.request);
    assert_string_equal(answer.body, back.body);
    assert_int_equal(5, back.at_us);
}

static db_status work_task(db_tx *tx, void *arg)
{
    return db_tx_put_task(tx, "close-orders", arg, 1234, 7);
}

TEST_THAT(a_task_keeps_its_last_run)
{
    struct fixture *fixture = *state;
    assert_int_equal(DB_OK, db_run(fixture->store, work_task, "a", NULL));
    assert_int_equal(DB_OK, db_run(fixture->store, work_task, "b", NULL));
    assert_int_equal(1, fixture_sql_int(fixture, "SELECT count(*) FROM tasks WHERE instance = 'b'"
                                                 " AND at_us = 1234 AND done = 7"));
}

TEST_THAT(the_ledger_lets_nothing_be_changed)
{
    struct fixture *fixture = *state;
    static const char *const attempts[] = {"UPDATE ledger SET delta = 1",
                                           "UPDATE ledger SET id = id + 1", "DELETE FROM ledger",
                                           "INSERT INTO ledger SELECT * FROM ledger"};
    static const char *const of_sqlite[] = {
        "UPDATE OR REPLACE ledger SET id = 2 WHERE id = 1",
        "UPDATE OR IGNORE ledger SET delta = 1",
        "INSERT OR REPLACE INTO ledger SELECT * FROM ledger",
        "INSERT OR REPLACE INTO ledger SELECT * FROM ledger WHERE id = 1",
        "REPLACE INTO ledger SELECT * FROM ledger ORDER BY id DESC LIMIT 1",
        "INSERT INTO ledger SELECT * FROM ledger WHERE true ON CONFLICT DO UPDATE SET delta = 1"};
    static const char *const of_postgres[] = {
        "TRUNCATE ledger", "INSERT INTO ledger OVERRIDING SYSTEM VALUE SELECT * FROM ledger"
                           " ON CONFLICT (id) DO UPDATE SET delta = 1"};
    const char *const *own = pg_server ? of_postgres : of_sqlite;
    const size_t n_own =
        pg_server ? sizeof of_postgres / sizeof *of_postgres : sizeof of_sqlite / sizeof *of_sqlite;
    fixture_item(fixture, "1", 10);
    fixture_item(fixture, "2", 10);
    for (size_t i = 0; i < sizeof attempts / sizeof *attempts; i++)
        assert_true(fixture_sql_fails(fixture, attempts[i]));
    for (size_t i = 0; i < n_own; i++)
        assert_true(fixture_sql_fails(fixture, own[i]));
    assert_int_equal(2, fixture_sql_int(fixture, "SELECT count(*) FROM ledger WHERE delta = 10"
                                                 " AND id IN (SELECT id FROM ledger LIMIT 2)"));
}

/* A text without a NUL in its array is too long. */
#define OVERFILL(field) memset(field, 'x', sizeof(field))

TEST_THAT(text_that_is_too_long_or_missing_is_refused_not_cut)
{
    struct fixture *fixture = *state;
    db *store = fixture->store;
    const db_order order = {
        .id = "o", .item_id = "1", .user_id = "u", .quantity = 1, .item_epoch = 1};
    const db_answer answer = {.key = "k"};
    const db_ledger_row row = {.resource = "item:1", .txn_id = "t"};
    db_order orders[] = {order, order, order, order, order, order, order};
    OVERFILL(orders[0].id);
    OVERFILL(orders[1].item_id);
    OVERFILL(orders[2].user_id);
    orders[3].id[0] = '\0';
    orders[4].state = (db_order_state)5;
    orders[5].quantity = 0;
    orders[6].item_epoch = 0;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
        assert_int_equal(DB_INVALID, db_run(store, work_insert_order, &orders[i], NULL));
    db_answer answers[] = {answer, answer, answer, answer};
    OVERFILL(answers[0].key);
    OVERFILL(answers[1].request);
    OVERFILL(answers[2].body);
    answers[3].key[0] = '\0';
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        assert_int_equal(DB_INVALID, db_run(store, work_insert_answer, &answers[i], NULL));
    db_ledger_row rows[] = {row, row, row, row, row, row, row, row, row, row, row, row};
    OVERFILL(rows[0].resource);
    OVERFILL(rows[1].txn_id);
    OVERFILL(rows[2].guard);
    OVERFILL(rows[3].instance);
    rows[4].fence = -1;
    rows[5].after = 1;
    OVERFILL(rows[6].order_id);
    OVERFILL(rows[7].counterpart);
    OVERFILL(rows[8].reason);
    OVERFILL(rows[9].hash);
    strcpy(rows[10].reference, "two\nlines");
    rows[11].kind = DB_KINDS;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(DB_INVALID, db_run(store, work_append_ledger, &rows[i], NULL));
    db_item items[] = {{.id = ""}, {.id = "1"}, {.id = "1"}};
    OVERFILL(items[1].id);
    OVERFILL(items[2].guard);
    for (size_t i = 0; i < sizeof items / sizeof *items; i++)
        assert_int_equal(DB_INVALID, db_run(store, work_reset_item, &items[i], NULL));
    assert_int_equal(0, fixture_sql_int(fixture, "SELECT (SELECT count(*) FROM orders)"
                                                 " + (SELECT count(*) FROM idempotency)"
                                                 " + (SELECT count(*) FROM ledger)"
                                                 " + (SELECT count(*) FROM items)"));
    char id[DB_KEY_MAX + 2];
    memset(id, 'x', sizeof id);
    id[sizeof id - 1] = '\0';
    db_answer nothing;
    assert_int_equal(DB_NOT_FOUND, db_read_answer(fixture->reader, id, &nothing));
}
