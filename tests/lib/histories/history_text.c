#include "history_text.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WORD = 40, WORDS_MAX = 10 };

static bool write_resource(FILE *out, const char *line)
{
    char kind[WORD], name[WORD];
    long long initial, version, limit;
    int n = sscanf(line, "%39s %39s %lld v%lld limit %lld", kind, name, &initial, &version, &limit);
    if (n < 3)
        return false;
    fprintf(out, "{\"event\":\"resource\",\"resource\":\"%s:%s\",\"initial\":%lld", kind, name,
            initial);
    if (n > 3)
        fprintf(out, ",\"version\":%lld", version);
    if (n > 4)
        fprintf(out, ",\"limit\":%lld", limit);
    fputs("}\n", out);
    return true;
}

/* A resource of one letter: a to m are items, n to z accounts. */
static bool is_item(const char *name)
{
    return name[0] < 'n';
}

static bool write_question(FILE *out, const char *at, const char *key, char words[][WORD], int n)
{
    const char *verb = words[0];
    fprintf(out, "{\"event\":\"invoke\",\"at_us\":%s,\"key\":\"%s\",\"path\":\"/v1/", at, key);
    if (strcmp(verb, "buy") == 0 && n >= 3)
        fprintf(out, "items/%s/orders\",\"body\":{\"quantity\":%s,\"user_id\":\"%s\"}", words[2],
                words[1], n > 3 ? words[3] : key);
    else if (strcmp(verb, "add") == 0 && n == 3)
        fprintf(out, "accounts/%s/transactions\",\"body\":{\"amount\":%s}", words[2], words[1]);
    else if (strcmp(verb, "move") == 0 && n == 4)
        fprintf(out, "transfers\",\"body\":{\"amount\":%s,\"from\":\"%s\",\"to\":\"%s\"}", words[1],
                words[2], words[3]);
    else if (strcmp(verb, "read") == 0 && n == 2)
        fprintf(out, "%s/%s\"", is_item(words[1]) ? "items" : "accounts", words[1]);
    else if ((strcmp(verb, "pay") == 0 || strcmp(verb, "cancel") == 0) && n == 2)
        fprintf(out, "orders/%s/%s\",\"body\":{}", words[1],
                verb[0] == 'p' ? "payment" : "cancellation");
    else
        return false;
    fputs("}\n", out);
    return true;
}

static void write_accepted(FILE *out, const char *key, char words[][WORD], int n,
                           const char *number)
{
    char before[WORD], after[WORD];
    const char *id = NULL, *sign = "";
    for (int i = 0; i < n; i++) {
        if (sscanf(words[i], "%39[^>]>%39s", before, after) == 2)
            fprintf(out, "%s\"%s_before\":%s,\"%s_after\":%s", sign, number, before, number, after);
        else if (words[i][0] == 'v')
            fprintf(out, "%s\"version\":%s", sign, words[i] + 1);
        else if (words[i][0] == 'f')
            fprintf(out, "%s\"fence\":%s", sign, words[i] + 1);
        else if (strcmp(words[i], "to") == 0)
            fprintf(out, "%s\"to_version\":%s", sign, words[++i]);
        else if (strcmp(words[i], "amount") == 0)
            fprintf(out, "%s\"amount\":%s", sign, words[++i]);
        else if (strcmp(words[i], "id") == 0)
            id = words[++i];
        else if (strcmp(words[i], "ok") != 0)
            fprintf(out, "%s\"%s\":%s", sign, number, words[i]);
        else
            fprintf(out, "%s\"state\":\"done\"", sign);
        sign = i + 1 < n && strcmp(words[i + 1], "id") != 0 ? "," : "";
    }
    if (strcmp(number, "stock") == 0)
        fprintf(out, ",\"order_id\":\"%s%s\"", id != NULL ? "" : "o-", id != NULL ? id : key);
}

static void write_answer(FILE *out, const char *at, const char *key, char words[][WORD], int n,
                         const char *number)
{
    fprintf(out, "{\"event\":\"complete\",\"at_us\":%s,\"key\":\"%s\",\"end\":\"", at, key);
    if (strcmp(words[0], "lost") == 0) {
        fputs("broken\"}\n", out);
    } else if (strcmp(words[0], "unsent") == 0) {
        fputs("not-sent\"}\n", out);
    } else if (words[0][0] >= 'a' && words[0][0] <= 'z' && strcmp(words[0], "ok") != 0) {
        fprintf(out, "answered\",\"status\":409,\"body\":{\"type\":\"/problems/%s\"}}\n", words[0]);
    } else {
        fputs("answered\",\"status\":201,\"body\":{", out);
        write_accepted(out, key, words, n, number);
        fputs("}}\n", out);
    }
}

/* Splits the text into words that end at a character of `until`. Returns how many. */
static int split(const char **at, const char *until, char words[WORDS_MAX][WORD])
{
    int n = 0;
    while (n < WORDS_MAX) {
        *at += strspn(*at, " ");
        size_t length = strcspn(*at, until);
        if (length == 0 || length >= WORD)
            break;
        memcpy(words[n], *at, length);
        words[n++][length] = '\0';
        *at += length;
    }
    return n;
}

static bool write_line(FILE *out, const char *line)
{
    char asked[WORD], answered[WORD], key[WORD], question[WORDS_MAX][WORD];
    char answer[WORDS_MAX][WORD] = {""};
    int read = 0;
    if (strncmp(line, "item", 4) == 0 || strncmp(line, "account", 7) == 0)
        return write_resource(out, line);
    if (sscanf(line, "%39[0-9]-%39[0-9?] %39s %n", asked, answered, key, &read) != 3 || read == 0)
        return false;
    const char *at = line + read;
    int n = split(&at, " :\n", question);
    if (n < 2 || !write_question(out, asked, key, question, n))
        return false;
    if (answered[0] == '?')
        return true;
    if (*at++ != ':' || (n = split(&at, " \n", answer)) == 0)
        return false;
    const char *verb = question[0], *of = question[strcmp(verb, "buy") == 0 ? 2 : 1];
    bool stock = strcmp(verb, "buy") == 0 || (strcmp(verb, "read") == 0 && is_item(of));
    write_answer(out, answered, key, answer, n, stock ? "stock" : "balance");
    return true;
}

bool history_text_write(const char *text, const char *path)
{
    FILE *out = fopen(path, "we");
    bool whole = out != NULL;
    if (whole)
        fputs("{\"event\":\"run\",\"format\":1,\"workload\":\"text\",\"guard\":\"none\"}\n", out);
    for (const char *line = text; whole && *line != '\0';) {
        const char *end = strchrnul(line, '\n');
        whole = write_line(out, line);
        line = *end == '\0' ? end : end + 1;
    }
    if (out != NULL)
        fclose(out);
    return whole;
}

static void make_path(char path[32])
{
    strcpy(path, "/tmp/test-history-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
}

void history_text_read(const char *text, struct history *ret)
{
    char path[32], message[512];
    make_path(path);
    if (!history_text_write(text, path))
        fail_msg("not a history: %s", text);
    int result = history_read(path, ret, message, sizeof message);
    unlink(path);
    if (result != 0)
        fail_msg("%s: %s", message, text);
}

enum check_verdict history_text_check(const char *text, const char *audit_text,
                                      struct check_result ret[HISTORY_CHECKERS_MAX])
{
    struct history history;
    struct check_audit audit = {0};
    char path[32], message[512];
    assert_true(n_checkers <= HISTORY_CHECKERS_MAX);
    memset(ret, 0, HISTORY_CHECKERS_MAX * sizeof *ret);
    history_text_read(text, &history);
    if (audit_text != NULL) {
        make_path(path);
        FILE *out = fopen(path, "we");
        assert_non_null(out);
        fputs(audit_text, out);
        assert_int_equal(fclose(out), 0);
        int result = check_audit_read(path, &audit, message, sizeof message);
        unlink(path);
        if (result != 0)
            fail_msg("%s: %s", message, audit_text);
    }
    for (size_t i = 0; i < n_checkers; i++)
        checkers[i].check(&history, audit_text != NULL ? &audit : NULL, &ret[i]);
    history_free(&history);
    check_audit_free(&audit);
    return check_verdict(ret, n_checkers);
}

const char *history_text_finders(const struct check_result *results)
{
    static char found[200];
    found[0] = '\0';
    for (size_t i = 0; i < n_checkers; i++)
        if (results[i].breaches > 0)
            snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s",
                     found[0] == '\0' ? "" : " ", checkers[i].name);
    return found;
}
