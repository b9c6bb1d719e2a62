#include "archive_command.h"
#include "archive.h"
#include "db_audit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { USAGE = 2 };

/* -- archive ------------------------------------------------------------------------------------
 */

static int64_t month_start_us(int year, int month)
{
    struct tm first = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = 1};
    return (int64_t)timegm(&first) * 1000000;
}

/* Reads "YYYY-MM". False: it is none. */
static bool read_month(const char *text, int *ret_year, int *ret_month)
{
    static const char form[] = "dddd-dd";
    if (strlen(text) != sizeof form - 1)
        return false;
    for (size_t i = 0; i < sizeof form - 1; i++)
        if (form[i] == 'd' ? text[i] < '0' || text[i] > '9' : text[i] != form[i])
            return false;
    *ret_year =
        (text[0] - '0') * 1000 + (text[1] - '0') * 100 + (text[2] - '0') * 10 + text[3] - '0';
    *ret_month = (text[5] - '0') * 10 + text[6] - '0';
    return *ret_year >= 1970 && *ret_month >= 1 && *ret_month <= 12;
}

/* The first instant of a month. False: the month before it is not over, or the text is no month. */
static bool closed_before(const char *text, int64_t *ret_us)
{
    const time_t now = time(NULL);
    struct tm today;
    int year, month;
    if (!read_month(text, &year, &month)) {
        fprintf(
            stderr,
            "seckilld: --before=%.40s: give a month as YYYY-MM; rows from before it are moved\n",
            text);
        return false;
    }
    gmtime_r(&now, &today);
    *ret_us = month_start_us(year, month);
    if (*ret_us <= month_start_us(today.tm_year + 1900, today.tm_mon + 1))
        return true;
    fprintf(stderr,
            "seckilld: --before=%s: the month before it is not over (UTC), and only closed months "
            "are moved; give %04d-%02d or an earlier one\n",
            text, today.tm_year + 1900, today.tm_mon + 1);
    return false;
}

int archive_command(const struct config *config, const struct upkeep_arguments *arguments)
{
    const db_options options = {.url = config->db, .shared_file = config->db_shared};
    archive_moved moved;
    db_error error = {.status = DB_OK};
    int64_t before_us;
    if (!closed_before(arguments->before, &before_us))
        return USAGE;
    const db_status status = archive_move(&options, before_us, arguments->file, &moved, &error);
    if (moved.finished > 0)
        printf("%s: parts that an earlier run had written, and are out of the store now: %" PRId64
               "\n",
               arguments->file, moved.finished);
    if (moved.rows > 0)
        printf("%s: %" PRId64 " rows from before %s moved\n", arguments->file, moved.rows,
               arguments->before);
    else if (status == DB_OK)
        printf("%s: there is nothing to move\n", arguments->file);
    if (status == DB_OK && moved.held[0] != '\0')
        printf("rows of these months stay: %s\n", moved.held);
    return upkeep_report(status, &error);
}

/* -- audit --------------------------------------------------------------------------------------
 */

struct finding {
    int64_t resources, bad;
    char first[DB_RESOURCE_MAX + 1]; /* that is not ok */
};

static int note(void *arg, const db_audit_row *row)
{
    struct finding *finding = arg;
    finding->resources++;
    if (!row->ok && finding->bad++ == 0)
        memcpy(finding->first, row->resource, sizeof finding->first);
    return 0;
}

static bool show_store(const struct finding *found, const db_books *books)
{
    printf("items and accounts: %" PRId64 ", with faults: %" PRId64 "%s%s\n", found->resources,
           found->bad, found->bad > 0 ? ", first " : "", found->first);
    printf("movements of money: %" PRId64 ", unbalanced %" PRId64 ", unchained %" PRId64
           "; sum of all %" PRId64 "; orders not paid as they say %" PRId64 "\n",
           books->transactions, books->unbalanced, books->unchained, books->total, books->unpaid);
    return found->bad == 0 && books->ok;
}

static bool show_archive(const char *file, const archive_proof *proof)
{
    printf("%s: %" PRId64 " rows in %" PRId64 " parts, faults: %" PRId64 "%s%s\n", file,
           proof->rows, proof->parts, proof->faults, proof->faults > 0 ? ", first: " : "",
           proof->first);
    return proof->faults == 0;
}

/* All in one snapshot. */
static db_status audit(db_reader *reader, const char *file, bool *ret_ok, db_error *error)
{
    struct finding found = {.resources = 0};
    db_books books = {.ok = false};
    archive_proof proof;
    db_archive_part newest;
    db_status status = db_audit(reader, NULL, note, &found, error);
    if (status == DB_OK)
        status = db_audit_books(reader, &books, error);
    if (status != DB_OK)
        return status;
    *ret_ok = show_store(&found, &books);
    if (file != NULL) {
        status = archive_prove(reader, file, &proof, error);
        if (status == DB_OK)
            *ret_ok &= show_archive(file, &proof);
    } else if (db_read_newest_part(reader, &newest) == DB_OK) {
        printf("%" PRId64 " parts are in an archive: give --archive=FILE to prove them, too\n",
               newest.part);
    }
    return status;
}

int audit_command(const struct config *config, const struct upkeep_arguments *arguments)
{
    const db_options options = {
        .url = config->db, .shared_file = config->db_shared, .existing = true};
    db *store = NULL;
    db_reader *reader = NULL;
    db_error error = {.status = DB_OK};
    bool ok = false;
    db_status status = db_open(&options, &store, &error);
    if (status == DB_OK)
        status = db_reader_open(store, &reader, &error);
    if (status == DB_OK && (status = db_reader_begin(reader)) == DB_OK) {
        status = audit(reader, arguments->archive, &ok, &error);
        db_reader_end(reader);
    }
    if (status != DB_OK && error.message[0] == '\0')
        snprintf(error.message, sizeof error.message, "the audit: %s", db_status_text(status));
    if (reader != NULL)
        db_reader_close(reader);
    db_close(store);
    if (status == DB_OK)
        printf("%s\n", ok ? "ok" : "NOT OK");
    return status == DB_OK ? !ok : upkeep_report(status, &error);
}
