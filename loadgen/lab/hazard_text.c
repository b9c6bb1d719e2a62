/* What the terminal shows of the lab: the verdict first, then a line per case. */
#include "hazard_report.h"
#include "text.h"

#include <string.h>

enum { NAMED_MAX = 10, LINE_MAX_BYTES = 400 }; /* the files name all cases that were not run */

char *lab_measure(const struct lab_result *result, char out[LAB_MEASURE_MAX])
{
    const struct run_outcome *o = &result->outcome;
    char number[TEXT_MAX];
    int64_t off = o->final - o->expected_final;
    bool unsafe = result->observed == HAZARD_UNSAFE;
    out[0] = '\0';
    if (unsafe && off == 0 && o->duplicates > 0)
        snprintf(out, LAB_MEASURE_MAX, "%s done twice", text_count(number, o->duplicates));
    else if (unsafe && off == 0)
        snprintf(out, LAB_MEASURE_MAX, "%s overwritten", text_count(number, o->lost_updates));
    else if (unsafe && off > 0 && result->hazard->subject == ITEM)
        snprintf(out, LAB_MEASURE_MAX, "%s too many", text_count(number, off));
    else if (unsafe)
        snprintf(out, LAB_MEASURE_MAX, "%s lost", text_count(number, off < 0 ? -off : off));
    else if (o->failed > 0)
        snprintf(out, LAB_MEASURE_MAX, "%s failed", text_count(number, o->failed));
    else if (result->hazard->queue > 0)
        snprintf(out, LAB_MEASURE_MAX, "overtaken by %s", text_count(number, o->overtakings));
    else if (result->hazard->slow_wakes > 0)
        snprintf(out, LAB_MEASURE_MAX, "%s woken", text_count(number, o->wakes));
    else if (result->observed == HAZARD_SLOW || result->observed == HAZARD_STUCK)
        snprintf(out, LAB_MEASURE_MAX, "%s", text_time_us(number, o->measure_ms * 1000));
    return out;
}

/* "redis-token (fence on)" */
static char *label(const struct lab_result *result, char out[LAB_LABEL_MAX])
{
    const char *as = result->one->as[EN];
    snprintf(out, LAB_LABEL_MAX, "%s%s%s%s", result->one->guard, as ? " (" : "", as ? as : "",
             as ? ")" : "");
    return out;
}

/* The guard, with what it is tried with, is the longest: it stands last, and is broken into lines.
 */
static void print_line(const struct lab_report *report, const char *const cells[6], FILE *out)
{
    char line[LINE_MAX_BYTES], wrapped[2 * LINE_MAX_BYTES];
    bool repeats = report->repeat > 1;
    int indent = snprintf(line, sizeof line, "  %-4s %-8s %-16s %8s  ", cells[0], cells[1],
                          cells[2], cells[3]);
    if (repeats)
        indent += snprintf(line + indent, sizeof line - (size_t)indent, "%-12s", cells[4]);
    snprintf(line + indent, sizeof line - (size_t)indent, "%s", cells[5]);
    fprintf(out, "%s\n", text_wrap(wrapped, sizeof wrapped, line, indent));
}

void lab_report_mismatch(const struct lab_result *result, FILE *out)
{
    char text[LAB_LABEL_MAX];
    fprintf(out,
            "MISMATCH %s under %s: %s, expected %s; the fault took effect in %d of %d runs%s%s\n",
            result->hazard->id, label(result, text), hazard_outcome_text(result->observed),
            hazard_outcome_text(result->one->expected), result->took_effect, result->runs,
            result->message[0] ? ": " : "", result->message);
}

static void print_not_run(const struct lab_report *report, int not_run, FILE *out)
{
    int named = 0;
    for (int i = 0; i < report->n_results && named < NAMED_MAX; i++) {
        const struct lab_result *result = &report->results[i];
        char text[LAB_LABEL_MAX];
        if (lab_was_run(report, result))
            continue;
        fprintf(out, "     %s  %s\n", result->hazard->id, label(result, text));
        named++;
    }
    if (named < not_run)
        fprintf(out, "     and %d more\n", not_run - named);
}

static void print_verdict(const struct lab_report *report, FILE *out)
{
    int not_run = lab_not_run(report), mismatches = lab_mismatches(report);
    const char *plural = report->n_results == 1 ? "" : "s", *are = mismatches == 1 ? "" : "es";
    if (not_run > 0) {
        fprintf(out, "incomplete: %d of %d case%s run, %d mismatch%s; not run:\n",
                report->n_results - not_run, report->n_results, plural, mismatches, are);
        print_not_run(report, not_run, out);
    } else {
        fprintf(out, "%s: %d case%s, %d mismatch%s\n",
                mismatches == 0 ? "As expected" : "NOT AS EXPECTED", report->n_results, plural,
                mismatches, are);
    }
    for (int i = 0; i < report->n_results; i++)
        if (!lab_result_agrees(&report->results[i]))
            lab_report_mismatch(&report->results[i], out);
}

static void print_result(const struct lab_report *report, const struct lab_result *result,
                         FILE *out)
{
    char took[TEXT_MAX], measure[LAB_MEASURE_MAX], text[LAB_LABEL_MAX], agree[TEXT_MAX];
    snprintf(agree, sizeof agree, "%d of %d", result->agreeing, result->runs);
    const char *const cells[] = {lab_result_agrees(result) ? "ok" : "BAD",
                                 hazard_outcome_text(result->observed),
                                 lab_measure(result, measure),
                                 text_time_us(took, result->took_us / result->runs),
                                 agree,
                                 label(result, text)};
    print_line(report, cells, out);
}

void lab_report_to_text(const struct lab_report *report, FILE *out)
{
    static const char *const heading[] = {"", "outcome", "measure", "a run", "agree", "guard"};
    const struct hazard *last = NULL; /* the cases of a hazard stand together */
    print_verdict(report, out);
    for (int i = 0; i < report->n_results; i++) {
        const struct lab_result *result = &report->results[i];
        if (result->runs == 0)
            continue;
        if (last == NULL) {
            fputc('\n', out);
            print_line(report, heading, out);
        }
        if (result->hazard != last)
            fprintf(out, "%s\n", result->hazard->id);
        last = result->hazard;
        print_result(report, result, out);
    }
}
