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
    sem_t wrote, may_end;
    db_status status;
    int runs;
};

/* Takes 1 from account "b", against the shop's cash. */
static db_status work_late(db_tx *tx, void *arg)
{
    struct late *late = arg;
    const struct sale sale = {"", "late", DB_KIND_CHANGE};
    db_account account;
    db_ledger_row row = row_of(tx, &sale, "account:b"), leg;
    db_status status = db_tx_read_account(tx, "b", true, &account);
    if (status != DB_OK)
        return status;
    snprintf(row.counterpart, sizeof row.counterpart, "%s", DB_SHOP_CASH);
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
    if (late->runs++ == 0) {
        sem_post(&late->wrote);
        sem_wait(&late->may_end);
    }
    return status;
}

static void *late_main(void *arg)
{
    struct late *late = arg;
    late->status = db_run(late->store, work_late, late, NULL);
    return NULL;
}

static void a_late_row_is_moved_by_the_next_archive(void **state)
{
    struct fixture *fixture = *state;
    struct late late = {.runs = 0};
    pthread_t thread;
    archive_moved moved;
    char process[64];
    old_month(fixture);
    const int64_t old_rows = rows_in(fixture);
    late.store = fixture->store;
    sem_init(&late.wrote, 0, 0);
    sem_init(&late.may_end, 0, 0);
    assert_int_equal(0, pthread_create(&thread, NULL, late_main, &late));
    sem_wait(&late.wrote);
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
    sem_post(&late.may_end);
    pthread_join(thread, NULL);
    assert_int_equal(DB_OK, late.status);
    expect_sound(fixture);
    assert_int_equal(2, fixture_sql_int(fixture, "SELECT count(*) FROM ledger"
                                                 " WHERE txn_id = 'late'"));
    move_beside(fixture, end, &moved);
    assert_string_equal("", moved.held);
    assert_int_equal(old_rows + 2, first + moved.rows);
    assert_int_equal(5, rows_in(fixture));
    expect_sound(fixture);
    free(pid);
    sem_destroy(&late.wrote);
    sem_destroy(&late.may_end);
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

static void months_are_moved_while_instances_sell(void **state)
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

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, fixture_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_late_row_is_moved_by_the_next_archive),
        TEST(months_are_moved_while_instances_sell),
    };
    return RUN_ON_POSTGRES(tests);
}
