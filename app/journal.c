/*
 * One text for two programs: a beancount file that hledger reads, too. To hledger the directives
 * "open" and "balance" are transactions without postings.
 *
 * The signs are those of bookkeeping, so each amount is the negative of its row in the ledger: what
 * buyers have is a liability of the shop. Amounts are minor units, called CENT. Each account's
 * stored balance is asserted at its end. beancount compares it with the sum of the postings.
 */
#include "archive.h"
#include "db_audit.h"
#include "journal.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DAY_S = 86400, NAME_MAX_BYTES = 32 + 2 * DB_RESOURCE_MAX };

struct journal {
    FILE *out;
    const char *archive;         /* its file; NULL: none */
    int64_t carried;             /* lines of the opening entry */
    char end[16];                /* the day of the assertions, after all postings */
    char txn_id[DB_KEY_MAX + 1]; /* of the transaction that is open */
};

static void day_of(int64_t at_s, char ret[16])
{
    const time_t time = (time_t)at_s;
    struct tm day;
    gmtime_r(&time, &day);
    strftime(ret, 16, "%Y-%m-%d", &day);
}

/* "account:a_1" is "Liabilities:Buyers:A-a-u1". An account name has letters, digits and "-", so a
 * "-" of an id is written "--", and a "_" is written "-u". */
static const char *name_of(const char *resource, char ret[NAME_MAX_BYTES])
{
    static const char *const sides[][2] = {{DB_SHOP_REVENUE, "Income:Sales"},
                                           {DB_SHOP_CASH, "Assets:Cash"},
                                           {DB_SHOP_EQUITY, "Equity:Resets"}};
    for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++)
        if (strcmp(resource, sides[i][0]) == 0)
            return strcpy(ret, sides[i][1]);
    const char *id = strncmp(resource, "account:", 8) == 0 ? resource + 8 : resource;
    char *at = stpcpy(ret, id == resource ? "Liabilities:Unknown:A-" : "Liabilities:Buyers:A-");
    for (; *id != '\0'; id++) {
        if (*id == '-' || *id == '_')
            *at++ = '-';
        *at++ = isalnum((unsigned char)*id) || *id == '-' ? *id : 'u';
    }
    *at = '\0';
    return ret;
}

static void write_open(const struct journal *journal, const char *resource)
{
    char name[NAME_MAX_BYTES];
    fprintf(journal->out, "1970-01-01 open %s CENT\n", name_of(resource, name));
}

static void write_amount(FILE *out, int64_t delta)
{
    fprintf(out, delta > 0 ? "-%" PRIu64 : "%" PRIu64,
            delta > 0 ? (uint64_t)delta : 0 - (uint64_t)delta);
}

static int write_account(void *arg, const db_audit_row *row)
{
    const struct journal *journal = arg;
    char name[NAME_MAX_BYTES];
    if (strncmp(row->resource, "account:", 8) != 0)
        return 0;
    write_open(journal, row->resource);
    fprintf(journal->out, "%s balance %s  ", journal->end, name_of(row->resource, name));
    write_amount(journal->out, row->current);
    fprintf(journal->out, " CENT\n");
    return ferror(journal->out);
}

static int write_leg(void *arg, const db_ledger_row *row)
{
    struct journal *journal = arg;
    char name[NAME_MAX_BYTES], day[16];
    if (strcmp(journal->txn_id, row->txn_id) != 0) {
        memcpy(journal->txn_id, row->txn_id, sizeof journal->txn_id);
        day_of(row->at_us / 1000000, day);
        fprintf(journal->out, "\n%s * \"%s\" \"%s\"\n  ; %s\n", day, db_kind_text(row->kind),
                row->order_id, row->txn_id);
    }
    fprintf(journal->out, "  %s  ", name_of(row->resource, name));
    write_amount(journal->out, row->delta);
    fprintf(journal->out, " CENT\n");
    return ferror(journal->out);
}

/* What moved rows have left, as one entry: its lines sum to zero. */
static int write_carried(void *arg, const db_carried *carried)
{
    struct journal *journal = arg;
    char name[NAME_MAX_BYTES];
    if (strncmp(carried->resource, "item:", 5) == 0 || carried->total == 0)
        return 0;
    if (journal->carried++ == 0)
        fprintf(journal->out, "\n1970-01-01 * \"carried\" \"moved to an archive\"\n");
    fprintf(journal->out, "  %s  ", name_of(carried->resource, name));
    write_amount(journal->out, carried->total);
    fprintf(journal->out, " CENT\n");
    return ferror(journal->out);
}

static db_status write_moved(db_reader *reader, struct journal *journal, db_error *error)
{
    archive_proof proof;
    if (journal->archive == NULL) {
        const db_status status = db_read_carried(reader, write_carried, journal);
        if (status != DB_OK)
            snprintf(error->message, sizeof error->message, "%s", db_status_text(status));
        return status;
    }
    const db_status status = archive_prove(reader, journal->archive, &proof, error);
    if (status != DB_OK)
        return status;
    if (proof.faults > 0) {
        snprintf(error->message, sizeof error->message, "%.80s: %.160s", journal->archive,
                 proof.first);
        return DB_FAILED;
    }
    return archive_read_money(journal->archive, write_leg, journal, error);
}

static db_status write_all(db_reader *reader, struct journal *journal, db_error *error)
{
    static const char *const sides[] = {DB_SHOP_REVENUE, DB_SHOP_CASH, DB_SHOP_EQUITY};
    day_of(time(NULL) + 2 * DAY_S, journal->end);
    for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++)
        write_open(journal, sides[i]);
    db_status status = db_reader_begin(reader);
    if (status != DB_OK) {
        snprintf(error->message, sizeof error->message, "%s", db_status_text(status));
        return status;
    }
    status = db_audit(reader, NULL, write_account, journal, error);
    if (status == DB_OK)
        status = write_moved(reader, journal, error);
    if (status == DB_OK)
        status = db_read_money(reader, write_leg, journal, error);
    db_reader_end(reader);
    if (status == DB_OK && (fflush(journal->out) != 0 || ferror(journal->out))) {
        snprintf(error->message, sizeof error->message, "the journal cannot be written");
        status = DB_FULL;
    }
    return status;
}

db_status journal_write(const char *url, bool shared_file, const char *archive, FILE *out,
                        db_error *error)
{
    const db_options options = {.url = url, .shared_file = shared_file, .existing = true};
    struct journal journal = {.out = out, .archive = archive};
    db *store = NULL;
    db_reader *reader = NULL;
    db_status status = db_open(&options, &store, error);
    if (status == DB_OK)
        status = db_reader_open(store, &reader, error);
    if (status == DB_OK)
        status = write_all(reader, &journal, error);
    db_reader_close(reader);
    db_close(store);
    return status;
}
