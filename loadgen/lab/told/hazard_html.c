/* The matrix as a page that needs nothing but itself: failures down, guards across. A cell says in
 * words, by a sign, by the shape of its border and by its colour what came of it. */
#include "hazard_facts.h"
#include "hazard_html.h"
#include "html.h"
#include "text.h"

#include <stdlib.h>
#include <string.h>

enum { GUARDS_MAX = 40 };

static const char style[] =
    "main{max-width:none}\n"
    ".frame{max-height:94vh;overflow:auto;padding:0}\n"
    ".matrix{font-size:.75rem}.matrix th,.matrix td{text-align:left;vertical-align:top;"
    "border:1px solid var(--line);padding:3px;white-space:normal;font-size:inherit}\n"
    ".matrix thead th{position:sticky;top:0;background:var(--card);z-index:1;color:var(--ink);"
    "writing-mode:vertical-rl;transform:rotate(180deg);padding:6px 2px;white-space:nowrap}\n"
    ".matrix thead th:first-child{writing-mode:initial;transform:none;z-index:2}\n"
    ".matrix tbody th{font-weight:600;color:var(--ink);min-width:11rem;max-width:16rem}\n"
    ".matrix tbody th small{display:block;font-weight:400;color:var(--soft)}\n"
    ".chip{display:block;margin:0 0 3px;padding:2px 5px;border-radius:6px;color:var(--ink);"
    "text-decoration:none;border:2px solid var(--soft);background:var(--card)}\n"
    ".chip small{display:block;color:var(--soft);min-width:5rem}\n"
    ".chip:hover,.chip:focus{outline:3px solid var(--good)}\n"
    ".chip b{display:inline-block;width:1.2em}\n"
    ".safe{border-color:var(--good);border-radius:12px;background:var(--good-paper)}\n"
    ".unsafe{border:3px double var(--bad);border-radius:0;background:var(--bad-paper);"
    "font-weight:700}.unsafe small{color:var(--ink)}\n"
    ".stuck{border:3px solid var(--ink);border-radius:0}\n"
    ".refused{border:2px dashed var(--soft);border-radius:12px}\n"
    ".slow{border:3px dotted var(--bad)}\n"
    ".wrong{outline:4px solid var(--bad)}\n"
    ".matrix .chip{min-width:4rem}.legend{max-width:none}.legend "
    ".chip{display:inline-block;margin-right:8px}\n"
    ".run{display:none}.run:target{display:block;position:fixed;inset:3vh 3vw;margin:0;"
    "overflow:auto;z-index:9;box-shadow:0 0 0 100vmax #0008;padding:8px 28px}\n"
    ".close{float:right;font-size:1.2rem;margin-top:1.4rem}\n"
    "[lang=zh]{color:var(--soft)}\n"
    ".trace{list-style:none;padding:0;font-variant-numeric:tabular-nums}"
    ".trace li{display:grid;grid-template-columns:6rem 5rem 1fr;gap:0 1rem}"
    ".trace time{color:var(--soft);text-align:right}\n"
    "@page{size:A3 landscape;margin:10mm}\n"
    "@media print{.run,.run:target{display:block;position:static;break-before:page}"
    ".close{display:none}.frame{max-height:none;overflow:visible;break-inside:auto;border:0}"
    ".matrix{font-size:7.5px;table-layout:fixed;width:100%}.matrix tr{break-inside:avoid}"
    ".matrix thead th,.matrix th:first-child{position:static}"
    ".matrix tbody th{min-width:0}.matrix th:first-child{width:34mm}"
    ".matrix .chip{padding:1px 2px;min-width:0;overflow-wrap:anywhere}.matrix .chip b{width:auto}"
    ".matrix .chip small{min-width:0}.matrix .safe,.matrix .refused{border-radius:4px}}\n";

static const char *const signs[HAZARD_OUTCOMES] = {[HAZARD_SAFE] = "✓",
                                                   [HAZARD_UNSAFE] = "✗",
                                                   [HAZARD_STUCK] = "■",
                                                   [HAZARD_REFUSED] = "⊘",
                                                   [HAZARD_SLOW] = "…"};

static const char *const meanings[HAZARD_OUTCOMES][2] = {
    [HAZARD_SAFE] = {"nothing lost, each request has the answer that it should have",
                     "安全：没有丢失，每个请求都得到应有的答复"},
    [HAZARD_UNSAFE] = {"the ledger shows a loss, or more was done than asked for",
                       "不安全：流水表显示有损失，或者执行的比请求的多"},
    [HAZARD_STUCK] = {"a waiter never gets the lock", "卡死：等待者永远拿不到锁"},
    [HAZARD_REFUSED] = {"nothing lost, a request is not served",
                        "拒绝：没有丢失，但有请求没有得到处理"},
    [HAZARD_SLOW] = {"nothing lost, but late", "慢：没有丢失，但是晚了"}};

static const hazard_text blanks[HAZARD_BLANKS] = {
    [BLANK_UNTRIED] = {"not tried", "没有试过"},
    [BLANK_CLAIMED] = {"not tried: the guard claims to hold, and each claim is tested on its own",
                       "没有试过：该锁声称能防住，而每项声明都单独测试"},
    [BLANK_NEVER] = {"cannot happen: the guard does not have what fails",
                     "不可能发生：该锁没有会出故障的那部分"}};

/* In both languages. */
static void say(const char *const text[2], FILE *out)
{
    html_text(out, text[EN]);
    fputs(" <span lang='zh'>", out);
    html_text(out, text[ZH]);
    fputs("</span>", out);
}

#define SAY(en, zh, out) say((const char *const[]){en, zh}, out)

/* -- the matrix ------------------------------------------------------------------------------- */

/* One case in a cell. A case with fewer runs than wanted shows how many it had. */
static void chip(const struct lab_report *report, int index, FILE *out)
{
    char text[LAB_MEASURE_MAX];
    const struct lab_result *result = &report->results[index];
    const char *as = result->one->as[EN];
    if (result->runs == 0) {
        fputs("<span class='chip'>not run<small>", out);
        html_text(out, as == NULL ? "" : as);
        fputs("</small></span>", out);
        return;
    }
    fprintf(out, "<a class='chip %s%s' href='#run-%d'><b>%s</b>%s",
            hazard_outcome_text(result->observed), lab_result_agrees(result) ? "" : " wrong", index,
            signs[result->observed], hazard_outcome_text(result->observed));
    if (lab_measure(result, EN, text)[0] != '\0')
        fprintf(out, "<small>%s</small>", text);
    if (as != NULL) {
        fputs("<small>", out);
        html_text(out, as);
        fputs("</small>", out);
    }
    if (!lab_result_agrees(result))
        fprintf(out, "<small>expected %s, %d of %d</small>",
                hazard_outcome_text(result->one->expected), result->agreeing, result->runs);
    if (!lab_was_run(report, result))
        fprintf(out, "<small>%d of %d runs</small>", result->runs, report->repeat);
    fputs("</a>", out);
}

struct columns {
    const char *guards[GUARDS_MAX];
    int n;
};

static bool is_used(const struct lab_report *report, const char *guard)
{
    for (int i = 0; i < report->n_results; i++)
        if (strcmp(report->results[i].one->guard, guard) == 0)
            return true;
    return false;
}

/* The guards, in the order in which the catalogue first names them. */
static void find_columns(const struct lab_report *report, struct columns *ret)
{
    for (size_t i = 0; hazard_list[i] != NULL; i++)
        for (const struct hazard_case *one = hazard_list[i]->cases; one->guard != NULL; one++) {
            bool known = false;
            for (int j = 0; j < ret->n && !known; j++)
                known = strcmp(ret->guards[j], one->guard) == 0;
            if (!known && is_used(report, one->guard) && ret->n < GUARDS_MAX)
                ret->guards[ret->n++] = one->guard;
        }
}

static void write_row(const struct lab_report *report, const struct hazard *hazard,
                      const struct columns *columns, FILE *out)
{
    fputs("<tr><th scope='row'>", out);
    html_text(out, hazard->title[EN]);
    fputs("<small lang='zh'>", out);
    html_text(out, hazard->title[ZH]);
    fprintf(out, "</small><small><code>%s</code></small></th>", hazard->id);
    for (int c = 0; c < columns->n; c++) {
        bool blank = true;
        fputs("<td>", out);
        for (int i = 0; i < report->n_results; i++) {
            const struct lab_result *result = &report->results[i];
            if (result->hazard != hazard || strcmp(result->one->guard, columns->guards[c]) != 0)
                continue;
            chip(report, i, out);
            blank = false;
        }
        if (blank)
            fputs(hazard_blank_texts[hazard_blank(hazard, columns->guards[c])].sign, out);
        fputs("</td>", out);
    }
    fputs("</tr>\n", out);
}

static bool was_run(const struct lab_report *report, const struct hazard *hazard)
{
    for (int i = 0; i < report->n_results; i++)
        if (report->results[i].hazard == hazard)
            return true;
    return false;
}

static void write_matrix(const struct lab_report *report, FILE *out)
{
    struct columns columns = {.n = 0};
    find_columns(report, &columns);
    fputs("<div class='card frame'><table class='matrix'><thead><tr><th scope='col'>", out);
    SAY("failure", "故障", out);
    fputs("</th>", out);
    for (int c = 0; c < columns.n; c++)
        fprintf(out, "<th scope='col'>%s</th>", columns.guards[c]);
    fputs("</tr></thead><tbody>\n", out);
    for (size_t i = 0; hazard_list[i] != NULL; i++)
        if (was_run(report, hazard_list[i]))
            write_row(report, hazard_list[i], &columns, out);
    fputs("</tbody></table></div>\n", out);
}

/* -- one run ---------------------------------------------------------------------------------- */

static void paragraph(const char *const label[2], const char *const *text, FILE *out)
{
    fputs("<p><strong>", out);
    say(label, out);
    fputs("</strong> ", out);
    say(text, out);
    fputs("</p>\n", out);
}

/* What happened in this run, as it was recorded. */
static void write_facts(const struct lab_result *result, FILE *out)
{
    static struct lab_fact facts[LAB_FACTS_MAX];
    const int n = lab_facts(result, facts);
    fputs("<ul>", out);
    for (int i = 0; i < n; i++) {
        fprintf(out, "<li data-fact='%s'>", facts[i].id);
        SAY(facts[i].text[EN], facts[i].text[ZH], out);
        fputs("</li>\n", out);
    }
    fputs("</ul>\n", out);
}

static void write_title(const struct lab_result *result, FILE *out)
{
    static const char *const nothing[2] = {NULL, NULL};
    const char *const *as = result->one->as[EN] != NULL ? result->one->as : nothing;
    fputs("<h2>", out);
    html_text(out, result->hazard->title[EN]);
    fprintf(out, " — <code>%s</code>%s", result->one->guard, as[EN] == NULL ? "" : ", ");
    html_text(out, as[EN] == NULL ? "" : as[EN]);
    fputs(" <span lang='zh'>", out);
    html_text(out, result->hazard->title[ZH]);
    html_text(out, as[ZH] == NULL ? "" : "，");
    html_text(out, as[ZH] == NULL ? "" : as[ZH]);
    fputs("</span></h2>", out);
}

static void write_headline(const struct lab_result *result, FILE *out)
{
    fprintf(out,
            "<p class='headline%s'>%s %s. %d of %d runs agree; the fault took effect in %d. "
            "<span lang='zh'>%d 次运行中 %d 次与预期一致；故障在 %d 次中起作用。</span></p>\n",
            result->observed == HAZARD_SAFE || result->observed == HAZARD_REFUSED ? "" : " bad",
            signs[result->observed], hazard_outcome_text(result->observed), result->agreeing,
            result->runs, result->took_effect, result->runs, result->agreeing, result->took_effect);
}

static void write_run(const struct lab_result *result, int index, FILE *out)
{
    const struct run_outcome *o = &result->outcome;
    fprintf(out, "<section class='run card' id='run-%d'><a class='close' href='#top'>", index);
    SAY("close", "关闭", out);
    fputs("</a>", out);
    write_title(result, out);
    write_headline(result, out);
    write_facts(result, out);
    paragraph((const char *const[]){"What can go wrong.", "可能出什么错。"}, result->hazard->story,
              out);
    hazard_html_trace(result, out);
    if (o->has_fork) {
        fputs("<h3>", out);
        SAY("Two rows of the ledger that contradict each other", "流水表中互相矛盾的两行", out);
        fputs("</h3>", out);
        html_fork(o->fork, out);
    }
    paragraph((const char *const[]){"Warning.", "出处。"}, result->hazard->warning, out);
    paragraph((const char *const[]){"What helps.", "解决办法。"}, result->hazard->fix, out);
    fputs("</section>\n", out);
}

/* -- the page --------------------------------------------------------------------------------- */

static void write_legend(FILE *out)
{
    fputs("<p class='legend'>", out);
    for (int i = 0; i < HAZARD_OUTCOMES; i++) {
        const char *outcome = hazard_outcome_text((enum hazard_outcome)i);
        fprintf(out, "<span class='chip %s'><b>%s</b>%s<small>", outcome, signs[i], outcome);
        say(meanings[i], out);
        fputs("</small></span>", out);
    }
    for (int i = 0; i < HAZARD_BLANKS; i++) {
        fprintf(out, "<span class='chip'><b>%s</b><small>", hazard_blank_texts[i].sign);
        say(blanks[i], out);
        fputs("</small></span>", out);
    }
    fputs("</p>\n", out);
}

static void write_counts(const struct lab_report *report, FILE *out)
{
    const int mismatches = lab_mismatches(report), not_run = lab_not_run(report);
    fprintf(out, "<p class='headline%s'>", mismatches == 0 && not_run == 0 ? "" : " bad");
    if (not_run > 0)
        fprintf(out, "Incomplete, %d not run: ", not_run);
    fprintf(out, "%d case%s, %d not as expected <span lang='zh'>", report->n_results,
            report->n_results == 1 ? "" : "s", mismatches);
    if (not_run > 0)
        fprintf(out, "不完整，%d 例没有运行：", not_run);
    fprintf(out, "%d 例，%d 例与预期不符</span></p>\n", report->n_results, mismatches);
}

void lab_report_to_html(const struct lab_report *report, FILE *out)
{
    fprintf(out,
            "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
            "<meta name='viewport' content='width=device-width,initial-scale=1'>"
            "<title>The hazard lab: failures and guards</title><style>\n%s%s</style></head>"
            "<body id='top'><main><h1>",
            html_style, style);
    SAY("Every lock made to fail", "让每一种锁都失败", out);
    fputs("</h1>\n<p>", out);
    SAY("Real servers, the real service, one fault at a named point; the outcome is counted from "
        "the ledger. Choose a cell to see its run.",
        "真实的服务器，真实的服务，在指定的点上制造一个故障；结果由流水表得出。点击格子查看运行过程"
        "。",
        out);
    fputs(" <code>make site</code>", out);
    SAY(" plays it step by step.", "逐步播放。", out);
    fputs("</p>\n", out);
    write_counts(report, out);
    write_legend(out);
    write_matrix(report, out);
    for (int i = 0; i < report->n_results; i++)
        if (report->results[i].runs > 0)
            write_run(&report->results[i], i, out);
    fputs("</main></body></html>\n", out);
}
