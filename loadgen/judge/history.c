/* Writing a history. The reader is history_read.c. */
#include "history.h"
#include "steady.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { BUFFER_BYTES = 1 << 20, FORMAT = 1 };

struct history_writer {
    FILE *file;
    atomic_int error; /* the first errno of writing; 0: none */
    char buffer[BUFFER_BYTES];
};

const char *history_end_text(enum load_end end)
{
    static const char *const texts[LOAD_END_COUNT] = {
        [LOAD_ANSWERED] = "answered",   [LOAD_ABANDONED] = "abandoned",
        [LOAD_NOT_SENT] = "not-sent",   [LOAD_BROKEN] = "broken",
        [LOAD_TIMED_OUT] = "timed-out", [LOAD_BAD_ANSWER] = "bad-answer",
    };
    return texts[end];
}

int history_create(const char *path, struct history_writer **ret)
{
    struct history_writer *writer = malloc(sizeof *writer);
    if (writer == NULL)
        return -1;
    writer->file = fopen(path, "we");
    if (writer->file == NULL) {
        free(writer);
        return -1;
    }
    writer->error = 0;
    setvbuf(writer->file, writer->buffer, _IOFBF, sizeof writer->buffer);
    *ret = writer;
    return 0;
}

int history_close(struct history_writer *writer)
{
    if (writer == NULL)
        return 0;
    history_hand_over(writer);
    bool failed = ferror(writer->file) != 0;
    int error = writer->error;
    if (fclose(writer->file) != 0 && error == 0)
        error = errno;
    if (error == 0 && failed)
        error = EIO;
    free(writer);
    errno = error;
    return error == 0 ? 0 : -1;
}

/* Each line goes out as one piece: stdio locks the file for the call. The names and keys are our
 * own and need no escaping. */

void history_run(struct history_writer *writer, const char *workload, const char *guard,
                 const char *run, uint64_t seed)
{
    if (writer != NULL)
        fprintf(writer->file,
                "{\"event\":\"run\",\"format\":%d,\"workload\":\"%s\",\"guard\":\"%s\","
                "\"run\":\"%s\",\"seed\":%" PRIu64 "}\n",
                FORMAT, workload, guard, run, seed);
}

void history_resource(struct history_writer *writer, const char *resource, int64_t initial,
                      int64_t version, int64_t limit)
{
    if (writer != NULL)
        fprintf(writer->file,
                "{\"event\":\"resource\",\"resource\":\"%s\",\"initial\":%" PRId64
                ",\"version\":%" PRId64 ",\"limit\":%" PRId64 "}\n",
                resource, initial, version, limit);
}

void history_invoke(struct history_writer *writer, const char *key, const char *path,
                    const char *body)
{
    if (writer != NULL)
        fprintf(writer->file,
                "{\"event\":\"invoke\",\"at_us\":%" PRId64 ",\"key\":\"%s\",\"path\":\"%s\"%s%s}\n",
                steady_us(), key, path, body == NULL ? "" : ",\"body\":", body == NULL ? "" : body);
}

/* An answer's body as JSON on one line; a JSON string if it is not JSON. NULL: no memory. */
static char *body_json(const char *body)
{
    json_t *json = json_loads(body, 0, NULL);
    if (json == NULL)
        json = json_string(body);
    char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);
    json_decref(json);
    return text;
}

void history_complete(struct history_writer *writer, const char *key,
                      const struct load_answer *answer)
{
    if (writer == NULL)
        return;
    int64_t now_us = steady_us();
    if (answer->end != LOAD_ANSWERED) {
        fprintf(writer->file,
                "{\"event\":\"complete\",\"at_us\":%" PRId64 ",\"key\":\"%s\",\"end\":\"%s\"}\n",
                now_us, key, history_end_text(answer->end));
        return;
    }
    char *body = body_json(answer->body);
    fprintf(writer->file,
            "{\"event\":\"complete\",\"at_us\":%" PRId64
            ",\"key\":\"%s\",\"end\":\"answered\",\"status\":%d,\"replayed\":%s,\"body\":%s}\n",
            now_us, key, answer->status, answer->replayed ? "true" : "false",
            body != NULL ? body : "null");
    free(body);
}

/* fflush() writes what all threads have buffered. It need not reach the disk: only the process may
 * be killed, not the machine. */
void history_hand_over(struct history_writer *writer)
{
    int none = 0;
    if (writer != NULL && fflush(writer->file) != 0)
        atomic_compare_exchange_strong(&writer->error, &none, errno);
}
