/*
 * `loadgen compare`: two reports, as some program has written them, a byte 0x1e between them. The
 * first byte names the figure that must not be worse.
 *
 * A report compared with itself is not worse; of two reports not both are worse than the other.
 * Behind a second 0x1e: rows of a ledger, as the service answers. They are audited in both orders,
 * with the same result.
 */
#include "compare.h"
#include "exit_status.h"
#include "compare_command.h"
#include "memory_file.h"
#include "options.h"
#include "rows.h"

enum { MARK = 0x1e, PARTS = 3, RUNS = 4 };

static int compare(const char *a, const char *b, int metric)
{
    struct options options = {.n_fail_if = 1, .fail_if = {metric}, .n_reports = 2 * RUNS};
    for (int i = 0; i < RUNS; i++) { /* enough runs for a difference to show */
        options.reports[2 * i] = a;
        options.reports[2 * i + 1] = b;
    }
    return compare_command(&options);
}

static void differ(void *context, const char *figure, int64_t service, int64_t own)
{
    (void)context;
    (void)figure;
    (void)service;
    (void)own;
}

static bool add_rows(struct rows *rows, const json_t *list, bool backwards)
{
    const size_t n = json_array_size(list);
    for (size_t i = 0; i < n; i++) {
        const char *missing;
        if (rows_add(rows, json_array_get(list, backwards ? n - 1 - i : i), &missing) != 0) {
            FUZZ_CHECK(missing != NULL);
            return false;
        }
        rows->rows[rows->n - 1].origin = rows->rows[rows->n - 1].at_us % 4 - 1;
    }
    return true;
}

/* {"rows":[...],"resource":{the service's audit}} */
static void try_rows(const char *text)
{
    json_t *json = json_loads(text, 0, NULL);
    const json_t *list = json_object_get(json, "rows"), *own = json_object_get(json, "resource");
    struct rows forwards = {0}, backwards = {0};
    struct audit_row audit = {.resource = ""}, same, service;
    struct rows_resource resource = {.name = "item:1", .is_item = true, .one_each = true};
    if (audit_row_parse(own, &service) == 0) {
        resource.initial = service.initial;
        resource.current = service.current;
        resource.sold = service.sold;
        resource.version = service.lost_amount;
        FUZZ_CHECK(rows_disagreements(&service, &service, differ, NULL) == 0);
    }
    if (add_rows(&forwards, list, false) && add_rows(&backwards, list, true)) {
        rows_audit(&forwards, &resource, &audit);
        rows_audit(&backwards, &resource, &same);
        FUZZ_CHECK(rows_disagreements(&audit, &same, differ, NULL) == 0);
        FUZZ_CHECK(audit.negative >= 0 && audit.broken >= 0 && audit.lost_updates >= 0 &&
                   audit.duplicates >= 0 && audit.oversold >= 0 && audit.lost_amount >= 0);
        FUZZ_CHECK(audit.has_fork == (audit.lost_updates > 0));
    }
    rows_free(&forwards);
    rows_free(&backwards);
    json_decref(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    static struct memory_file files[PARTS];
    const char *path[PARTS] = {NULL};
    const int metric = fuzz_byte(&input, &size) % COMPARE_METRICS;
    int n = 0;
    for (size_t at = 0; at <= size && n < PARTS; n++) {
        const uint8_t *mark = at < size ? memchr(input + at, MARK, size - at) : NULL;
        const size_t length = mark != NULL ? (size_t)(mark - input) - at : size - at;
        if (n == PARTS - 1) {
            char *text = fuzz_text(input + at, length);
            try_rows(text);
            free(text);
        }
        path[n] = memory_file(&files[n], input + at, length);
        at += length + 1;
    }
    FUZZ_CHECK(compare(path[0], path[0], metric) != EXIT_BROKEN);
    if (n > 1) {
        const bool worse = compare(path[0], path[1], metric) == EXIT_BROKEN;
        FUZZ_CHECK(!worse || compare(path[1], path[0], metric) != EXIT_BROKEN);
    }
    return 0;
}
