/* loadgen check HISTORY [--audit FILE]: runs the checkers on a file. */
#include "check_command.h"
#include "check.h"
#include "exit_status.h"
#include "remote.h"
#include "text.h"
#include "output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The words for the whole and for one checker. */
static const struct {
    const char *headline, *word;
} verdict_texts[] = {[CHECK_HOLDS] = {"Holds", "holds"},
                     [CHECK_BROKEN] = {"BROKEN", "BROKEN"},
                     [CHECK_UNDECIDED] = {"NOT DECIDED", "undecided"},
                     [CHECK_NOTHING] = {"NOTHING TO CHECK", "-"}};

static void print_text(const struct history *history, const struct check_result *results)
{
    uint64_t states[HISTORY_REFUSED + 1] = {0}, reads = 0;
    char n[TEXT_MAX], accepted[TEXT_MAX], refused[TEXT_MAX], unknown[TEXT_MAX], count[TEXT_MAX];
    for (size_t i = 0; i < history->n_ops; i++)
        if (history->ops[i].kind == HISTORY_READ)
            reads++;
        else
            states[history->ops[i].state]++;
    printf("%s: %s requests, %s accepted, %s refused, %s unknown",
           verdict_texts[check_verdict(results, n_checkers)].headline,
           text_count(n, (int64_t)(history->n_ops - reads)),
           text_count(accepted, (int64_t)states[HISTORY_ACCEPTED]),
           text_count(refused, (int64_t)states[HISTORY_REFUSED]),
           text_count(unknown, (int64_t)states[HISTORY_UNKNOWN]));
    printf("; %s reads\n", text_count(n, (int64_t)reads));
    if (history->torn_line > 0)
        printf("  line %zu, the last, ends in the middle and was left out: the run was killed\n",
               history->torn_line);
    printf("\n  %-12s %-9s %10s   %s\n", "checker", "verdict", "breaches", "of");
    for (size_t i = 0; i < n_checkers; i++)
        printf("  %-12s %-9s %10s   %s %s\n", checkers[i].name,
               verdict_texts[check_verdict(&results[i], 1)].word,
               text_count(count, (int64_t)results[i].breaches),
               text_count(n, (int64_t)results[i].checked), checkers[i].what);
    for (size_t i = 0; i < n_checkers; i++)
        if (results[i].example[0] != '\0')
            printf("\n  %s: %s\n", checkers[i].name, results[i].example);
}

static json_t *results_json(const struct history *history, const struct check_result *results)
{
    enum check_verdict all = check_verdict(results, n_checkers);
    json_t *array = json_array();
    for (size_t i = 0; i < n_checkers; i++) {
        enum check_verdict one = check_verdict(&results[i], 1);
        json_array_append_new(
            array, json_pack("{s:s, s:s, s:b, s:I, s:I, s:I, s:s}", "checker", checkers[i].name,
                             "verdict", check_verdict_text(one), "holds", one == CHECK_HOLDS,
                             "checked", (json_int_t)results[i].checked, "breaches",
                             (json_int_t)results[i].breaches, "undecided",
                             (json_int_t)results[i].undecided, "example", results[i].example));
    }
    return json_pack("{s:s, s:b, s:b, s:o}", "verdict", check_verdict_text(all), "holds",
                     all == CHECK_HOLDS, "torn", history->torn_line > 0, "checkers", array);
}

static int exit_status(enum check_verdict verdict)
{
    return verdict == CHECK_HOLDS    ? EXIT_SUCCESS
           : verdict == CHECK_BROKEN ? EXIT_BROKEN
                                     : EXIT_FAILURE;
}

int check_command(const struct options *options)
{
    struct history history = {0};
    struct check_audit audit = {0};
    struct check_result *results = calloc(n_checkers, sizeof *results);
    char message[REMOTE_MESSAGE_MAX];
    int status = EXIT_FAILURE;
    if (results == NULL) {
        fprintf(stderr, "loadgen check: out of memory\n");
        return status;
    }
    if (history_read(options->history, &history, message, sizeof message) != 0) {
        fprintf(stderr, "loadgen check: %s: %s\n", options->history, message);
        goto out;
    }
    if (options->audit != NULL &&
        check_audit_read(options->audit, &audit, message, sizeof message) != 0) {
        fprintf(stderr, "loadgen check: %s: %s\n", options->audit, message);
        goto out;
    }
    for (size_t i = 0; i < n_checkers; i++)
        checkers[i].check(&history, options->audit != NULL ? &audit : NULL, &results[i]);
    bool data_on_stdout = options->json != NULL && strcmp(options->json, "-") == 0;
    if (!options->quiet && !data_on_stdout)
        print_text(&history, results);
    if (options->json != NULL &&
        output_json("loadgen check", options->json, results_json(&history, results)) != 0)
        goto out;
    status = exit_status(check_verdict(results, n_checkers));
out:
    history_free(&history);
    check_audit_free(&audit);
    free(results);
    return status;
}
