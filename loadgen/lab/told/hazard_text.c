/* What the terminal shows of the lab: the verdict first, then a line per case. */
#include "hazard_report.h"
#include "text.h"

#include <string.h>

enum { NAMED_MAX = 10, LINE_MAX_BYTES = 400 }; /* the files name all cases that were not run */

/* %s: a number, or a time. */
enum measure {
    TWICE,
    OVERWRITTEN,
    TOO_MANY,
    TOO_FEW,
    NOT_DEDUCTED,
    TOO_MUCH,
    FAILED,
    OVERTAKEN,
    WOKEN
};
static const hazard_text measures[] = {
    [TWICE] = {"%s done twice", "重复执行 %s"},
    [OVERWRITTEN] = {"%s overwritten", "被覆盖 %s"},
    [TOO_MANY] = {"%s too many", "多卖 %s"},
    [TOO_FEW] = {"%s too few", "少卖 %s"},
    [NOT_DEDUCTED] = {"%s not deducted", "少扣 %s"},
    [TOO_MUCH] = {"%s too much", "多扣 %s"},
    [FAILED] = {"%s failed", "失败 %s"},
    [OVERTAKEN] = {"overtaken by %s", "被插队 %s"},
    [WOKEN] = {"%s woken", "叫醒 %s"},
};

char *lab_measure(const struct lab_result *result, enum hazard_language language,
                  char out[LAB_MEASURE_MAX])
{
    const struct run_outcome *o = &result->outcome;
    const bool unsafe = result->observed == HAZARD_UNSAFE, item = result->hazard->subject == ITEM;
    const int64_t off = o->final - o->expected_final;
    char number[TEXT_MAX];
    enum measure measure = TWICE;
    int64_t value = 0;
    out[0] = '\0';
    if (unsafe && off == 0) {
        measure = o->duplicates > 0 ? TWICE : OVERWRITTEN;
        value = o->duplicates > 0 ? o->duplicates : o->lost_updates;
    } else if (unsafe) {
        measure = off > 0 ? (item ? TOO_MANY : NOT_DEDUCTED) : (item ? TOO_FEW : TOO_MUCH);
        value = off < 0 ? -off : off;
    } else if (o->failed > 0) {
        measure = FAILED;
        value = o->failed;
    } else if (result->hazard->queue > 0) {
        measure = OVERTAKEN;
        value = o->overtakings;
    } else if (result->hazard->slow_wakes > 0) {
        measure = WOKEN;
        value = o->wakes;
    } else {
        if (result->observed == HAZARD_SLOW || result->observed == HAZARD_STUCK)
            snprintf(out, LAB_MEASURE_MAX, "%s", text_time_us(number, o->measure_ms * 1000));
        return out;
    }
    const char *form = measures[measure][language];
    snprintf(out, LAB_MEASURE_MAX, form, text_count(number, value));
    return out;
}

const char *lab_outcome_word(enum hazard_outcome outcome, enum hazard_language language)
{
    static const char *const chinese[HAZARD_OUTCOMES] = {[HAZARD_SAFE] = "安全",
                                                         [HAZARD_UNSAFE] = "不安全",
                                                         [HAZARD_STUCK] = "卡死",
                                                         [HAZARD_REFUSED] = "被拒绝",
                                                         [HAZARD_SLOW] = "太慢"};
    return language == ZH ? chinese[outcome] : hazard_outcome_text(outcome);
}

/* "redis-token (fence on)" */
static char *label(const struct lab_result *result, enum hazard_language language,
                   char out[LAB_LABEL_MAX])
{
    const char *as = result->one->as[language];
    snprintf(out, LAB_LABEL_MAX, "%s%s%s%s", result->one->guard, as ? " (" : "", as ? as : "",
             as ? ")" : "");
    return out;
}

/* Columns on a terminal: a Chinese character has two. */
static int columns_of(const char *text)
{
    int columns = 0;
    for (; *text != '\0'; text++)
        columns += ((unsigned char)*text & 0xc0) == 0x80 ? 0 : (unsigned char)*text >= 0xe3 ? 2 : 1;
    return columns;
}

/* Appends a cell and the blanks up to its width. */
static void put_cell(char line[LINE_MAX_BYTES], const char *cell, int width, bool right)
{
    const int columns = columns_of(cell), gap = columns < width ? width - columns : 0;
    const size_t used = strlen(line);
    snprintf(line + used, LINE_MAX_BYTES - used, "%*s%s%*s", right ? gap : 0, "", cell,
             right ? 0 : gap, "");
}

/* The guard, with what it is tried with, is the longest: it stands last, and is broken into lines.
 */
static void print_line(const struct lab_report *report, const char *const cells[6], FILE *out)
{
    static const struct {
        int width;
        bool right;
    } columns[] = {{6, false}, {9, false}, {17, false}, {8, true}, {12, false}};
    char line[LINE_MAX_BYTES] = "  ", wrapped[2 * LINE_MAX_BYTES];
    for (int i = 0; i < (report->repeat > 1 ? 5 : 4); i++) {
        put_cell(line, cells[i], i == 0 ? columns[i].width - 1 : columns[i].width,
                 columns[i].right);
        if (i == 3)
            put_cell(line, "", 2, false);
    }
    const int indent = columns_of(line);
    put_cell(line, cells[5], 0, false);
    fprintf(out, "%s\n", text_wrap(wrapped, sizeof wrapped, line, indent));
}

void lab_report_mismatch(const struct lab_result *result, enum hazard_language language, FILE *out)
{
    static const hazard_text form = {
        "MISMATCH %s under %s: %s, expected %s; the fault took effect in %d of %d runs%s%s\n",
        "不符 %s，%s：%s，应为 %s；%d / %d 次运行中故障生效%s%s\n"};
    char text[LAB_LABEL_MAX];
    fprintf(out, form[language], result->hazard->id, label(result, language, text),
            lab_outcome_word(result->observed, language),
            lab_outcome_word(result->one->expected, language), result->took_effect, result->runs,
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
        fprintf(out, "     %s  %s\n", result->hazard->id, label(result, report->language, text));
        named++;
    }
    if (named < not_run)
        fprintf(out, report->language == ZH ? "     另有 %d 个\n" : "     and %d more\n",
                not_run - named);
}

static void print_verdict(const struct lab_report *report, FILE *out)
{
    int not_run = lab_not_run(report), mismatches = lab_mismatches(report);
    const char *plural = report->n_results == 1 ? "" : "s", *are = mismatches == 1 ? "" : "es";
    const bool zh = report->language == ZH;
    if (not_run > 0 && zh)
        fprintf(out, "未完成：%d / %d 个案例已运行，%d 个不符；未运行的：\n",
                report->n_results - not_run, report->n_results, mismatches);
    else if (not_run > 0)
        fprintf(out, "incomplete: %d of %d case%s run, %d mismatch%s; not run:\n",
                report->n_results - not_run, report->n_results, plural, mismatches, are);
    else if (zh)
        fprintf(out, "%s：%d 个案例，%d 个不符\n", mismatches == 0 ? "符合预期" : "不符合预期",
                report->n_results, mismatches);
    else
        fprintf(out, "%s: %d case%s, %d mismatch%s\n",
                mismatches == 0 ? "As expected" : "NOT AS EXPECTED", report->n_results, plural,
                mismatches, are);
    if (not_run > 0)
        print_not_run(report, not_run, out);
    for (int i = 0; i < report->n_results; i++)
        if (!lab_result_agrees(&report->results[i]))
            lab_report_mismatch(&report->results[i], report->language, out);
}

static void print_result(const struct lab_report *report, const struct lab_result *result,
                         FILE *out)
{
    char took[TEXT_MAX], measure[LAB_MEASURE_MAX], text[LAB_LABEL_MAX], agree[TEXT_MAX];
    const enum hazard_language language = report->language;
    snprintf(agree, sizeof agree, language == ZH ? "%d / %d" : "%d of %d", result->agreeing,
             result->runs);
    const char *const cells[] = {lab_result_agrees(result) ? (language == ZH ? "符合" : "ok")
                                                           : (language == ZH ? "不符" : "BAD"),
                                 lab_outcome_word(result->observed, language),
                                 lab_measure(result, language, measure),
                                 text_time_us(took, result->took_us / result->runs),
                                 agree,
                                 label(result, language, text)};
    print_line(report, cells, out);
}

void lab_report_to_text(const struct lab_report *report, FILE *out)
{
    static const char *const headings[][6] = {
        [EN] = {"", "outcome", "measure", "a run", "agree", "guard"},
        [ZH] = {"", "结果", "度量", "单次用时", "一致", "加锁方式"}};
    const char *const *heading = headings[report->language];
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
