/* Two auditors that are not ours accept the exported books, and refuse them once they are damaged.
 */
#include "damage.h"
#include "journal_judges.h"

/* Pays 10 from account "a", whose id has every kind of letter. */
static db_status work_pay(db_tx *tx, void *arg)
{
    const char *txn_id = arg;
    db_account account;
    db_status status = db_tx_read_account(tx, "a_1-B", true, &account);
    db_ledger_row leg, row = {.resource = "account:a_1-B",
                              .kind = DB_KIND_CHANGE,
                              .delta = -10,
                              .counterpart = DB_SHOP_CASH,
                              .at_us = db_tx_now_us(tx),
                              .guard = "none",
                              .instance = "test"};
    if (status != DB_OK)
        return status;
    snprintf(row.txn_id, sizeof row.txn_id, "%s", txn_id);
    row.before = account.balance;
    row.after = account.balance -= 10;
    row.version_before = account.version++;
    row.epoch = account.epoch;
    db_ledger_seal(&row, account.chain);
    db_ledger_shop_leg(&row, &leg);
    if ((status = db_tx_put_account(tx, &account, &any)) != DB_OK ||
        (status = db_tx_append_ledger(tx, &row)) != DB_OK)
        return status;
    return db_tx_append_ledger(tx, &leg);
}

static void keep_books(struct fixture *fixture)
{
    fixture_item(fixture, "1", 10);
    fixture_account(fixture, "a_1-B", 1000);
    fixture_account(fixture, "debt", -5);
    assert_int_equal(DB_OK, db_run(fixture->store, work_pay, "p1", NULL));
    assert_int_equal(DB_OK, db_run(fixture->store, work_pay, "p\"2", NULL));
    fixture_account(fixture, "debt", 7);
}

ON_BOTH_ENGINES;

TEST_THAT(the_auditors_see_what_is_damaged)
{
    static const struct {
        const char *sql;
        bool hledger, beancount;
    } cases[] = {
        {"SELECT 1", true, true},
        {"DELETE FROM ledger WHERE txn_id = 'p1' AND resource = 'shop:cash'", false, false},
        {"DELETE FROM ledger WHERE txn_id = 'p1'", true, false}, /* by the balance */
        {"UPDATE ledger SET delta = delta - 1, after = after - 1 WHERE txn_id = 'p1' AND"
         " resource = 'account:a_1-B'",
         false, false},
        {"UPDATE accounts SET balance = balance + 1 WHERE id = 'a_1-B'", true, false},
        {"UPDATE ledger SET resource = 'account:none' WHERE resource = 'account:debt' AND"
         " epoch = 2",
         true, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture fixture = fixture_folder();
        fixture_open(&fixture, NULL);
        keep_books(&fixture);
        plant(&fixture, cases[i].sql);
        fixture_close(&fixture);
        struct journal_verdict verdict = journal_judge(fixture.url, fixture.folder);
        if (!verdict.written || verdict.hledger != cases[i].hledger ||
            verdict.beancount != cases[i].beancount)
            fail_msg("%s: written %d, hledger %d, bean-check %d", cases[i].sql, verdict.written,
                     verdict.hledger, verdict.beancount);
        fixture_remove(&fixture);
    }
}
