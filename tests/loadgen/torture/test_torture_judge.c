/* The judge of torture: books and rows that agree hold; each planted violation is found. */
#include "torture_books.h"
#include "tests.h"
#include "torture_judge.h"
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/test-torture-XXXXXX";
static char file[64], url[80], books[64];

/* The columns that the judge reads. */
static const char tables[] =
    "CREATE TABLE items (id, initial_stock, stock, per_user_limit, epoch);"
    "CREATE TABLE accounts (id, initial_balance, balance, epoch);"
    "CREATE TABLE orders (id, item_id, user_id, quantity, state, item_epoch);"
    "CREATE TABLE ledger (id INTEGER PRIMARY KEY, resource, epoch, version_before, txn_id, delta,"
    " before, after, fence, guard);"
    "CREATE TABLE idempotency (key, http_status, body);"
    "INSERT INTO items VALUES ('i0', 3, 0, 0, 1);"
    "INSERT INTO accounts VALUES ('u0', 100, 90, 1), ('u1', 100, 110, 1);"
    "INSERT INTO orders VALUES ('o1', 'i0', 'u0', 2, 0, 1), ('o2', 'i0', 'u1', 1, 0, 1);"
    "INSERT INTO ledger VALUES"
    " (1, 'item:i0', 1, 0, 'reset\tx', 0, 3, 3, 0, 'redis-token'),"
    " (2, 'account:u0', 1, 0, 'reset\ty', 0, 100, 100, 0, 'redis-token'),"
    " (3, 'account:u1', 1, 0, 'reset\tz', 0, 100, 100, 0, 'redis-token'),"
    " (4, 'item:i0', 1, 1, 'order-0-1', -2, 3, 1, 7, 'redis-token'),"
    " (5, 'item:i0', 1, 2, 'order-1-1', -1, 1, 0, 9, 'redis-token'),"
    " (6, 'account:u0', 1, 1, 'move-0-2', -10, 100, 90, 3, 'redis-token'),"
    " (7, 'account:u1', 1, 1, 'move-0-2', 10, 100, 110, 4, 'redis-token');"
    "INSERT INTO idempotency VALUES"
    " ('order-0-1', 201, "
    "'{\"order_id\":\"o1\",\"stock_before\":3,\"stock_after\":1,\"version\":2}'),"
    " ('order-1-1', 201, "
    "'{\"order_id\":\"o2\",\"stock_before\":1,\"stock_after\":0,\"version\":3}'),"
    " ('order-0-3', 409, '{\"type\":\"/problems/sold-out\"}'),"
    " ('move-0-2', 201, '{\"balance_before\":100,\"balance_after\":90,\"version\":2}');";

#define ASKED(at, key, path, body)                                                                 \
    "{\"event\":\"invoke\",\"at_us\":" #at ",\"key\":\"" key "\",\"path\":\"" path                 \
    "\",\"body\":" body "}\n"
#define TOLD(at, key, status, body)                                                                \
    "{\"event\":\"complete\",\"at_us\":" #at ",\"key\":\"" key                                     \
    "\",\"end\":\"answered\",\"status\":" #status ",\"body\":" body "}\n"

static const char right_books[] =
    "{\"event\":\"run\",\"format\":1}\n"
    "{\"event\":\"resource\",\"resource\":\"item:i0\",\"initial\":3,\"version\":1,\"limit\":0}\n"
    "{\"event\":\"resource\",\"resource\":\"account:u0\",\"initial\":100,\"version\":1}\n"
    "{\"event\":\"resource\",\"resource\":\"account:u1\",\"initial\":100,\"version\":1}\n" ASKED(
        1, "order-0-1", "/v1/items/i0/orders",
        "{\"user_id\":\"u0\",\"quantity\":2}") "{\"event\":\"complete\",\"at_us\":2,\"key\":"
                                               "\"order-0-1\",\"end\":\"broken\"}\n" ASKED(3,
                                                                                           "order-"
                                                                                           "0-1",
                                                                                           "/v1/"
                                                                                           "items/"
                                                                                           "i0/"
                                                                                           "orders",
                                                                                           "{\"user"
                                                                                           "_id\":"
                                                                                           "\"u0\","
                                                                                           "\"quant"
                                                                                           "ity\":"
                                                                                           "2}")
                                                   TOLD(4, "order-0-1", 201,
                                                        "{\"order_id\":\"o1\",\"stock_before\":3,"
                                                        "\"stock_after\":1,\"version\":2}")
                                                       ASKED(5, "order-1-1", "/v1/items/i0/orders",
                                                             "{\"user_id\":\"u1\",\"quantity\":1}")
                                                           TOLD(6, "order-1-1", 201,
                                                                "{\"order_id\":\"o2\",\"stock_"
                                                                "before\":1,\"stock_after\":0,"
                                                                "\"version\":3}")
                                                               ASKED(7, "order-0-3",
                                                                     "/v1/items/i0/orders",
                                                                     "{\"user_id\":\"u0\","
                                                                     "\"quantity\":1}")
                                                                   TOLD(8, "order-0-3", 503,
                                                                        "{\"type\":\"/problems/"
                                                                        "lock-timeout\"}")
                                                                       ASKED(9, "order-0-3",
                                                                             "/v1/items/i0/orders",
                                                                             "{\"user_id\":\"u0\","
                                                                             "\"quantity\":1}")
                                                                           TOLD(10, "order-0-3",
                                                                                409,
                                                                                "{\"type\":\"/"
                                                                                "problems/"
                                                                                "sold-out\"}")
                                                                               ASKED(
                                                                                   11, "move-0-2",
                                                                                   "/v1/transfers",
                                                                                   "{\"from\":"
                                                                                   "\"u0\",\"to\":"
                                                                                   "\"u1\","
                                                                                   "\"amount\":10}")
                                                                                   TOLD(
                                                                                       12,
                                                                                       "move-0-2",
                                                                                       201,
                                                                                       "{\"balance_"
                                                                                       "before\":"
                                                                                       "100,"
                                                                                       "\"balance_"
                                                                                       "after\":90,"
                                                                                       "\"version\""
                                                                                       ":2}");

static void write_books(const char *more)
{
    FILE *out = fopen(books, "we");
    assert_non_null(out);
    fprintf(out, "%s%s", right_books, more);
    fclose(out);
}

static void write_store(const char *more)
{
    sqlite3 *sqlite;
    char *message = NULL;
    unlink(file);
    assert_int_equal(sqlite3_open(file, &sqlite), SQLITE_OK);
    if (sqlite3_exec(sqlite, tables, NULL, NULL, &message) != SQLITE_OK ||
        sqlite3_exec(sqlite, more, NULL, NULL, &message) != SQLITE_OK)
        fail_msg("%s", message);
    sqlite3_close(sqlite);
}

static struct torture_verdict judge(const char *sql, const char *lines, bool claims_safe)
{
    struct torture_verdict verdict;
    write_store(sql);
    write_books(lines);
    assert_int_equal(torture_judge(books, url, NULL, claims_safe, &verdict), 0);
    return verdict;
}

TEST_THAT(books_and_rows_that_agree_hold)
{
    struct torture_verdict verdict = judge("", "", true);
    if (verdict.violations != 0)
        fail_msg("%s", verdict.first);
    assert_int_equal(verdict.losses, 0);
    assert_int_equal(verdict.decided, 4);
    assert_int_equal(verdict.attempts, 6);
}

/* What was sent last may have happened or not. */
TEST_THAT(what_has_no_answer_is_no_violation)
{
    static const char asked[] =
        ASKED(13, "change-1-2", "/v1/accounts/u1/transactions", "{\"amount\":5,\"reason\":\"x\"}");
    assert_int_equal(judge("", asked, true).violations, 0);
    struct torture_verdict verdict = judge(
        "UPDATE accounts SET balance = 115 WHERE id = 'u1';"
        "INSERT INTO ledger VALUES (8, 'account:u1', 1, 2, 'change-1-2', 5, 110, 115, 5, 'x');"
        "INSERT INTO idempotency VALUES ('change-1-2', 201, '{\"balance_after\":115}')",
        asked, true);
    if (verdict.violations != 0)
        fail_msg("%s", verdict.first);
    assert_int_equal(verdict.undecided, 1);
}

TEST_THAT(a_cut_last_line_is_skipped)
{
    assert_int_equal(judge("", "{\"event\":\"comp", true).violations, 0);
}

static const struct planted {
    const char *what, *sql, *lines;
    bool loss; /* a weak guard may do it */
    const char *found;
} planted[] = {
    {"a lost update",
     "UPDATE ledger SET version_before = 1, before = 3, after = 2 WHERE id = 5;"
     "UPDATE items SET stock = 2",
     "", true, "two changes were made from one reading: item:i0 version 1"},
    {"stock sold twice",
     "INSERT INTO orders VALUES ('o3', 'i0', 'u0', 1, 0, 1);"
     "INSERT INTO ledger VALUES (8, 'item:i0', 1, 3, 'order-9-9', -1, 0, -1, 9,"
     " 'redis-token');"
     "UPDATE items SET stock = -1",
     ASKED(13, "order-9-9", "/v1/items/i0/orders", "{\"user_id\":\"u0\",\"quantity\":1}"), true,
     "stock and orders differ: i0"},
    {"an answer told but not stored", "DELETE FROM idempotency WHERE key = 'order-1-1'", "", false,
     "order-1-1 was answered 201, and nothing is stored"},
    {"a refusal told but not stored", "DELETE FROM idempotency WHERE key = 'order-0-3'", "", false,
     "order-0-3 was answered 409, and nothing is stored"},
    {"another answer stored than told",
     "UPDATE idempotency SET body = '{\"order_id\":\"o7\"}' WHERE key = 'order-1-1'", "", false,
     "order-1-1 was answered 201"},
    {"a double effect for one key",
     "INSERT INTO ledger VALUES (8, 'account:u0', 1, 2, 'change-2-2', -5, 90, 85, 5, 'g'),"
     " (9, 'account:u0', 1, 3, 'change-2-2', -5, 85, 80, 6, 'g');"
     "UPDATE accounts SET balance = 80 WHERE id = 'u0';"
     "INSERT INTO idempotency VALUES ('change-2-2', 201, '{\"balance_after\":85}')",
     ASKED(13, "change-2-2", "/v1/accounts/u0/transactions", "{\"amount\":-5,\"reason\":\"x\"}"),
     false, "one key changed one thing twice: account:u0 change-2-2"},
    {"an order without its change", "DELETE FROM ledger WHERE id = 5", "", false,
     "stock and ledger differ: i0: 0, should be 1"},
    {"a change that nobody asked for",
     "INSERT INTO ledger VALUES (8, 'account:u0', 1, 2, 'change-7-7', 0, 90, 90, 5, 'g')", "",
     false, "account:u0 was changed under change-7-7, for which nobody asked"},
    {"an effect of a refusal",
     "INSERT INTO ledger VALUES (8, 'account:u0', 1, 2, 'order-0-3', 0, 90, 90, 5, 'g')", "", false,
     "a refusal had an effect: order-0-3"},
    {"half a transfer",
     "DELETE FROM ledger WHERE id = 7; UPDATE accounts SET balance = 100 WHERE id = 'u1'", "",
     false, "a transfer made or lost money: move-0-2"},
    {"two answers for one key", "",
     ASKED(13, "order-1-1", "/v1/items/i0/orders", "{\"user_id\":\"u1\",\"quantity\":1}")
         TOLD(14, "order-1-1", 409, "{\"type\":\"/problems/sold-out\"}"),
     false, "order-1-1 was answered in two ways"},
    {"an answer that nobody expects", "",
     ASKED(13, "order-5-1", "/v1/items/i0/orders", "{\"user_id\":\"u1\",\"quantity\":1}")
         TOLD(14, "order-5-1", 500, "{\"type\":\"/problems/internal\"}"),
     false, "order-5-1 was answered 500, which nobody expects"},
    {"a fence that fell", "UPDATE ledger SET fence = 6 WHERE id = 5", "", true,
     "a fence fell: item:i0 fence 6 after 7"},
    {"a user beyond the limit", "UPDATE items SET per_user_limit = 1", "", true,
     "more than the limit was sold: u0 has 2"},
    {"a gap in the chain", "UPDATE ledger SET version_before = 4 WHERE id = 5", "", true,
     "the chain of a resource has a gap"},
    {"a balance that is not its sum", "UPDATE accounts SET balance = 91 WHERE id = 'u0'", "", true,
     "balance and ledger differ: u0: 91, should be 90"},
};

TEST_THAT(each_planted_violation_is_found)
{
    for (size_t i = 0; i < sizeof planted / sizeof *planted; i++) {
        const struct planted *one = &planted[i];
        struct torture_verdict verdict = judge(one->sql, one->lines, true);
        if (verdict.violations == 0 || strncmp(verdict.first, one->found, strlen(one->found)) != 0)
            fail_msg("%s: found %d: %s", one->what, (int)verdict.violations, verdict.first);
    }
}

TEST_THAT(a_weak_guard_is_forgiven_lost_updates_alone)
{
    for (size_t i = 0; i < sizeof planted / sizeof *planted; i++) {
        const struct planted *one = &planted[i];
        struct torture_verdict verdict = judge(one->sql, one->lines, false);
        if (one->loss ? verdict.losses == 0 || verdict.violations > 0 : verdict.violations == 0)
            fail_msg("%s: %d violations, %d losses: %s", one->what, (int)verdict.violations,
                     (int)verdict.losses, verdict.first);
    }
}

TEST_THAT(a_store_that_cannot_be_read_is_no_verdict)
{
    struct torture_verdict verdict;
    write_books("");
    unlink(file);
    assert_int_equal(torture_judge(books, url, NULL, true, &verdict), -1);
    assert_true(verdict.violations > 0);
    write_store("DROP TABLE ledger");
    assert_int_equal(torture_judge(books, url, NULL, true, &verdict), -1);
    assert_true(verdict.violations > 0);
}

TEST_THAT(the_books_count_attempts_and_decisions)
{
    struct torture_books read;
    char message[200];
    write_books("");
    assert_int_equal(torture_books_read(books, &read, message, sizeof message), 0);
    const struct torture_entry *entry = torture_books_find(&read, "order-0-1");
    assert_int_equal(entry->sent, 2);
    assert_int_equal(entry->status, 201);
    assert_string_equal(entry->path, "/v1/items/i0/orders");
    assert_null(torture_books_find(&read, "order-0-9"));
    assert_int_equal(read.undecided, 0);
    torture_books_free(&read);
    write_books("no JSON\n");
    assert_int_equal(torture_books_read(books, &read, message, sizeof message), -1);
    torture_books_free(&read);
}

static int open_folder(void **state)
{
    (void)state;
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(file, sizeof file, "%s/store.db", folder);
    snprintf(url, sizeof url, "sqlite:%s", file);
    snprintf(books, sizeof books, "%s/books.jsonl", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(file);
    unlink(books);
    return rmdir(folder);
}

GROUP_FIXTURE(open_folder, remove_folder);
