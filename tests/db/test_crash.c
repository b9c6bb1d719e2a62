/* kill -9 during many sales: afterwards every acknowledged sale is stored, none twice. */
#include "child.h"

#include <pthread.h>

enum { THREADS = 4 };

struct life {
    const char *url;
    int number;
};

struct seller {
    pthread_t thread;
    db *store;
    int life, number, report;
};

struct sale {
    char key[DB_ID_MAX + 1]; /* the id of order, transaction and answer */
};

static db_status work_sell(db_tx *tx, void *arg)
{
    const struct sale *sale = arg;
    db_item item;
    db_order order = {.item_id = "1", .user_id = "u", .quantity = 1};
    db_ledger_row row = {.resource = "item:1", .delta = -1};
    db_answer answer = {.request = "order", .http_status = 201, .body = "{}"};
    db_status status = db_tx_read_item(tx, "1", true, &item);
    if (status != DB_OK || (status = db_tx_add_item(tx, &item, -1)) != DB_OK)
        return status;
    memcpy(order.id, sale->key, sizeof sale->key);
    memcpy(row.txn_id, sale->key, sizeof sale->key);
    memcpy(answer.key, sale->key, sizeof sale->key);
    order.item_epoch = row.epoch = item.epoch;
    row.after = item.stock;
    row.before = item.stock + 1;
    row.version_before = item.version - 1;
    if ((status = db_tx_insert_answer(tx, &answer)) != DB_OK ||
        (status = db_tx_insert_order(tx, &order)) != DB_OK)
        return status;
    db_ledger_seal(&row, item.chain);
    status = db_tx_chain_item(tx, &item);
    return status == DB_OK ? db_tx_append_ledger(tx, &row) : status;
}

/* Acknowledges each sale after db_run() has returned, by one write of the key. */
static void *seller_main(void *arg)
{
    struct seller *seller = arg;
    for (int i = 0;; i++) {
        struct sale sale = {""};
        snprintf(sale.key, sizeof sale.key, "l%d-t%d-%d", seller->life, seller->number, i);
        if (db_run(seller->store, work_sell, &sale, NULL) != DB_OK)
            _exit(3);
        if (write(seller->report, sale.key, sizeof sale.key) != (ssize_t)sizeof sale.key)
            _exit(4);
    }
    return NULL;
}

static int live_and_sell(void *arg, int report)
{
    const struct life *life = arg;
    struct seller sellers[THREADS];
    db *store;
    if (db_open(&(db_options){.url = life->url}, &store, NULL) != DB_OK)
        return 1;
    for (int i = 0; i < THREADS; i++) {
        sellers[i] =
            (struct seller){.store = store, .life = life->number, .number = i, .report = report};
        if (pthread_create(&sellers[i].thread, NULL, seller_main, &sellers[i]) != 0)
            return 2;
    }
    pthread_join(sellers[0].thread, NULL); /* never */
    return 0;
}

struct acknowledged {
    char (*keys)[DB_ID_MAX + 1];
    size_t n, room;
};

static bool hear_key(const struct child *child, struct acknowledged *all)
{
    if (all->n == all->room) {
        all->room = all->room ? 2 * all->room : 1024;
        all->keys = realloc(all->keys, all->room * sizeof *all->keys);
        assert_non_null(all->keys);
    }
    ssize_t got = read(child->from, all->keys[all->n], sizeof *all->keys);
    if (got != (ssize_t)sizeof *all->keys)
        return false;
    all->n++;
    return true;
}

static void expect_all_there(struct fixture *fixture, const struct acknowledged *all, size_t from)
{
    for (size_t i = from; i < all->n; i++) {
        db_answer answer;
        db_order order;
        assert_int_equal(DB_OK, db_read_answer(fixture->reader, all->keys[i], &answer));
        assert_int_equal(DB_OK, db_read_order(fixture->reader, all->keys[i], &order));
    }
    db_audit_row row = fixture_audit(fixture, "item:1");
    assert_true(row.ok); /* no duplicate, no gap, sold as many as the ledger says */
    assert_true(row.sold >= (int64_t)all->n);
}

TEST_THAT_WITH(every_acknowledged_sale_survives_kill_9, fixture_setup, fixture_teardown)
{
    struct fixture *fixture = *state;
    struct acknowledged all = {0};
    unsigned seed = 1;
    fixture_item(fixture, "1", INT64_MAX);
    for (int i = 0; i < full_or(500, 30); i++) {
        fixture_close(fixture);
        struct life life = {fixture->url, i};
        size_t known = all.n, goal = known + (size_t)(rand_r(&seed) % 120);
        struct child child = child_start(live_and_sell, &life);
        while (all.n < goal && hear_key(&child, &all))
            continue;
        kill(child.pid, SIGKILL);
        while (hear_key(&child, &all)) /* acknowledged before it died */
            continue;
        int status = child_reap(&child);
        assert_true(WIFSIGNALED(status));
        fixture_open(fixture, NULL);
        expect_all_there(fixture, &all, known);
    }
    expect_all_there(fixture, &all, 0);
    assert_int_equal(0, fixture_sql_int(fixture, "SELECT (SELECT count(*) FROM orders)"
                                                 " - (SELECT count(*) FROM idempotency)"));
    assert_int_equal(1, fixture_sql_int(fixture, "SELECT integrity_check = 'ok'"
                                                 " FROM pragma_integrity_check"));
    print_message("%zu acknowledged sales\n", all.n);
    free(all.keys);
}
