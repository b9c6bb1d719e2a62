/*
 * `loadgen check`: a history, as some program has written it, and behind a byte 0x1e the answer of
 * GET /v1/audit. All checkers run on what was read.
 *
 * Second opinion: jansson alone counts the requests.
 */
#include "check.h"
#include "check_command.h"
#include "memory_file.h"

#include <jansson.h>

enum { AUDIT_MARK = 0x1e };

/* Keys of invocations, each once. -1: a line that is no object. */
static long count_requests(const char *text)
{
    json_t *keys = json_object();
    long n = -1;
    char *copy = fuzz_text(text, strlen(text)), *rest = copy;
    for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
        json_t *json = json_loads(line, 0, NULL);
        const char *event = json_string_value(json_object_get(json, "event"));
        const char *key = json_string_value(json_object_get(json, "key"));
        if (event != NULL && key != NULL && strcmp(event, "invoke") == 0)
            json_object_set_new(keys, key, json_true());
        json_decref(json);
    }
    n = (long)json_object_size(keys);
    json_decref(keys);
    free(copy);
    return n;
}

static void check_ops(const struct history *history)
{
    for (size_t i = 0; i < history->n_ops; i++) {
        const struct history_op *op = &history->ops[i];
        FUZZ_CHECK(op->key[0] != '\0' && op->resource != NULL && op->other != NULL &&
                   op->user != NULL && op->of_order != NULL && op->problem != NULL &&
                   op->order_id != NULL);
        FUZZ_CHECK(op->completed_us >= op->invoked_us);
        FUZZ_CHECK((op->state >= HISTORY_ACCEPTED) == (op->answers > 0));
        FUZZ_CHECK(op->differing <= op->answers);
    }
    for (size_t i = 0; i < history->n_resources; i++)
        FUZZ_CHECK(history_resource_of(history, history->resources[i].name) ==
                   &history->resources[i]);
}

static void judge(const struct history *history, const struct check_audit *audit)
{
    for (size_t i = 0; i < n_checkers; i++) {
        struct check_result result = {0};
        checkers[i].check(history, audit, &result);
        FUZZ_CHECK((result.breaches + result.undecided > 0) == (result.example[0] != '\0'));
    }
}

static void run_command(const char *history, const char *audit)
{
    const struct options options = {.history = history, .audit = audit, .json = "/dev/null"};
    const int status = check_command(&options);
    FUZZ_CHECK(status >= 0 && status < 100);
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size)
{
    static struct memory_file file, audit_file;
    const uint8_t *mark = size > 0 ? memchr(input, AUDIT_MARK, size) : NULL;
    const size_t length = mark != NULL ? (size_t)(mark - input) : size;
    char message[400] = "", *text = fuzz_text(input, length);
    struct history history;
    struct check_audit audit = {0};
    const char *path = memory_file(&file, input, length);
    const char *audit_path =
        mark != NULL ? memory_file(&audit_file, mark + 1, size - length - 1) : NULL;
    if (history_read(path, &history, message, sizeof message) != 0) {
        FUZZ_CHECK(message[0] != '\0');
    } else {
        const bool whole = audit_path != NULL &&
                           check_audit_read(audit_path, &audit, message, sizeof message) == 0;
        if (strlen(text) == length)
            FUZZ_CHECK(count_requests(text) == (long)history.n_ops);
        check_ops(&history);
        judge(&history, NULL);
        if (whole)
            judge(&history, &audit);
        check_audit_free(&audit);
        history_free(&history);
    }
    run_command(path, audit_path);
    free(text);
    return 0;
}
