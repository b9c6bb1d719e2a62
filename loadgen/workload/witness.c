#include "witness.h"
#include "hash_table.h"
#include "steady.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ONE_BY_ONE_MAX = 16, /* resources: each audit of one may read the whole ledger */
    PAGE = 1000,         /* rows */
    COMPARISONS_MAX = 3, /* audit and rows are read at different moments: repeat if they disagree */
    COMPARISON_PAUSE_MS = 50,
    ROW_WAIT_MS =
        10000 /* at most, and at most the patience: for rows that wait for a transaction */
};

struct subject {
    char name[100];
    uint64_t number;
    struct rows rows;
    struct client_count client;
    struct audit_row shown; /* of the two audits, the one with a counter-example */
    struct audit_row own;
    struct verdict verdict;
    UT_hash_handle hh;
};

struct comparison {
    struct run *run;
    const struct witness *witness;
    struct subject *subjects; /* witness->n of them */
    struct subject *by_name;
    uint8_t *seen;        /* per request: the changes that have a row */
    json_t *audits;       /* of all resources; NULL: each is audited alone */
    int64_t without;      /* answers without rows, and rows without an answer */
    const char *resource; /* the resource whose figures are compared */
    struct disagreement disagreements[RUN_DISAGREEMENTS_MAX];
    int n_disagreements;
};

/* -- the client's answers ---------------------------------------------------------------------- */

static enum tally_state state_of(const struct witness *witness, uint64_t origin)
{
    return origin < tally_end(witness->tally) ? witness->tally->entries[origin].state
                                              : TALLY_UNSENT;
}

/* Adds up, per resource, acknowledged, requested and unknown amounts. */
static void count_answers(struct comparison *comparison)
{
    const struct witness *witness = comparison->witness;
    for (uint64_t seq = 0; seq < tally_end(witness->tally); seq++) {
        enum tally_state state = state_of(witness, seq);
        bool accepted = state == TALLY_ACCEPTED, unknown = state == TALLY_UNKNOWN;
        if (tally_origin(witness->tally, seq) != seq)
            continue;
        struct balances_change changes[BALANCES_CHANGES_MAX] = {0};
        witness->effect(witness->ctx, seq, changes);
        for (int i = 0; i < BALANCES_CHANGES_MAX && changes[i].amount != 0; i++) {
            struct client_count *count = &comparison->subjects[changes[i].account].client;
            int64_t amount = witness->is_item ? -changes[i].amount : changes[i].amount;
            count->accepted += accepted ? amount : 0;
            count->demand += accepted || unknown || state == TALLY_REFUSED ? llabs(amount) : 0;
            count->unknown += unknown && i == 0; /* a transfer is one request */
            count->unknown_amount += unknown ? llabs(amount) : 0;
        }
    }
}

/* -- the rows ---------------------------------------------------------------------------------- */

static int fail_row(struct run *run, const char *missing)
{
    if (missing == NULL)
        snprintf(run->message, sizeof run->message, "not enough memory for the ledger's rows");
    else
        snprintf(run->message, sizeof run->message, "GET /v1/ledger: a row without \"%s\"",
                 missing);
    return -1;
}

/* Keeps the row if it belongs to a resource of the run. */
static int take_row(struct comparison *comparison, const json_t *row)
{
    const struct witness *witness = comparison->witness;
    const char *name = json_string_value(json_object_get(row, "resource")), *missing;
    struct subject *subject = NULL;
    if (name == NULL)
        return fail_row(comparison->run, "resource");
    HASH_FIND_STR(comparison->by_name, name, subject);
    if (subject == NULL)
        return 0;
    if (rows_add(&subject->rows, row, &missing) != 0)
        return fail_row(comparison->run, missing);
    struct rows_row *kept = &subject->rows.rows[subject->rows.n - 1];
    const char *tab = strrchr(kept->txn_id, '\t'); /* "CALLER<TAB>KEY", if there was a token */
    kept->origin = witness->origin(witness->ctx, tab != NULL ? tab + 1 : kept->txn_id);
    return 0;
}

/* Copies the place where the page after this one begins. False: there is none. */
static bool next_place(const json_t *page, char ret[static RUN_PLACE_MAX])
{
    const char *next = json_string_value(json_object_get(page, "next"));
    const int n = next != NULL ? snprintf(ret, RUN_PLACE_MAX, "%s", next) : -1;
    return n >= 0 && n < RUN_PLACE_MAX;
}

/* place: where the page begins, then where the next one does. */
static int take_page(struct comparison *comparison, char place[static RUN_PLACE_MAX],
                     bool *ret_more, size_t *ret_rows)
{
    struct run *run = comparison->run;
    char path[REMOTE_PATH_MAX], next[RUN_PLACE_MAX] = "";
    json_t *page, *row;
    size_t i;
    int result = 0;
    snprintf(path, sizeof path, "/v1/ledger?limit=%d%s%s", PAGE, place[0] != '\0' ? "&after=" : "",
             place);
    if (remote_get(run->options, path, &page, run->message) != 0)
        return -1;
    json_array_foreach(json_object_get(page, "rows"), i, row)
    {
        if (result == 0)
            result = take_row(comparison, row);
    }
    *ret_rows = json_array_size(json_object_get(page, "rows"));
    *ret_more = json_is_true(json_object_get(page, "more"));
    const bool goes_on = next_place(page, next) && (*ret_rows == 0 || strcmp(next, place) != 0);
    if (result == 0 && *ret_more && !goes_on) {
        snprintf(run->message, sizeof run->message,
                 "GET %s: its next page begins at \"%s\", not behind it", path, next);
        result = -1;
    }
    strcpy(place, next);
    json_decref(page);
    return result;
}

/* Reads to the end. Rows of a transaction that may still commit hold the others up: waits for it.
 * Without the rows behind it nothing can be judged: -1. */
static int take_rows(struct comparison *comparison)
{
    struct run *run = comparison->run;
    const int64_t patience_ms = run->options->patience_ms;
    const int64_t wait_ms = patience_ms < ROW_WAIT_MS ? patience_ms : ROW_WAIT_MS;
    char place[RUN_PLACE_MAX];
    bool more = true;
    size_t rows = 0;
    strcpy(place, run->ledger_start);
    for (int64_t waited_ms = 0; more; waited_ms += rows == 0 ? COMPARISON_PAUSE_MS : 0) {
        if (waited_ms > wait_ms) {
            snprintf(run->message, sizeof run->message,
                     "GET /v1/ledger: more rows, but none for %lld ms: an open transaction on the "
                     "database server holds the feed up; end it (pg_stat_activity, "
                     "pg_prepared_xacts), and run again",
                     (long long)wait_ms);
            return -1;
        }
        if (take_page(comparison, place, &more, &rows) != 0)
            return -1;
        if (rows == 0 && more)
            steady_sleep_ms(COMPARISON_PAUSE_MS);
    }
    return 0;
}

/* Counts the rows that are not the effect of an accepted or unknown request, or are its second
 * row. */
static int64_t rows_without_answer(struct comparison *comparison, const struct subject *subject)
{
    const struct witness *witness = comparison->witness;
    int64_t n = 0;
    for (size_t i = 0; i < subject->rows.n; i++) {
        const struct rows_row *row = &subject->rows.rows[i];
        struct balances_change changes[BALANCES_CHANGES_MAX] = {0};
        int at = 0;
        if (row->opens)
            continue; /* rows_audit() judges it */
        if (row->origin != ROWS_FOREIGN)
            witness->effect(witness->ctx, (uint64_t)row->origin, changes);
        while (at < BALANCES_CHANGES_MAX &&
               !(changes[at].amount == row->delta && changes[at].amount != 0 &&
                 changes[at].account == subject->number))
            at++;
        enum tally_state state =
            row->origin == ROWS_FOREIGN ? TALLY_UNSENT : state_of(witness, (uint64_t)row->origin);
        bool asked = at < BALANCES_CHANGES_MAX;
        bool told = state == TALLY_ACCEPTED || state == TALLY_UNKNOWN;
        bool first = asked && (comparison->seen[row->origin] & 1 << at) == 0;
        if (asked)
            comparison->seen[row->origin] |= (uint8_t)(1 << at);
        n += !asked || !told || !first;
    }
    return n;
}

static int64_t answers_without_row(const struct comparison *comparison)
{
    const struct witness *witness = comparison->witness;
    int64_t n = 0;
    for (uint64_t seq = 0; seq < tally_end(witness->tally); seq++) {
        struct balances_change changes[BALANCES_CHANGES_MAX] = {0};
        if (state_of(witness, seq) != TALLY_ACCEPTED || tally_origin(witness->tally, seq) != seq)
            continue;
        witness->effect(witness->ctx, seq, changes);
        for (int i = 0; i < BALANCES_CHANGES_MAX; i++)
            n += changes[i].amount != 0 && (comparison->seen[seq] & 1 << i) == 0;
    }
    return n;
}

/* -- one resource ------------------------------------------------------------------------------ */

static int take_integer(struct run *run, const json_t *shown, const char *path, const char *name,
                        int64_t *ret)
{
    const json_t *value = json_object_get(shown, name);
    if (json_is_integer(value)) {
        *ret = json_integer_value(value);
        return 0;
    }
    snprintf(run->message, sizeof run->message, "GET %s: \"%s\" is missing", path, name);
    return -1;
}

/* Reads its value, version and sold pieces, as GET shows them. */
static int look_at(struct comparison *comparison, struct rows_resource *resource)
{
    struct run *run = comparison->run;
    bool is_item = resource->is_item;
    char path[REMOTE_PATH_MAX];
    json_t *shown;
    snprintf(path, sizeof path, "/v1/%s/%s", is_item ? "items" : "accounts",
             strchr(resource->name, ':') + 1);
    if (remote_get(run->options, path, &shown, run->message) != 0)
        return -1;
    int result = take_integer(run, shown, path, is_item ? "stock" : "balance", &resource->current);
    if (result == 0)
        result = take_integer(run, shown, path, "version", &resource->version);
    if (result == 0 && is_item)
        result = take_integer(run, shown, path, "sold", &resource->sold);
    json_decref(shown);
    return result;
}

static void note_disagreement(void *ctx, const char *figure, int64_t service, int64_t own)
{
    struct comparison *comparison = ctx;
    if (comparison->n_disagreements == RUN_DISAGREEMENTS_MAX)
        return;
    struct disagreement *next = &comparison->disagreements[comparison->n_disagreements++];
    snprintf(next->resource, sizeof next->resource, "%s", comparison->resource);
    snprintf(next->figure, sizeof next->figure, "%s", figure);
    next->service = service;
    next->own = own;
}

static int judge_subject(struct comparison *comparison, struct subject *subject)
{
    struct run *run = comparison->run;
    const struct witness *witness = comparison->witness;
    struct rows_resource resource = {.name = subject->name,
                                     .initial = witness->initial,
                                     .is_item = witness->is_item,
                                     .one_each = witness->one_each};
    struct audit_row service;
    struct verdict of_rows;
    int audited = comparison->audits != NULL
                      ? remote_audit_row(comparison->audits, subject->name, &service, run->message)
                      : remote_audit(run->options, subject->name, &service, run->message);
    if (audited != 0 || look_at(comparison, &resource) != 0)
        return -1;
    rows_audit(&subject->rows, &resource, &subject->own);
    void (*judge)(const struct audit_row *, const struct client_count *, struct verdict *) =
        witness->is_item ? verdict_of_item : verdict_of_account;
    judge(&service, &subject->client, &subject->verdict);
    judge(&subject->own, &subject->client, &of_rows);
    verdict_worse(&subject->verdict, &of_rows);
    comparison->resource = subject->name;
    subject->verdict.disagreements =
        rows_disagreements(&service, &subject->own, note_disagreement, comparison);
    subject->shown = subject->own.has_fork ? subject->own : service;
    return 0;
}

/* -- the whole --------------------------------------------------------------------------------- */

static int open_comparison(struct comparison *comparison)
{
    const struct witness *witness = comparison->witness;
    comparison->subjects = calloc(witness->n, sizeof *comparison->subjects);
    comparison->seen = calloc(tally_end(witness->tally) + 1, 1);
    bool whole = comparison->subjects != NULL && comparison->seen != NULL;
    for (uint64_t i = 0; whole && i < witness->n; i++) {
        struct subject *subject = &comparison->subjects[i];
        witness->name(witness->ctx, i, subject->name);
        subject->number = i;
        HASH_ADD_STR(comparison->by_name, name, subject);
        whole = subject->hh.tbl != NULL;
    }
    if (!whole)
        snprintf(comparison->run->message, sizeof comparison->run->message,
                 "not enough memory to judge %llu resources", (unsigned long long)witness->n);
    return whole ? 0 : -1;
}

static void close_comparison(struct comparison *comparison)
{
    HASH_CLEAR(hh, comparison->by_name);
    for (uint64_t i = 0; comparison->subjects != NULL && i < comparison->witness->n; i++)
        rows_free(&comparison->subjects[i].rows);
    free(comparison->subjects);
    free(comparison->seen);
    json_decref(comparison->audits);
}

static int compare(struct comparison *comparison)
{
    struct run *run = comparison->run;
    const struct witness *witness = comparison->witness;
    if (open_comparison(comparison) != 0 ||
        (witness->n > ONE_BY_ONE_MAX &&
         remote_audit_all(run->options, &comparison->audits, run->message) != 0) ||
        take_rows(comparison) != 0)
        return -1;
    count_answers(comparison);
    for (uint64_t i = 0; i < witness->n; i++) {
        comparison->without += rows_without_answer(comparison, &comparison->subjects[i]);
        if (judge_subject(comparison, &comparison->subjects[i]) != 0)
            return -1;
    }
    comparison->without += answers_without_row(comparison);
    return 0;
}

static void conclude(struct comparison *comparison, struct verdict *into)
{
    struct run *run = comparison->run;
    const struct witness *witness = comparison->witness;
    struct verdict verdict = {0};
    for (uint64_t i = 0; i < witness->n; i++) {
        struct subject *subject = &comparison->subjects[i];
        run_add_verdict(run, &verdict, &subject->verdict, &subject->shown);
        if (witness->judged != NULL)
            witness->judged(witness->ctx, i, &subject->own, &subject->verdict, &subject->client);
    }
    if (verdict.mismatch < comparison->without) /* sums may agree although single rows do not */
        verdict.mismatch = comparison->without;
    verdict_add(into, &verdict);
    for (int i = 0; i < comparison->n_disagreements; i++)
        if (run->n_disagreements < RUN_DISAGREEMENTS_MAX)
            run->disagreements[run->n_disagreements++] = comparison->disagreements[i];
}

int witness_judge(struct run *run, const struct witness *witness, struct verdict *verdict)
{
    for (int attempt = 1;; attempt++) {
        struct comparison comparison = {.run = run, .witness = witness};
        int result = compare(&comparison);
        bool again = result == 0 && comparison.n_disagreements > 0 && attempt < COMPARISONS_MAX;
        if (result == 0 && !again)
            conclude(&comparison, verdict);
        close_comparison(&comparison);
        if (!again)
            return result;
        steady_sleep_ms(COMPARISON_PAUSE_MS);
    }
}

void witness_begin(struct run *run)
{
    json_t *page;
    if (remote_get(run->options, "/v1/ledger?after=end&limit=1", &page, run->message) != 0)
        return;
    if (!next_place(page, run->ledger_start))
        run->ledger_start[0] = '\0';
    json_decref(page);
}
