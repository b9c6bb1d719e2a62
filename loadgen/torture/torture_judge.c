#include "check.h"
#include "torture_books.h"
#include "torture_judge.h"
#include "torture_store.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct judge {
    struct torture_verdict *verdict;
    struct torture_store *store;
    struct torture_books books;
    bool claims_safe;
    struct check_audit audit; /* made by SQL from the rows */
    const char *what;         /* the rule whose rows are being read */
    bool about_updates;
};

static void add_finding(struct torture_verdict *verdict, bool violation, const char *format,
                        va_list arguments)
{
    bool first =
        violation ? verdict->violations == 0 : verdict->violations == 0 && verdict->losses == 0;
    verdict->violations += violation;
    verdict->losses += !violation;
    if (first)
        vsnprintf(verdict->first, sizeof verdict->first, format, arguments);
}

void torture_verdict_violation(struct torture_verdict *verdict, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_finding(verdict, true, format, arguments);
    va_end(arguments);
}

__attribute__((format(printf, 2, 3))) static void loss(struct judge *judge, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    add_finding(judge->verdict, judge->claims_safe, format, arguments);
    va_end(arguments);
}

/* -- rules about the rows alone ---------------------------------------------------------------- */

/* Each finds rows that must not be there. The first column tells which. */
struct rule {
    const char *what, *sql;
    bool about_updates;
    bool sqlite_only;
};

static const struct rule rules[] = {
    {"the database is damaged",
     "SELECT * FROM pragma_integrity_check WHERE integrity_check <> 'ok'", false, true},
    {"two changes were made from one reading",
     "SELECT resource || ' version ' || version_before || ' by ' || min(txn_id) || ' and ' ||"
     " max(txn_id) FROM ledger WHERE resource NOT LIKE 'shop:%' GROUP BY resource, epoch, "
     "version_before HAVING count(*) > 1",
     true, false},
    {"one key changed one thing twice",
     "SELECT resource || ' ' || txn_id FROM ledger GROUP BY resource, txn_id HAVING count(*) > 1",
     false, false},
    {"the chain of a resource has a gap",
     "SELECT resource || ' version ' || version_before FROM (SELECT *, lag(version_before) OVER w"
     " AS v, lag(after) OVER w AS a FROM ledger WHERE resource NOT LIKE 'shop:%'"
     " WINDOW w AS (PARTITION BY resource, epoch"
     " ORDER BY version_before, id)) AS rows"
     " WHERE v IS NOT NULL AND (v + 1 <> version_before OR a <> before)",
     true, false},
    {"a row does not add up",
     "SELECT resource || ' ' || id FROM ledger WHERE before + delta <> after", false, false},
    {"a fence fell",
     "SELECT resource || ' fence ' || fence || ' after ' || f FROM (SELECT *, lag(fence) OVER"
     " (PARTITION BY resource, epoch, guard ORDER BY version_before, id) AS f FROM ledger"
     " WHERE fence > 0) AS rows WHERE f > fence",
     true, false},
    {"stock and ledger differ",
     "SELECT id || ': ' || stock || ', should be ' || s FROM (SELECT i.id, i.stock, i.initial_stock"
     " + coalesce((SELECT sum(delta) FROM ledger l WHERE l.resource = 'item:' || i.id AND"
     " l.epoch = i.epoch AND txn_id NOT LIKE 'reset%'), 0) AS s FROM items i) AS rows WHERE s <> "
     "stock",
     true, false},
    {"stock and orders differ",
     "SELECT id || ': ' || stock || ' left of ' || initial_stock || ', sold ' || s FROM (SELECT"
     " i.*, coalesce((SELECT sum(quantity) FROM orders o WHERE o.item_id = i.id AND o.item_epoch ="
     " i.epoch AND o.state <= 1), 0) AS s FROM items i) AS rows"
     " WHERE initial_stock - s <> stock OR stock < 0",
     true, false},
    {"balance and ledger differ",
     "SELECT id || ': ' || balance || ', should be ' || s FROM (SELECT a.id, a.balance,"
     " a.initial_balance + coalesce((SELECT sum(delta) FROM ledger l WHERE"
     " l.resource = 'account:' || a.id AND l.epoch = a.epoch AND txn_id NOT LIKE 'reset%'), 0) AS "
     "s FROM accounts a) AS rows"
     " WHERE s <> balance OR balance < 0",
     true, false},
    {"more than the limit was sold",
     "SELECT user_id || ' has ' || n FROM (SELECT o.user_id, sum(o.quantity) AS n,"
     " max(i.per_user_limit) AS per_user_limit FROM orders o JOIN items i ON o.item_id = i.id AND"
     " o.item_epoch = i.epoch WHERE o.state <= 1 AND i.per_user_limit > 0"
     " GROUP BY o.item_id, o.user_id) AS rows WHERE n > per_user_limit",
     true, false},
    {"a transfer made or lost money",
     "SELECT txn_id FROM ledger WHERE txn_id LIKE 'move-%' GROUP BY txn_id"
     " HAVING count(*) <> 2 OR sum(delta) <> 0",
     false, false},
    {"a refusal had an effect",
     "SELECT key || ': ' || http_status FROM idempotency WHERE http_status >= 300 AND EXISTS"
     " (SELECT 1 FROM ledger WHERE txn_id = key)",
     false, false},
    {"orders and their answers differ in number",
     "SELECT o || ' orders, ' || a || ' ledger rows' FROM (SELECT (SELECT count(*) FROM orders)"
     " AS o, (SELECT count(*) FROM ledger WHERE resource LIKE 'item:%' AND delta < 0) AS a) AS rows"
     " WHERE o <> a",
     false, false},
};

/* Of an archive that has come to its end; "ledger" has its rows, too. */
static const struct rule archive_rules[] = {
    {"a row is in the store and in the archive",
     "SELECT resource || ' ' || min(txn_id) || ' ' || id FROM ledger GROUP BY resource, id"
     " HAVING count(*) > 1",
     false, false},
    {"a part in the archive is not out of the store",
     "SELECT 'part ' || part FROM parts p WHERE NOT EXISTS (SELECT 1 FROM archives a WHERE"
     " a.part = p.part AND a.n = p.n AND a.last_id = p.last_id AND a.digest = p.digest)",
     false, false},
    {"a part out of the store is not in the archive",
     "SELECT 'part ' || part FROM archives WHERE part NOT IN (SELECT part FROM parts)", false,
     false},
    {"a part has other rows than it says",
     "SELECT 'part ' || part FROM parts p WHERE n <> (SELECT count(*) FROM moved m WHERE m.part ="
     " p.part)",
     false, false},
    {"what is carried is not the sum of the rows that were moved",
     "SELECT m.resource || ': ' || coalesce(c.total, 0) || ', should be ' || m.total FROM"
     " (SELECT resource, sum(delta) AS total, max(id) AS last FROM moved GROUP BY resource) m"
     " LEFT JOIN carried c ON c.resource = m.resource"
     " WHERE c.resource IS NULL OR c.total <> m.total OR c.last_id <> m.last"
     " UNION ALL SELECT resource FROM carried WHERE resource NOT IN (SELECT resource FROM moved)",
     false, false},
    {"a movement of money is in the archive by half",
     "SELECT txn_id FROM moved WHERE counterpart <> '' GROUP BY txn_id HAVING sum(delta) <> 0"
     " OR count(*) <> 2",
     false, false},
    {"the legs of a movement of money do not sum to zero",
     "SELECT txn_id FROM ledger WHERE counterpart <> '' GROUP BY txn_id HAVING sum(delta) <> 0",
     false, false},
};

/* PostgreSQL has a SHA-256. */
static const struct rule chain_rule = {
    "the hash of a row does not follow",
    "SELECT resource || ' ' || id FROM (SELECT *, coalesce(lag(hash) OVER (PARTITION BY resource"
    " ORDER BY id), '') AS last FROM ledger WHERE resource NOT LIKE 'shop:%') AS rows WHERE hash <>"
    " encode(sha256(convert_to(concat_ws(E'\\n', last, resource, epoch, txn_id, delta, before,"
    " after, version_before, fence, guard, instance, kind, order_id, counterpart, reason,"
    " reference, at_us, ''), 'UTF8')), 'hex')",
    true, false};

static void broken_rule(void *ctx, const char *const *columns)
{
    struct judge *judge = ctx;
    const char *text = columns[0] != NULL ? columns[0] : "";
    if (judge->about_updates)
        loss(judge, "%s: %s", judge->what, text);
    else
        torture_verdict_violation(judge->verdict, "%s: %s", judge->what, text);
}

static int ask(struct judge *judge, const char *sql, void (*each)(void *, const char *const *))
{
    char message[512];
    if (torture_store_ask(judge->store, sql, each, judge, message, sizeof message) >= 0)
        return 0;
    torture_verdict_violation(judge->verdict, "the judge cannot read: %s", message);
    return -1;
}

static int apply(struct judge *judge, const struct rule *list, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (list[i].sqlite_only && torture_store_is_postgres(judge->store))
            continue;
        judge->what = list[i].what;
        judge->about_updates = list[i].about_updates;
        if (ask(judge, list[i].sql, broken_rule) != 0)
            return -1;
    }
    return 0;
}

static int apply_rules(struct judge *judge, const char *archive)
{
    char message[512];
    if (archive != NULL &&
        torture_store_add_archive(judge->store, archive, message, sizeof message) != 0) {
        torture_verdict_violation(judge->verdict, "the judge cannot read the archive: %s", message);
        return -1;
    }
    if (apply(judge, rules, sizeof rules / sizeof *rules) != 0)
        return -1;
    if (archive == NULL)
        return 0;
    if (torture_store_is_postgres(judge->store) && apply(judge, &chain_rule, 1) != 0)
        return -1;
    return apply(judge, archive_rules, sizeof archive_rules / sizeof *archive_rules);
}

/* -- rows and books ---------------------------------------------------------------------------- */

/* The stored answer of a key: somebody asked, and what was told is what is stored. */
static void stored_answer(void *ctx, const char *const *columns)
{
    struct judge *judge = ctx;
    struct torture_entry *entry = torture_books_find(&judge->books, columns[0]);
    if (entry == NULL) {
        torture_verdict_violation(judge->verdict,
                                  "an answer is stored for %s, for which nobody asked", columns[0]);
        return;
    }
    entry->seen = true;
    if (entry->status == 0)
        return;
    json_t *stored = json_loads(columns[2], 0, NULL);
    if (atoi(columns[1]) != entry->status || !json_equal(stored, entry->answer)) {
        char *told = json_dumps(entry->answer, JSON_COMPACT);
        torture_verdict_violation(judge->verdict,
                                  "%s was answered %d %.300s, the store has %s %.300s", entry->key,
                                  entry->status, told != NULL ? told : "", columns[1], columns[2]);
        free(told);
    }
    json_decref(stored);
}

static void changed_row(void *ctx, const char *const *columns)
{
    struct judge *judge = ctx;
    const struct torture_entry *entry = torture_books_find(&judge->books, columns[0]);
    bool opens = strncmp(columns[0], "reset\t", 6) == 0;
    if (!opens && entry == NULL)
        torture_verdict_violation(judge->verdict, "%s was changed under %s, for which nobody asked",
                                  columns[1], columns[0]);
    else if (!opens && entry->status >= 300)
        torture_verdict_violation(judge->verdict, "%s was refused with %d, and changed %s",
                                  columns[0], entry->status, columns[1]);
}

/* Every answer that was told is in the store, and the ledger has its effect. */
static int compare_books(struct judge *judge)
{
    if (ask(judge, "SELECT key, http_status, body FROM idempotency", stored_answer) != 0 ||
        ask(judge, "SELECT txn_id, resource FROM ledger WHERE resource NOT LIKE 'shop:%'",
            changed_row) != 0)
        return -1;
    for (const struct torture_entry *entry = judge->books.entries; entry != NULL;
         entry = entry->hh.next) {
        if (entry->status != 0 && !entry->seen)
            torture_verdict_violation(judge->verdict, "%s was answered %d, and nothing is stored",
                                      entry->key, entry->status);
        if (entry->differing > 0)
            torture_verdict_violation(judge->verdict, "%s was answered in two ways", entry->key);
        if (entry->odd_status != 0)
            torture_verdict_violation(judge->verdict, "%s was answered %d, which nobody expects",
                                      entry->key, entry->odd_status);
    }
    judge->what = "an accepted change is not in the ledger";
    judge->about_updates = false;
    return ask(judge,
               "SELECT key FROM idempotency WHERE http_status IN (200, 201) AND NOT EXISTS"
               " (SELECT 1 FROM ledger WHERE txn_id = key)",
               broken_rule);
}

/* -- the checkers of histories ----------------------------------------------------------------- */

static void add_audit(void *ctx, const char *const *columns)
{
    struct judge *judge = ctx;
    struct check_audit *audit = &judge->audit;
    struct audit_row *rows = realloc(audit->rows, (audit->n_rows + 1) * sizeof *rows);
    if (rows == NULL)
        return;
    audit->rows = rows;
    struct audit_row *row = &rows[audit->n_rows++];
    *row = (struct audit_row){.initial = strtoll(columns[1], NULL, 10),
                              .current = strtoll(columns[2], NULL, 10),
                              .ledger_sum = strtoll(columns[3], NULL, 10),
                              .sold = strtoll(columns[4], NULL, 10)};
    snprintf(row->resource, sizeof row->resource, "%s", columns[0]);
}

static int make_audit(struct judge *judge)
{
    return ask(judge,
               "SELECT 'item:' || id, initial_stock, stock, coalesce((SELECT sum(delta) FROM ledger"
               " l WHERE l.resource = 'item:' || i.id AND l.epoch = i.epoch AND txn_id NOT LIKE "
               "'reset%'), 0),"
               " coalesce((SELECT sum(quantity) FROM orders o WHERE o.item_id = i.id AND"
               " o.item_epoch = i.epoch AND o.state <= 1), 0) FROM items i"
               " UNION ALL SELECT 'account:' || id, initial_balance, balance,"
               " coalesce((SELECT sum(delta) FROM ledger l WHERE l.resource = 'account:' || a.id"
               " AND l.epoch = a.epoch AND txn_id NOT LIKE 'reset%'), 0), 0 FROM accounts a",
               add_audit);
}

static int check_history(struct judge *judge, const char *path)
{
    struct history history;
    struct torture_verdict *verdict = judge->verdict;
    char message[256];
    if (make_audit(judge) != 0)
        return -1;
    if (history_read(path, &history, message, sizeof message) != 0) {
        torture_verdict_violation(verdict, "%s %s", path, message);
        return -1;
    }
    for (size_t i = 0; i < n_checkers; i++) {
        static struct check_result result;
        result = (struct check_result){0};
        checkers[i].check(&history, &judge->audit, &result);
        verdict->undecided_checks += (int64_t)result.undecided;
        if (result.breaches == 0)
            continue;
        if (strcmp(checkers[i].name, "idempotence") == 0)
            torture_verdict_violation(verdict, "%s", result.example);
        else
            loss(judge, "%s: %s", checkers[i].name, result.example);
    }
    history_free(&history);
    return 0;
}

int torture_judge(const char *books, const char *store, const char *archive, bool claims_safe,
                  struct torture_verdict *ret)
{
    struct judge judge = {.verdict = ret, .claims_safe = claims_safe};
    char message[512] = "";
    int result = -1;
    *ret = (struct torture_verdict){0};
    judge.store = torture_store_open(store, message, sizeof message);
    if (judge.store == NULL)
        torture_verdict_violation(ret, "the judge cannot open the store: %s", message);
    else if (torture_books_read(books, &judge.books, message, sizeof message) != 0)
        torture_verdict_violation(ret, "the judge cannot read the books: %s", message);
    else if (apply_rules(&judge, archive) == 0 && compare_books(&judge) == 0)
        result = check_history(&judge, books);
    ret->decided = (int64_t)judge.books.decided;
    ret->undecided = (int64_t)judge.books.undecided;
    ret->asked = ret->decided + ret->undecided;
    ret->attempts = (int64_t)judge.books.attempts;
    free(judge.audit.rows);
    torture_books_free(&judge.books);
    torture_store_close(judge.store);
    return result;
}
