/* Problem documents, RFC 9457. */
#include "answer.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { DETAIL_MAX = 400 };

static const struct problem_info problems[] = {[PROBLEM_NONE] = {"none", "", 200, 0, false},
#define PROBLEM_INFO(name, id, status, title, retry_s, decided)                                    \
    [PROBLEM_##name] = {id, title, status, retry_s, decided},
                                               PROBLEM_MAP(PROBLEM_INFO)
#undef PROBLEM_INFO
};

bool op_is_pruned(struct op *op, const db_answer *stored)
{
    if (stored->body[0] != '\0')
        return false;
    op_problem(op, PROBLEM_ALREADY_DONE,
               "a request with this key was accepted and answered %d; the answer is older than "
               "--key-retention-s; GET /v1/ledger has what it did, under this transaction id",
               stored->http_status);
    return true;
}

/* more: further members, with a comma before each. */
static void answer_problem(struct op *op, enum problem problem, const char *text, const char *more)
{
    char escaped[DETAIL_MAX], request_id[2 * sizeof op->request_id];
    json_escape(escaped, sizeof escaped, text);
    json_escape(request_id, sizeof request_id, op->request_id);

    const struct problem_info *info = problem_info(problem);
    struct answer *answer = &op->answer;
    const bool whole = answer_print(answer,
                                    "{\"type\":\"/problems/%s\",\"title\":\"%s\",\"status\":%d,"
                                    "\"detail\":\"%s\",\"request_id\":\"%s\"%s}",
                                    info->id, info->title, info->status, escaped, request_id, more);
    answer->status = info->status;
    answer->problem = problem;
    answer->decided = info->decided && whole;
    answer->replayed = false;
    answer->version = 0;
}

void op_problem(struct op *op, enum problem problem, const char *detail, ...)
{
    char text[DETAIL_MAX];
    va_list args;
    va_start(args, detail);
    vsnprintf(text, sizeof text, detail, args); /* a detail too long is cut */
    va_end(args);
    answer_problem(op, problem, text, "");
}

void op_archived(struct op *op, const char *next)
{
    char more[DB_ID_MAX + 32];
    snprintf(more, sizeof more, ",\"next\":\"%s\"", next); /* digits and dots */
    answer_problem(op, PROBLEM_ARCHIVED,
                   "the rows behind this place were moved to an archive file; go on from \"next\"",
                   more);
}

enum problem problem_of_store(db_status status)
{
    switch (status) {
    case DB_FULL:
        return PROBLEM_STORAGE_FULL;
    case DB_READ_ONLY:
        return PROBLEM_READ_ONLY;
    case DB_CROWDED:
        return PROBLEM_CROWDED;
    default:
        return PROBLEM_UNAVAILABLE;
    }
}

/* Which problem a document is about; PROBLEM_NONE when it is none of ours. */
static enum problem problem_of(const char *document)
{
    static const char before[] = "{\"type\":\"/problems/";
    if (strncmp(document, before, sizeof before - 1) != 0)
        return PROBLEM_NONE;
    const char *id = document + sizeof before - 1;
    for (int i = 1; i < PROBLEM_COUNT; i++) {
        size_t length = strlen(problems[i].id);
        if (strncmp(id, problems[i].id, length) == 0 && id[length] == '"')
            return (enum problem)i;
    }
    return PROBLEM_NONE;
}

void op_replay(struct op *op, const db_answer *stored)
{
    struct answer *answer = &op->answer;
    if (stored->http_status == 0) {
        op_problem(op, PROBLEM_INTERNAL, "the key's stored answer has no HTTP status");
        return;
    }
    if (!answer_print(answer, "%s", stored->body)) {
        op_problem(op, PROBLEM_OVERLOADED, "out of memory");
        return;
    }
    answer->status = stored->http_status;
    answer->problem = problem_of(stored->body);
    answer->decided = false; /* it is stored already */
    answer->replayed = true;
}

const struct problem_info *problem_info(enum problem problem)
{
    assert((unsigned)problem < PROBLEM_COUNT);
    return &problems[problem];
}
