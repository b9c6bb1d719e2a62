/*
 * The judge: reads the database's rows, and compares them with each other and with the clients'
 * books. It asks nothing of the service.
 */
#include "sim_archive.h"
#include "sim_pg.h"
#include "sim_threads.h"
#include "sim_world.h"

#include <sqlite3.h>
#include <string.h>

enum { FIRST_OF_ROWS = 1 }; /* the rules before it are about the file */

/* Each finds rows that must not be there; the first column tells which. */
static const struct {
    const char *what, *sql;
    bool about_updates; /* only of guards that claim to keep updates apart */
} rules[] = {
    {"the database is damaged",
     "SELECT * FROM pragma_integrity_check WHERE integrity_check <> 'ok'", false},
    {"two changes were made from one reading",
     "SELECT resource || ' version ' || version_before || ' by ' || group_concat(txn_id) FROM "
     "ledger WHERE resource NOT LIKE 'shop:%'"
     " GROUP BY resource, epoch, version_before HAVING count(*) > 1",
     true},
    {"one key changed one thing twice",
     "SELECT resource || ' ' || txn_id FROM ledger WHERE txn_id NOT LIKE 'task%'"
     " GROUP BY resource, txn_id HAVING count(*) > 1",
     false},
    {"one order was closed twice", /* by tasks, that only the order's guard keeps apart */
     "SELECT resource || ' ' || txn_id FROM ledger GROUP BY resource, txn_id HAVING count(*) > 1",
     true},
    {"the chain of a resource has a gap",
     "SELECT resource || ' version ' || version_before FROM (SELECT *, lag(version_before) OVER w "
     "AS v,"
     " lag(after) OVER w AS a FROM ledger WHERE resource NOT LIKE 'shop:%' WINDOW w AS (PARTITION "
     "BY resource, epoch ORDER BY id))"
     " WHERE v IS NOT NULL AND (v + 1 <> version_before OR a <> before)",
     true},
    {"a row does not add up",
     "SELECT resource || ' ' || id FROM ledger WHERE before + delta <> after", false},
    {"a fence fell",
     "SELECT resource || ' fence ' || fence || ' after ' || f FROM (SELECT *, lag(fence) OVER"
     " (PARTITION BY resource, epoch, guard ORDER BY id) AS f FROM ledger WHERE fence > 0)"
     " WHERE f > fence",
     true},
    {"stock and ledger differ",
     "SELECT id || ': ' || stock || ', should be ' || s FROM (SELECT i.id, i.stock, "
     "i.initial_stock +"
     " coalesce((SELECT sum(delta) FROM ledger l WHERE l.resource = 'item:' || i.id AND"
     " l.epoch = i.epoch AND kind <> 'reset'), 0) AS s FROM items i) WHERE s <> stock",
     true},
    {"stock and orders differ",
     "SELECT id || ': ' || stock || ' left of ' || initial_stock || ' and ' || r || ', sold ' || s "
     "FROM (SELECT i.*,"
     " coalesce((SELECT sum(delta) FROM ledger l WHERE l.resource = 'item:' || i.id AND"
     " l.epoch = i.epoch AND kind = 'restock'), 0) AS r,"
     " coalesce((SELECT sum(quantity) FROM orders o WHERE o.item_id = i.id AND o.item_epoch = "
     "i.epoch"
     " AND o.state <= 1), 0) AS s FROM items i) WHERE initial_stock + r - s <> stock OR stock < 0",
     true},
    {"balance and ledger differ",
     "SELECT id || ': ' || balance || ', should be ' || s FROM (SELECT a.id, a.balance,"
     " a.initial_balance + coalesce((SELECT sum(delta) FROM ledger l WHERE"
     " l.resource = 'account:' || a.id AND l.epoch = a.epoch AND kind <> 'reset'), 0) AS s FROM "
     "accounts a)"
     " WHERE s <> balance OR balance < 0",
     true},
    {"the legs of a movement of money do not sum to zero",
     "SELECT txn_id FROM ledger WHERE counterpart <> '' GROUP BY txn_id"
     " HAVING count(*) <> 2 OR sum(delta) <> 0",
     false},
    {"a row has no other leg where its money went",
     "SELECT resource || ' ' || txn_id FROM ledger l WHERE counterpart <> '' AND NOT EXISTS (SELECT"
     " 1 FROM ledger o WHERE o.txn_id = l.txn_id AND o.resource = l.counterpart)",
     false},
    {"a movement of money has one side",
     "SELECT resource || ' ' || txn_id FROM ledger WHERE counterpart = '' AND NOT (kind ="
     " 'setting' AND delta = 0) AND resource NOT LIKE"
     " 'item:%'",
     false},
    {"orders and rows of orders differ in number",
     "SELECT o || ' orders, ' || r || ' rows' FROM (SELECT (SELECT count(*) FROM orders) AS o,"
     " (SELECT count(*) FROM ledger WHERE kind = 'order') AS r) WHERE o <> r",
     false},
    {"a key was accepted and had no effect",
     "SELECT key FROM idempotency WHERE http_status < 300 AND key NOT IN (SELECT txn_id FROM "
     "ledger)",
     false},
    {"an effect has no answer under its key",
     "SELECT resource || ' ' || txn_id FROM ledger WHERE txn_id LIKE 'deal-%' AND txn_id NOT IN"
     " (SELECT key FROM idempotency WHERE http_status < 300)",
     false},
    {"the money that went for an order is not what it costs",
     "SELECT id || ' costs ' || amount || ', is in state ' || state || ', moved ' || m FROM (SELECT"
     " o.*, coalesce(l.s, 0) AS m FROM orders o LEFT JOIN (SELECT order_id, sum(delta) AS s FROM"
     " ledger WHERE resource LIKE 'account:%' AND order_id <> '' GROUP BY order_id) l"
     " ON l.order_id = o.id) WHERE m <> iif(state = 1, -amount, 0)",
     true},
    {"a refusal had an effect",
     "SELECT key || ': ' || http_status FROM idempotency WHERE http_status >= 300 AND EXISTS "
     "(SELECT 1"
     " FROM ledger WHERE txn_id = key)",
     false},
    {"a chain does not end where its resource says",
     "SELECT r || ' ' || chain FROM (SELECT 'item:' || id AS r, chain FROM items UNION ALL"
     " SELECT 'account:' || id, chain FROM accounts) WHERE chain <> (SELECT hash FROM ledger"
     " WHERE resource = r ORDER BY epoch DESC, version_before DESC, id DESC LIMIT 1)",
     true},
    {"more than the limit was sold",
     "SELECT user_id || ' has ' || n FROM (SELECT o.user_id, sum(o.quantity) AS n, i.per_user_limit"
     " FROM orders o JOIN items i ON o.item_id = i.id AND o.item_epoch = i.epoch WHERE o.state <= 1"
     " AND i.per_user_limit > 0 GROUP BY o.item_id, o.user_id) WHERE n > per_user_limit",
     true},
};

static sqlite3_stmt *prepare(sqlite3 *store, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(store, sql, -1, &statement, NULL) != SQLITE_OK)
        sim_broken("the judge cannot read: %s", sqlite3_errmsg(store));
    return statement;
}

/* True: there is such a row. */
static bool is_broken(sqlite3 *store, size_t rule)
{
    sqlite3_stmt *statement = prepare(store, rules[rule].sql);
    int code = sqlite3_step(statement);
    const bool found = code == SQLITE_ROW;
    if (code != SQLITE_ROW && code != SQLITE_DONE)
        sim_broken("the judge cannot read: %s", sqlite3_errmsg(store));
    if (found && (sim_world.is.claims_safe || !rules[rule].about_updates))
        sim_broken("%s: %s", rules[rule].what, (const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    return found;
}

void sim_judge_rows(sqlite3 *store)
{
    static sqlite3 *of;
    static sqlite3_stmt *statements[sizeof rules / sizeof rules[0]];
    if (of != store)
        memset(statements, 0, sizeof statements);
    of = store;
    for (size_t i = FIRST_OF_ROWS; i < sizeof rules / sizeof rules[0]; i++) {
        if (!sim_world.is.claims_safe && rules[i].about_updates)
            continue;
        if (!statements[i] &&
            sqlite3_prepare_v2(store, rules[i].sql, -1, &statements[i], NULL) != SQLITE_OK)
            return; /* the tables are not there yet */
        const int code = sqlite3_step(statements[i]);
        if (code == SQLITE_ROW)
            sim_broken("after a commit, %s: %s", rules[i].what,
                       (const char *)sqlite3_column_text(statements[i], 0));
        else if (code != SQLITE_DONE)
            sim_broken("the judge cannot read: %s", sqlite3_errmsg(store));
        sqlite3_reset(statements[i]);
    }
}

/* What a client was told stands in the store, to the byte, and what nobody was told may. Of a
 * request that was accepted a trace stays when its answer is pruned. */
static bool is_kept(const struct sim_deal *deal, int status, const char *body)
{
    if (deal->unseen)
        return status > 0 && status < 300;
    if (status == deal->status && strcmp(body, deal->body) == 0)
        return true;
    if (deal->status >= 300)
        return sim_refusal_may_go(deal);
    return sim_may_be_pruned(deal) && status == deal->status && body[0] == '\0';
}

/* A refusal has gone, and cannot have become old: enough newer ones are there. */
static void judge_forgotten(sqlite3 *store, const struct sim_deal *deal)
{
    int64_t since_us = 0;
    if (sim_world.is.retention_s > 0)
        return;
    if (!sim_newer_refusals_since(deal, &since_us))
        since_us = 0;
    sqlite3_stmt *statement =
        prepare(store, "SELECT count(*) FROM idempotency WHERE http_status >= 400 AND at_us >= ?");
    sqlite3_bind_int64(statement, 1, since_us);
    if (statement && sqlite3_step(statement) == SQLITE_ROW &&
        sqlite3_column_int64(statement, 0) >= sim_world.is.refusals_max)
        sim_count(SIM_FORGOTTEN);
    else
        sim_broken("the refusal of %s is gone, and there are few newer ones", deal->key);
    sqlite3_finalize(statement);
}

static void compare_books(sqlite3 *store)
{
    sqlite3_stmt *statement =
        prepare(store, "SELECT http_status, body FROM idempotency WHERE key = ?");
    for (uint32_t i = 0; statement && i < sim_world.n_deals; i++) {
        const struct sim_deal *deal = &sim_world.deals[i];
        if (!deal->decided)
            continue;
        sqlite3_bind_text(statement, 1, deal->key, -1, SQLITE_STATIC);
        const bool any = sqlite3_step(statement) == SQLITE_ROW;
        const int status = any ? sqlite3_column_int(statement, 0) : 0;
        const char *body = any ? (const char *)sqlite3_column_text(statement, 1) : "";
        if (!is_kept(deal, status, body))
            sim_broken("%s was answered %d %.100s, the store has %d %.100s", deal->key,
                       deal->status, deal->body, status, body);
        else if (!any)
            judge_forgotten(store, deal);
        sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
}

static void count_closed(sqlite3 *store)
{
    sqlite3_stmt *statement = prepare(store, "SELECT count(*) FROM orders WHERE state = 3");
    if (sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_int(statement, 0) > 0)
        sim_count(SIM_CLOSED);
    sqlite3_finalize(statement);
}

void sim_judge(void)
{
    sqlite3 *store = NULL;
    if (sim_world.is.postgres) {
        store = sim_pg_judge();
    } else if (sqlite3_open_v2(sim_store, &store, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK) {
        sim_broken("the judge cannot open the store: %s", sqlite3_errmsg(store));
        return;
    }
    sim_archive_judge(store);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        if (is_broken(store, i) && rules[i].about_updates && !sim_world.is.claims_safe)
            sim_count(SIM_FORK);
    if (sim_world.is.claims_safe)
        sim_judge_chains(store);
    compare_books(store);
    count_closed(store);
    if (!sim_world.is.postgres)
        sqlite3_close(store);
}
