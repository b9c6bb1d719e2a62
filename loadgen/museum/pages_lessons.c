/* A page for each failure of the lab's catalogue, and the matrix of them all. */
#include "exhibit.h"
#include "hazard.h"
#include "museum.h"
#include "pages.h"
#include "words.h"

#include <string.h>

enum { GUARDS_MAX = 40, PATH_MAX_LENGTH = 160 };

static const char *text_of(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));
    return text != NULL ? text : "";
}

static bool is_of(const json_t *record, const struct hazard *hazard)
{
    return strcmp(text_of(record, "hazard"), hazard->id) == 0;
}

static bool was_recorded(const struct site *site, const struct hazard *hazard)
{
    for (size_t i = 0; i < json_array_size(site->results); i++)
        if (is_of(json_array_get(site->results, i), hazard))
            return true;
    return false;
}

/* -- a lesson --------------------------------------------------------------------------------- */

static void write_paragraph(const struct page *page, const char *key, const char *const *text)
{
    fputs("<p><b>", page->out);
    html_escape(words_get(page->words, key), page->out);
    fprintf(page->out, "%s</b>", words_get(page->words, "colon"));
    html_escape(text[page->language], page->out);
    fputs("</p>\n", page->out);
}

static void write_about(const struct page *page)
{
    const struct hazard *hazard = page->about;
    write_paragraph(page, "lesson.story", hazard->story);
    write_paragraph(page, "lesson.warning", hazard->warning);
    write_paragraph(page, "lesson.fix", hazard->fix);
}

static void write_run(const struct page *page, const json_t *record, bool open)
{
    const char *outcome = text_of(record, "observed");
    const char *variant = exhibit_variant(page, record);
    char slug[EXHIBIT_SLUG_MAX];
    exhibit_slug(record, slug);
    fprintf(page->out,
            "<details class=\"exhibit\" id=\"%s\"%s><summary><b class=\"sign %s\">%s</b> <code>",
            slug, open ? " open" : "", outcome, exhibit_sign(outcome));
    html_escape(text_of(record, "guard"), page->out);
    fputs("</code> ", page->out);
    html_escape(variant, page->out);
    fprintf(page->out, " <span class=\"%s\">", outcome);
    html_escape(words_of(page->words, "short", outcome), page->out);
    fputs("</span></summary>\n", page->out);
    exhibit_write(page, record, NULL, NULL);
    fputs("</details>\n", page->out);
}

static void write_runs(const struct page *page)
{
    const struct hazard *hazard = page->about;
    bool first = true;
    for (size_t i = 0; i < json_array_size(page->site->results); i++) {
        const json_t *record = json_array_get(page->site->results, i);
        if (!is_of(record, hazard))
            continue;
        write_run(page, record, first);
        first = false;
    }
}

static int make_lesson(const struct site *site, const json_t *words, int language,
                       const struct hazard *hazard)
{
    static const struct page_part parts[] = {
        {"about", write_about}, {"runs", write_runs}, {"scripts", page_scripts}, {NULL, NULL}};
    char path[PATH_MAX_LENGTH], other[PATH_MAX_LENGTH];
    snprintf(path, sizeof path, "%slesson/%s.html", language == EN ? "" : "zh/", hazard->id);
    snprintf(other, sizeof other, "%slesson/%s.html", language == EN ? "../zh/" : "../../",
             hazard->id);
    struct page page = {.site = site,
                        .words = words,
                        .language = language,
                        .root = language == EN ? "../" : "../../",
                        .other = other,
                        .title = hazard->title[language],
                        .about = hazard};
    return page_make(&page, "lesson.html", parts, path);
}

int pages_lessons(const struct site *site, const json_t *words, int language)
{
    for (size_t i = 0; hazard_list[i] != NULL; i++)
        if (was_recorded(site, hazard_list[i]) &&
            make_lesson(site, words, language, hazard_list[i]) != 0)
            return -1;
    return 0;
}

/* -- the matrix
 * -------------------------------------------------------------------------------------- */

struct columns {
    const char *guards[GUARDS_MAX];
    int n;
};

/* In the order in which the recording has them. */
static void find_columns(const struct site *site, struct columns *ret)
{
    for (size_t i = 0; i < json_array_size(site->results); i++) {
        const char *guard = text_of(json_array_get(site->results, i), "guard");
        int k = 0;
        while (k < ret->n && strcmp(ret->guards[k], guard) != 0)
            k++;
        if (k == ret->n && ret->n < GUARDS_MAX)
            ret->guards[ret->n++] = guard;
    }
}

static void write_cell(const struct page *page, const struct hazard *hazard, const char *guard)
{
    bool blank = true;
    fputs("<td>", page->out);
    for (size_t i = 0; i < json_array_size(page->site->results); i++) {
        const json_t *record = json_array_get(page->site->results, i);
        if (!is_of(record, hazard) || strcmp(text_of(record, "guard"), guard) != 0)
            continue;
        exhibit_link(page, record);
        blank = false;
    }
    if (blank)
        fputs(hazard_blank_texts[hazard_blank(hazard, guard)].sign, page->out);
    fputs("</td>", page->out);
}

static void write_row(const struct page *page, const struct hazard *hazard,
                      const struct columns *columns)
{
    fprintf(page->out, "<tr><th scope=\"row\"><a href=\"lesson/%s.html\">", hazard->id);
    html_escape(hazard->title[page->language], page->out);
    fputs("</a></th>", page->out);
    for (int k = 0; k < columns->n; k++)
        write_cell(page, hazard, columns->guards[k]);
    fputs("</tr>\n", page->out);
}

static void write_matrix(const struct page *page)
{
    struct columns columns = {.n = 0};
    find_columns(page->site, &columns);
    fputs("<table class=\"matrix\"><thead><tr><th scope=\"col\">", page->out);
    html_escape(words_get(page->words, "matrix.failure"), page->out);
    fputs("</th>", page->out);
    for (int k = 0; k < columns.n; k++) {
        fputs("<th scope=\"col\"><span>", page->out);
        html_escape(columns.guards[k], page->out);
        fputs("</span></th>", page->out);
    }
    fputs("</tr></thead><tbody>\n", page->out);
    for (size_t i = 0; hazard_list[i] != NULL; i++)
        if (was_recorded(page->site, hazard_list[i]))
            write_row(page, hazard_list[i], &columns);
    fputs("</tbody></table>\n", page->out);
}

static void write_legend(const struct page *page)
{
    for (int i = 0; i < HAZARD_OUTCOMES; i++) {
        const char *outcome = hazard_outcome_text((enum hazard_outcome)i);
        fprintf(page->out, "<li><b class=\"sign %s\">%s</b> ", outcome, exhibit_sign(outcome));
        html_escape(words_of(page->words, "outcome", outcome), page->out);
        fputs("</li>\n", page->out);
    }
    for (int i = 0; i < HAZARD_BLANKS; i++) {
        fprintf(page->out, "<li><b>%s</b> ", hazard_blank_texts[i].sign);
        html_escape(words_of(page->words, "blank", hazard_blank_texts[i].id), page->out);
        fputs("</li>\n", page->out);
    }
}

static void write_not_run(const struct page *page)
{
    const size_t n = json_array_size(json_object_get(page->site->lab, "not_run"));
    if (n == 0)
        return;
    json_t *args = json_object();
    args_count(args, "n", (int64_t)n);
    fputs("<p class=\"missing\">", page->out);
    words_fill(words_get(page->words, "missing-many"), args, page->out);
    fputs("</p>\n", page->out);
    json_decref(args);
}

int pages_matrix(const struct site *site, const json_t *words, int language)
{
    static const struct page_part parts[] = {{"matrix", write_matrix},
                                             {"legend", write_legend},
                                             {"not-run", write_not_run},
                                             {NULL, NULL}};
    struct page page = {.site = site,
                        .words = words,
                        .language = language,
                        .root = language == EN ? "" : "../",
                        .other = language == EN ? "zh/matrix.html" : "../matrix.html",
                        .title = words_get(words, "matrix.title")};
    return page_make(&page, "matrix.html", parts,
                     language == EN ? "matrix.html" : "zh/matrix.html");
}
