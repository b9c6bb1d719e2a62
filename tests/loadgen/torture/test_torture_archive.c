/* The judge of torture, when rows of the ledger were moved to an archive: a store and an archive
 * that are whole together hold; each row that is lost, twice or changed is found. */
#include "torture_judge.h"
#include "tests.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/test-torture-XXXXXX";
static char store[64], url[80], archive[64], books[64];

#define LEDGER                                                                                     \
    "id INTEGER PRIMARY KEY, resource, epoch, version_before, txn_id, delta, before, after,"       \
    " counterpart DEFAULT '', fence DEFAULT 0, guard DEFAULT 'mutex', instance, kind, order_id,"   \
    " reason, reference, at_us, hash"
#define INTO "(id, resource, epoch, version_before, txn_id, delta, before, after, counterpart)"

/* What was told. */
#define ANSWER_O1 "{\"order_id\":\"o1\",\"stock_before\":3,\"stock_after\":2,\"version\":2}"
#define ANSWER_C1 "{\"balance_before\":100,\"balance_after\":105,\"version\":2}"
#define ANSWER_O2 "{\"order_id\":\"o2\",\"stock_before\":2,\"stock_after\":1,\"version\":3}"
#define ANSWER_C2 "{\"balance_before\":105,\"balance_after\":111,\"version\":3}"

/* What the judge reads. One order and one deposit are moved, one of each is not. */
static const char store_rows[] =
    "CREATE TABLE items (id, initial_stock, stock, per_user_limit, epoch);"
    "CREATE TABLE accounts (id, initial_balance, balance, epoch);"
    "CREATE TABLE orders (id, item_id, user_id, quantity, state, item_epoch);"
    "CREATE TABLE idempotency (key, http_status, body);"
    "CREATE TABLE ledger (" LEDGER ");"
    "CREATE TABLE archives (part, n, last_id, digest);"
    "CREATE TABLE carried (resource, total, last_id);"
    "INSERT INTO items VALUES ('i0', 3, 1, 0, 1);"
    "INSERT INTO accounts VALUES ('u0', 100, 111, 1);"
    "INSERT INTO orders VALUES ('o1', 'i0', 'u0', 1, 0, 1), ('o2', 'i0', 'u0', 1, 0, 1);"
    "INSERT INTO idempotency VALUES ('order-0-1', 201, '" ANSWER_O1 "'),"
    " ('change-0-1', 201, '" ANSWER_C1 "'), ('order-0-2', 201, '" ANSWER_O2 "'),"
    " ('change-0-2', 201, '" ANSWER_C2 "');"
    "INSERT INTO ledger " INTO " VALUES (5, 'item:i0', 1, 2, 'order-0-2', -1, 2, 1, ''),"
    " (6, 'account:u0', 1, 2, 'change-0-2', 6, 105, 111, 'shop:cash'),"
    " (7, 'shop:cash', 0, 0, 'change-0-2', -6, 0, -6, 'account:u0');"
    "INSERT INTO archives VALUES (1, 1, 1, 'd1'), (2, 3, 4, 'd2');"
    "INSERT INTO carried VALUES ('item:i0', -1, 2), ('account:u0', 5, 3), ('shop:cash', -5, 4);";

static const char archive_rows[] =
    "CREATE TABLE parts (part, n, last_id, digest);"
    "CREATE TABLE ledger (" LEDGER ", seq, part);"
    "INSERT INTO parts VALUES (1, 1, 1, 'd1'), (2, 3, 4, 'd2');"
    "INSERT INTO ledger " INTO " VALUES (1, 'item:i0', 1, 0, 'reset\tx', 0, 3, 3, ''),"
    " (2, 'item:i0', 1, 1, 'order-0-1', -1, 3, 2, ''),"
    " (3, 'account:u0', 1, 1, 'change-0-1', 5, 100, 105, 'shop:cash'),"
    " (4, 'shop:cash', 0, 0, 'change-0-1', -5, 0, -5, 'account:u0');"
    "UPDATE ledger SET seq = id, part = 1 + (id > 1);";

static const char told[] =
    "{\"event\":\"run\",\"format\":1}\n"
    "{\"event\":\"resource\",\"resource\":\"item:i0\",\"initial\":3,\"version\":1,\"limit\":0}\n"
    "{\"event\":\"resource\",\"resource\":\"account:u0\",\"initial\":100,\"version\":1}\n";

static void write_answer(FILE *out, int at, const char *key, const char *path, const char *body,
                         const char *answer)
{
    fprintf(out, "{\"event\":\"invoke\",\"at_us\":%d,\"key\":\"%s\",\"path\":\"%s\",\"body\":%s}\n",
            at, key, path, body);
    fprintf(out,
            "{\"event\":\"complete\",\"at_us\":%d,\"key\":\"%s\",\"end\":\"answered\","
            "\"status\":201,\"body\":%s}\n",
            at + 1, key, answer);
}

static void write_books(void)
{
    static const char order[] = "{\"user_id\":\"u0\",\"quantity\":1}";
    FILE *out = fopen(books, "we");
    assert_non_null(out);
    fputs(told, out);
    write_answer(out, 1, "order-0-1", "/v1/items/i0/orders", order, ANSWER_O1);
    write_answer(out, 3, "change-0-1", "/v1/accounts/u0/transactions", "{\"amount\":5}", ANSWER_C1);
    write_answer(out, 5, "order-0-2", "/v1/items/i0/orders", order, ANSWER_O2);
    write_answer(out, 7, "change-0-2", "/v1/accounts/u0/transactions", "{\"amount\":6}", ANSWER_C2);
    assert_int_equal(0, fclose(out));
}

static void write_file(const char *path, const char *rows, const char *more)
{
    sqlite3 *sqlite;
    char *message = NULL;
    unlink(path);
    assert_int_equal(sqlite3_open(path, &sqlite), SQLITE_OK);
    if (sqlite3_exec(sqlite, rows, NULL, NULL, &message) != SQLITE_OK ||
        sqlite3_exec(sqlite, more, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s", message);
    sqlite3_close(sqlite);
}

static struct torture_verdict judge(const char *in_store, const char *in_archive)
{
    struct torture_verdict verdict;
    write_file(store, store_rows, in_store);
    write_file(archive, archive_rows, in_archive);
    assert_int_equal(torture_judge(books, url, archive, true, &verdict), 0);
    return verdict;
}

TEST_THAT(a_store_and_an_archive_that_are_whole_together_hold)
{
    const struct torture_verdict verdict = judge("", "");
    if (verdict.violations != 0)
        fail_msg("%s", verdict.first);
    assert_int_equal(verdict.decided, 4);
}

TEST_THAT(a_store_whose_archive_is_not_read_has_lost_rows)
{
    struct torture_verdict verdict;
    write_file(store, store_rows, "");
    assert_int_equal(torture_judge(books, url, NULL, true, &verdict), 0);
    assert_true(verdict.violations > 0);
}

static const struct planted {
    const char *what, *in_store, *in_archive, *found;
} planted[] = {
    {"a row that left the store and did not arrive", "",
     "DELETE FROM ledger WHERE id = 2; UPDATE parts SET n = 2 WHERE part = 2",
     "the chain of a resource has a gap: item:i0 version 2"},
    {"a row that was moved and stayed",
     "INSERT INTO ledger " INTO " VALUES (2, 'item:i0', 1, 1, 'order-0-1', -1, 3, 2, '')", "",
     "two changes were made from one reading: item:i0 version 1"},
    {"a leg that was moved and stayed",
     "INSERT INTO ledger " INTO
     " VALUES (4, 'shop:cash', 0, 0, 'change-0-1', -5, 0, -5, 'account:u0')",
     "", "one key changed one thing twice: shop:cash change-0-1"},
    {"a part that is in the file, and not out of the store", "DELETE FROM archives WHERE part = 2",
     "", "a part in the archive is not out of the store: part 2"},
    {"a part that the file lacks", "INSERT INTO archives VALUES (3, 0, 4, 'd3')", "",
     "a part out of the store is not in the archive: part 3"},
    {"a part of other rows", "UPDATE archives SET digest = 'd' WHERE part = 2", "",
     "a part in the archive is not out of the store: part 2"},
    {"a part that says too many rows", "UPDATE archives SET n = 4 WHERE part = 2",
     "UPDATE parts SET n = 4 WHERE part = 2", "a part has other rows than it says: part 2"},
    {"a wrong sum that is carried", "UPDATE carried SET total = 6 WHERE resource = 'account:u0'",
     "", "what is carried is not the sum of the rows that were moved: account:u0: 6"},
    {"nothing that is carried", "DELETE FROM carried WHERE resource = 'shop:cash'", "",
     "what is carried is not the sum of the rows that were moved: shop:cash: 0"},
    {"half a movement of money",
     "INSERT INTO ledger " INTO
     " VALUES (4, 'shop:cash', 0, 0, 'change-0-1', -5, 0, -5, 'account:u0');"
     "DELETE FROM carried WHERE resource = 'shop:cash'; UPDATE archives SET n = 2 WHERE part = 2",
     "DELETE FROM ledger WHERE id = 4; UPDATE parts SET n = 2 WHERE part = 2",
     "a movement of money is in the archive by half: change-0-1"},
    {"a leg that is lost", "DELETE FROM carried WHERE resource = 'shop:cash'",
     "DELETE FROM ledger WHERE id = 4; UPDATE parts SET n = 3 WHERE part = 2",
     "a part has other rows than it says: part 2"},
    {"a row that was changed in the file", "", "UPDATE ledger SET delta = -2 WHERE id = 2",
     "a row does not add up: item:i0 2"},
};

TEST_THAT(each_planted_violation_is_found)
{
    for (size_t i = 0; i < sizeof planted / sizeof *planted; i++) {
        const struct planted *one = &planted[i];
        const struct torture_verdict verdict = judge(one->in_store, one->in_archive);
        if (verdict.violations == 0 || strncmp(verdict.first, one->found, strlen(one->found)) != 0)
            fail_msg("%s: found %d: %s", one->what, (int)verdict.violations, verdict.first);
    }
}

TEST_THAT(an_archive_that_cannot_be_read_is_no_verdict)
{
    struct torture_verdict verdict;
    write_file(store, store_rows, "");
    unlink(archive);
    assert_int_equal(torture_judge(books, url, archive, true, &verdict), -1);
    assert_true(verdict.violations > 0);
}

static int open_folder(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(store, sizeof store, "%s/store.db", folder);
    snprintf(url, sizeof url, "sqlite:%s", store);
    snprintf(archive, sizeof archive, "%s/archive.db", folder);
    snprintf(books, sizeof books, "%s/books.jsonl", folder);
    write_books();
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(store);
    unlink(archive);
    unlink(books);
    return rmdir(folder);
}

GROUP_FIXTURE(open_folder, remove_folder);
