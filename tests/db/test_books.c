/* The books stand alone: hashes that another program computes alike, legs that sum to zero, orders
 * that are paid. Each kind of damage is planted in clean books. */
#include "damage.h"

struct payment {
    const char *order_id, *txn_id;
    db_kind kind;
    db_order_state state; /* of the order, after it */
};

/* Moves 30 between account "a" and the shop. */
static db_status work_pay(db_tx *tx, void *arg)
{
    const struct payment *payment = arg;
    const int64_t delta = payment->kind == DB_KIND_REFUND ? 30 : -30;
    db_account account;
    db_order order = {.item_id = "1", .user_id = "a", .quantity = 1, .amount = 30, .item_epoch = 1};
    db_ledger_row row = {.resource = "account:a",
                         .kind = payment->kind,
                         .delta = delta,
                         .counterpart = DB_SHOP_REVENUE,
                         .at_us = db_tx_now_us(tx),
                         .guard = "none",
                         .instance = "test"},
                  leg;
    db_status status = db_tx_read_account(tx, "a", true, &account);
    if (status != DB_OK)
        return status;
    snprintf(row.txn_id, sizeof row.txn_id, "%s", payment->txn_id);
    snprintf(row.order_id, sizeof row.order_id, "%s", payment->order_id);
    snprintf(order.id, sizeof order.id, "%s", payment->order_id);
    order.state = payment->state;
    row.before = account.balance;
    row.after = account.balance += delta;
    row.version_before = account.version++;
    row.epoch = account.epoch;
    db_ledger_seal(&row, account.chain);
    db_ledger_shop_leg(&row, &leg);
    if ((status = db_tx_put_account(tx, &account, &any)) != DB_OK ||
        (status = db_tx_append_ledger(tx, &row)) != DB_OK ||
        (status = db_tx_append_ledger(tx, &leg)) != DB_OK)
        return status;
    order.version = 2;
    const db_put anyhow = {.expected_version = -1, .item_guard = ""};
    return payment->kind == DB_KIND_REFUND ? db_tx_put_order(tx, &order, &anyhow)
                                           : db_tx_insert_order(tx, &order);
}

static db_books books_of(struct fixture *fixture)
{
    db_books books;
    db_error error = {.message = ""};
    if (db_audit_books(fixture->reader, &books, &error) != DB_OK)
        fail_msg("db_audit_books: %s", error.message);
    return books;
}

/* Four movements: the account is created, two orders are paid, one of them is refunded. */
static void keep_books(struct fixture *fixture)
{
    struct payment payments[] = {{"o1", "p1", DB_KIND_PAYMENT, DB_PAID},
                                 {"o2", "p2", DB_KIND_PAYMENT, DB_PAID},
                                 {"o1", "r1", DB_KIND_REFUND, DB_REFUNDED}};
    fixture_item(fixture, "1", 10);
    fixture_account(fixture, "a", 1000);
    for (size_t i = 0; i < sizeof payments / sizeof *payments; i++)
        assert_int_equal(DB_OK, db_run(fixture->store, work_pay, &payments[i], NULL));
}

TEST_FIXTURE(fixture_setup, fixture_teardown);
ON_BOTH_ENGINES;

TEST_THAT(clean_books_are_balanced_and_paid)
{
    keep_books(*state);
    db_books books = books_of(*state);
    assert_true(books.ok);
    assert_int_equal(4, books.transactions);
    assert_true(fixture_audit(*state, "account:a").ok);
    assert_int_equal(970, fixture_audit(*state, "account:a").current);
}

TEST_THAT(empty_books_are_ok)
{
    db_books books = books_of(*state);
    assert_true(books.ok);
    assert_int_equal(0, books.transactions);
}

TEST_THAT_WITH(damage_to_the_books_is_counted, NULL, NULL)
{
    static const struct {
        const char *sql;
        int64_t unbalanced, unchained, total, unpaid, in_account;
    } cases[] = {
        {"DELETE FROM ledger WHERE txn_id = 'p1' AND resource = 'shop:revenue'", 1, 0, -30, 0, 0},
        {"DELETE FROM ledger WHERE txn_id = 'r1' AND resource = 'account:a'", 1, 1, -30, 1, 1},
        {"UPDATE ledger SET delta = 31, after = 31 WHERE txn_id = 'p1' AND resource ="
         " 'shop:revenue'",
         1, 1, 1, 0, 0},
        {"UPDATE ledger SET counterpart = 'shop:cash' WHERE txn_id = 'p1' AND resource ="
         " 'account:a'",
         1, 0, 0, 0, 1},
        {"UPDATE ledger SET reason = 'x' WHERE txn_id = 'p2'", 0, 1, 0, 0, 1},
        {"UPDATE ledger SET at_us = at_us - 1 WHERE txn_id = 'r1' AND resource = 'shop:revenue'", 0,
         1, 0, 0, 0},
        {"UPDATE ledger SET hash = '' WHERE txn_id = 'p1' AND resource = 'account:a'", 0, 1, 0, 0,
         2},
        {"INSERT INTO ledger (resource, epoch, version_before, txn_id, delta, before, after, fence,"
         " guard, instance, kind, at_us) VALUES ('shop:cash', 0, 0, 'p1', 0, 0, 0, 0, '', '',"
         " 'payment', 0)",
         1, 1, 0, 0, 0},
        {"UPDATE orders SET state = 1 WHERE id = 'o1'", 0, 0, 0, 1, 0},
        {"UPDATE orders SET state = 2 WHERE id = 'o2'", 0, 0, 0, 1, 0},
        {"UPDATE orders SET amount = 9223372036854775807 WHERE id = 'o2'", 0, 0, 0, 1, 0},
        {"UPDATE accounts SET chain = ''", 0, 0, 0, 0, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture fixture = fixture_folder();
        fixture_open(&fixture, NULL);
        keep_books(&fixture);
        plant(&fixture, cases[i].sql);
        db_books books = books_of(&fixture);
        db_audit_row row = fixture_audit(&fixture, "account:a");
        if (books.unbalanced != cases[i].unbalanced || books.unchained != cases[i].unchained ||
            books.total != cases[i].total || books.unpaid != cases[i].unpaid ||
            row.unchained != cases[i].in_account)
            fail_msg("%s: unbalanced %lld, unchained %lld, total %lld, unpaid %lld, account %lld",
                     cases[i].sql, (long long)books.unbalanced, (long long)books.unchained,
                     (long long)books.total, (long long)books.unpaid, (long long)row.unchained);
        assert_true(books.ok ==
                    (books.unbalanced + books.unchained + books.unpaid == 0 && books.total == 0));
        fixture_remove(&fixture);
    }
}

/* Both writers have read one row: two heirs of one predecessor, and both are whole. */
TEST_THAT(a_fork_leaves_two_heirs)
{
    struct fixture *fixture = *state;
    struct change change = {
        .account = fixture_account(fixture, "a", 100), .delta = -1, .txn_id = "A", .how = any};
    assert_int_equal(DB_OK, db_run(fixture->store, work_change, &change, NULL));
    change.txn_id = "B";
    assert_int_equal(DB_OK, db_run(fixture->store, work_change, &change, NULL));
    db_audit_row row = fixture_audit(fixture, "account:a");
    assert_int_equal(1, row.lost_updates);
    assert_int_equal(0, row.unchained);
    char hash[DB_HASH_LENGTH + 1];
    for (int side = 0; side < 2; side++) {
        db_ledger_hash(&row.forks[0][side], change.account.chain, hash);
        assert_string_equal(row.forks[0][side].hash, hash);
    }
    assert_string_not_equal(row.forks[0][0].hash, row.forks[0][1].hash);
}

TEST_THAT(a_chain_goes_on_over_resets)
{
    struct fixture *fixture = *state;
    keep_books(fixture);
    fixture_account(fixture, "a", 5);
    assert_true(fixture_audit(fixture, "account:a").ok);
    plant(fixture, "UPDATE ledger SET instance = 'x' WHERE txn_id = 'r1'");
    db_audit_row all = {.ok = true};
    assert_int_equal(DB_OK, db_audit(fixture->reader, NULL, keep_audit_row, &all, NULL));
    assert_true(fixture_audit(fixture, "account:a").ok); /* of its own epoch */
    assert_false(books_of(fixture).ok);
}

/* What sha256sum(1) says of a text: its \n and \t are as printf(1) takes them. */
static void sha256sum_of(const char *text, char ret[DB_HASH_LENGTH + 1])
{
    char command[4096 + 32];
    ret[0] = '\0';
    snprintf(command, sizeof command, "printf '%s' | sha256sum", text);
    FILE *pipe = popen(command, "re");
    assert_non_null(pipe);
    assert_int_equal(1, fscanf(pipe, "%64s", ret));
    assert_int_equal(0, pclose(pipe));
}

static int keep_first(void *arg, const db_ledger_row *row)
{
    *(db_ledger_row *)arg = *row;
    return 1;
}

/* The text is the one that README.md describes. */
TEST_THAT(another_program_computes_the_same_hash)
{
    struct fixture *fixture = *state;
    db_ledger_row row;
    db_feed_place place = {0};
    bool more;
    char text[512], hash[DB_HASH_LENGTH + 1];
    fixture_account(fixture, "a", -7);
    assert_int_equal(DB_OK,
                     db_read_ledger(fixture->reader, &place, 1, keep_first, &row, &place, &more));
    snprintf(text, sizeof text,
             "\\naccount:a\\n1\\nreset\\taccount:a:1\\n-7\\n0\\n-7\\n0\\n0\\nnone\\ntest\\n"
             "reset\\n\\nshop:equity\\n\\n\\n%lld\\n",
             (long long)row.at_us);
    sha256sum_of(text, hash);
    assert_string_equal(hash, row.hash);
}

/* No two fields are alike, so none may stand in the place of another. */
TEST_THAT(each_field_has_its_place_in_the_hash)
{
    static const db_ledger_row row = {.resource = "item:i",
                                      .epoch = 11,
                                      .txn_id = "txn",
                                      .delta = -12,
                                      .before = 13,
                                      .after = 1,
                                      .version_before = 14,
                                      .fence = 15,
                                      .guard = "guard",
                                      .instance = "instance",
                                      .kind = DB_KIND_ORDER,
                                      .order_id = "order-id",
                                      .counterpart = "counterpart",
                                      .reason = "reason",
                                      .reference = "reference",
                                      .at_us = 16,
                                      .id = 17,
                                      .hash = "hash"};
    char told[DB_HASH_LENGTH + 1], hash[DB_HASH_LENGTH + 1];
    db_ledger_hash(&row, "predecessor", hash);
    sha256sum_of("predecessor\\nitem:i\\n11\\ntxn\\n-12\\n13\\n1\\n14\\n15\\nguard\\ninstance\\n"
                 "order\\norder-id\\ncounterpart\\nreason\\nreference\\n16\\n",
                 told);
    assert_string_equal(told, hash);
}

#define FILL(text) memset(text, 'x', sizeof(text) - 1)

/* Each text as long as its column allows. */
static db_ledger_row widest_row(int64_t number)
{
    db_ledger_row row = {.kind = DB_KIND_CANCELLATION,
                         .delta = number,
                         .before = number,
                         .after = number,
                         .version_before = number,
                         .fence = number,
                         .epoch = number,
                         .at_us = number};
    FILL(row.resource);
    FILL(row.txn_id);
    FILL(row.order_id);
    FILL(row.counterpart);
    FILL(row.reason);
    FILL(row.reference);
    FILL(row.guard);
    FILL(row.instance);
    return row;
}

TEST_THAT(the_hash_has_all_of_the_widest_row)
{
    static const int64_t numbers[] = {INT64_MIN, INT64_MIN + 1, -10, -1, 0, 9, 10, INT64_MAX};
    char before[DB_HASH_LENGTH + 1] = "", text[4096], told[DB_HASH_LENGTH + 1],
                                 hash[DB_HASH_LENGTH + 1];
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        const long long n = numbers[i];
        const db_ledger_row row = widest_row(n);
        if (i > 0)
            FILL(before); /* the first row of a chain has none */
        snprintf(text, sizeof text,
                 "%s\\n%s\\n%lld\\n%s\\n%lld\\n%lld\\n%lld\\n%lld\\n%lld\\n%s\\n%s\\n%s\\n%s\\n%s"
                 "\\n%s\\n%s\\n%lld\\n",
                 before, row.resource, n, row.txn_id, n, n, n, n, n, row.guard, row.instance,
                 db_kind_text(row.kind), row.order_id, row.counterpart, row.reason, row.reference,
                 n);
        sha256sum_of(text, told);
        db_ledger_hash(&row, before, hash);
        assert_string_equal(told, hash);
    }
}
