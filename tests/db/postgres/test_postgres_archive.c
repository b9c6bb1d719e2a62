/* The archive beside instances that sell: whatever order transactions are committed in, each row is
 * once in the store or in the archive. A transaction that stays open holds the archive up, which
 * names it; its row comes late, and is moved by the next archive. */
#include "archive_rig.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

enum { SELLERS = 3, ARCHIVES = 5, ORDERS = 400 /* of a seller at most */ };

static db_status move_beside(struct fixture *fixture, int64_t before_us, archive_moved *ret)
{
    const db_options options = {.url = fixture->url};
    db_error error = {.message = ""};
    const db_status status = archive_move(&options, before_us, archive, ret, &error);
    if (status != DB_OK)
        fail_msg("archive_move: %s", error.message);
    return status;
}

/* -- a transaction that is late ---------------------------------------------------------------- */

struct late {
    db *store;
    const char *shop;    /* NULL: its cash */
    bool waits_to_write; /* it has its place in the feed already */
    sem_t waits, may_go_on;
    db_status status;
    int runs;
};

static void wait_once(struct late *late)
{
    if (late->runs++ > 0)
        return;
    sem_post(&late->waits);
    sem_wait(&late->may_go_on);
}

/* Takes 1 from account "b", against a side of the shop. */
static db_status work_late(db_tx *tx, void *arg)
{
    struct late *late = arg;
    const struct sale sale = {"", "late", DB_KIND_CHANGE};
    db_account account;
    db_ledger_row row = row_of(tx, &sale, "account:b"), leg;
    db_status status = db_tx_read_account(tx, "b", true, &account);
    if (status != DB_OK)
        return status;
    if (late->waits_to_write)
        wait_once(late);
    snprintf(row.counterpart, sizeof row.counterpart, "%s", late->shop ? late->shop : DB_SHOP_CASH);
    row.epoch = account.epoch;
    row.delta = -1;
    row.before = account.balance;
    row.after = --account.balance;
    row.version_before = account.version++;
    db_ledger_seal(&row, account.chain);
    db_ledger_shop_leg(&row, &leg);
    if ((status = db_tx_put_account(tx, &account, &anyhow)) != DB_OK ||
        (status = db_tx_append_ledger(tx, &row)) != DB_OK ||
        (status = db_tx_append_ledger(tx, &leg)) != DB_OK)
        return status;
    status = db_tx_read_account(tx, "b", true, &account); /* all was sent, and has its number */
    wait_once(late);
    return status;
}

static void *late_main(void *arg)
{
    struct late *late = arg;
    late->status = db_run(late->store, work_late, late, NULL);
    return NULL;
}

/* Begins the transaction, and returns when it waits. */
static pthread_t start_late(struct late *late)
{
    pthread_t thread;
    sem_init(&late->waits, 0, 0);
    sem_init(&late->may_go_on, 0, 0);
    assert_int_equal(0, pthread_create(&thread, NULL, late_main, late));
    sem_wait(&late->waits);
    return thread;
}

static void end_late(struct late *late, pthread_t thread)
{
    sem_post(&late->may_go_on);
    pthread_join(thread, NULL);
    assert_int_equal(DB_OK, late->status);
    sem_destroy(&late->waits);
    sem_destroy(&late->may_go_on);
}

TEST_FIXTURE(set_up, fixture_teardown);
ON_POSTGRES;

TEST_THAT(a_late_row_is_moved_by_the_next_archive)
{
    struct fixture *fixture = *state;
    archive_moved moved;
    char process[64];
    old_month(fixture);
    const int64_t old_rows = rows_in(fixture);
    struct late late = {.store = fixture->store};
    const pthread_t thread = start_late(&late);
    char *pid = pg_value(fixture->url, "SELECT pid FROM pg_stat_activity WHERE backend_xid IS NOT"
                                       " NULL AND pid <> pg_backend_pid()");
    const int64_t end = cut_now(fixture);
    new_month(fixture); /* others sell meanwhile */
    move_beside(fixture, end, &moved);
    assert_true(moved.rows > 0 && moved.rows <= old_rows);
    snprintf(process, sizeof process, "process %s ", pid);
    if (strstr(moved.held, process) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", moved.held, process);
    const int64_t first = moved.rows;
    end_late(&late, thread);
    expect_sound(fixture);
    assert_int_equal(2, fixture_sql_int(fixture, "SELECT count(*) FROM ledger"
                                                 " WHERE txn_id = 'late'"));
    move_beside(fixture, end, &moved);
    assert_string_equal("", moved.held);
    assert_int_equal(old_rows + 2, first + moved.rows);
    assert_int_equal(5, rows_in(fixture));
    expect_sound(fixture);
    free(pid);
}

/* A shop's side has no lock. So a row may have a greater number than one that comes later in the
 * feed, and is moved later. */
TEST_THAT(a_shops_rows_are_carried_whatever_the_order_of_their_numbers)
{
    struct fixture *fixture = *state;
    archive_moved moved;
    old_month(fixture);
    struct late late = {.store = fixture->store, .shop = DB_SHOP_REVENUE, .waits_to_write = true};
    const pthread_t thread = start_late(&late);
    const int64_t end = cut_now(fixture);
    order_and_pay(fixture, "o4");
    end_late(&late, thread);
    const int64_t next_end = cut_now(fixture);
    order_and_pay(fixture, "o5");
    assert_true(fixture_sql_int(fixture, "SELECT id FROM ledger WHERE txn_id = 'late'"
                                         " AND resource = 'shop:revenue'") >
                fixture_sql_int(fixture, "SELECT id FROM ledger WHERE txn_id = 'o4-p'"
                                         " AND resource = 'shop:revenue'"));
    move_beside(fixture, end, &moved);
    assert_int_equal(0, fixture_sql_int(fixture, "SELECT count(*) FROM ledger"
                                                 " WHERE txn_id = 'late'"));
    assert_int_equal(3, fixture_sql_int(fixture, "SELECT count(*) FROM ledger"
                                                 " WHERE order_id = 'o4'"));
    expect_sound(fixture);
    move_beside(fixture, next_end, &moved);
    assert_int_equal(3, moved.rows);
    expect_sound(fixture);
}

/* A part may be long: its statement has the time limit of an audit. Usually it is 8 s. */
TEST_THAT(a_long_part_has_its_time)
{
    struct fixture *fixture = *state;
    archive_moved moved;
    const int64_t end = old_month(fixture), old_rows = rows_in(fixture);
    new_month(fixture);
    fixture_sql(fixture, "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS"
                         " $$ BEGIN PERFORM pg_sleep(9); RETURN NULL; END $$;"
                         "CREATE TRIGGER slow BEFORE DELETE ON ledger EXECUTE FUNCTION slow()");
    move_beside(fixture, end, &moved);
    assert_int_equal(old_rows, moved.rows);
    expect_sound(fixture);
}

/* -- beside sales -------------------------------------------------------------------------------
 */

struct seller {
    db *store;
    int number, sold;
    atomic_bool *stop;
};

/* Each order is paid. The rows of an item and of an account are locked while they change. */
static void *seller_main(void *arg)
{
    struct seller *seller = arg;
    for (int i = 0; i < full_or(10 * ORDERS, ORDERS) && !atomic_load(seller->stop); i++) {
        char order[32], key[40], payment[40];
        snprintf(order, sizeof order, "s%d-%d", seller->number, i);
        snprintf(key, sizeof key, "%s-k", order);
        snprintf(payment, sizeof payment, "%s-p", order);
        struct sale sale = {order, key, DB_KIND_ORDER}, pays = {order, payment, DB_KIND_PAYMENT};
        if (db_run(seller->store, work_order, &sale, NULL) == DB_OK &&
            db_run(seller->store, work_money, &pays, NULL) == DB_OK)
            seller->sold++;
    }
    return NULL;
}

TEST_THAT(months_are_moved_while_instances_sell)
{
    struct fixture *fixture = *state;
    struct seller sellers[SELLERS];
    pthread_t threads[SELLERS];
    atomic_bool stop = false;
    archive_moved moved;
    int64_t rows = 0;
    int sold = 0;
    fixture_item(fixture, "1", 1000000);
    fixture_account(fixture, "a", 1000000000);
    fixture_account(fixture, "b", 5);
    for (int i = 0; i < SELLERS; i++) {
        sellers[i] = (struct seller){fixture->store, i, 0, &stop};
        assert_int_equal(0, pthread_create(&threads[i], NULL, seller_main, &sellers[i]));
    }
    for (int i = 0; i < full_or(10 * ARCHIVES, ARCHIVES) || rows < 30; i++) {
        move_beside(fixture, cut_now(fixture), &moved);
        rows += moved.rows;
        assert_string_equal("", bad_resource(fixture));
    }
    atomic_store(&stop, true);
    for (int i = 0; i < SELLERS; i++) {
        pthread_join(threads[i], NULL);
        sold += sellers[i].sold;
    }
    expect_sound(fixture);
    assert_int_equal(rows, prove(fixture).rows);
    assert_int_equal(sold, fixture_sql_int(fixture, "SELECT count(*) FROM orders WHERE state = 1"));
    assert_true(rows + rows_in(fixture) >= 5 + 3 * sold);
}
