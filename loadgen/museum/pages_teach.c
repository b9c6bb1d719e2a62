/* The lesson to teach from, and the questions before an interview. */
#include "hazard.h"
#include "pages.h"
#include "teach.h"
#include "words.h"

#include <assert.h>
#include <string.h>

/* Where `make serve` listens. */
#define LIVE "http://127.0.0.1:8080/web/steps.html"

static const char *text_of(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));
    assert(text != NULL);
    return text;
}

/* Of these, the one with this id. */
static const json_t *find(const json_t *entries, const char *id)
{
    size_t i = 0;
    while (strcmp(text_of(json_array_get(entries, i), "id"), id) != 0)
        i++;
    return json_array_get(entries, i);
}

static const json_t *teach(const struct page *page, const char *name)
{
    return json_object_get(page->site->teach, name);
}

static void write_word(const struct page *page, const char *key)
{
    html_escape(words_get(page->words, key), page->out);
}

/* A paragraph that begins with this word. */
static void begin_said(const struct page *page, const char *class, const char *key)
{
    fprintf(page->out, "<p class=\"%s\"><b>", class);
    write_word(page, key);
    fputs(page->language == EN ? ":</b> " : "：</b>", page->out);
}

/* -- aims, material, preparation --------------------------------------------------------------- */

static void write_list(const struct page *page, const char *name, const char *key)
{
    const json_t *texts = teach(page, name);
    fprintf(page->out, "<section id=\"%s\"><h2>", name);
    write_word(page, key);
    fputs("</h2>\n<ul>\n", page->out);
    for (size_t i = 0; i < json_array_size(texts); i++) {
        fputs("<li>", page->out);
        teach_text(page, json_array_get(texts, i));
        fputs("</li>\n", page->out);
    }
    fputs("</ul></section>\n", page->out);
}

static void write_before(const struct page *page)
{
    write_list(page, "aims", "teach.aims");
    write_list(page, "material", "teach.material");
    write_list(page, "preparation", "teach.preparation");
}

/* -- plan -------------------------------------------------------------------------------------- */

static void write_question_step(const struct page *page, const json_t *question)
{
    teach_links(page, json_object_get(question, "show"));
    begin_said(page, "ask", "teach.ask");
    teach_text(page, json_object_get(question, "ask"));
    fprintf(page->out, " <a href=\"#q-%s\">", text_of(question, "id"));
    write_word(page, "teach.answer");
    fputs("</a></p>\n", page->out);
}

static void write_exercise_step(const struct page *page, const json_t *exercises)
{
    begin_said(page, "ask", "teach.play");
    for (size_t i = 0; i < json_array_size(exercises); i++) {
        const char *id = json_string_value(json_array_get(exercises, i));
        const json_t *exercise = find(teach(page, "exercises"), id);
        fprintf(page->out, "%s<a href=\"#e-%s\">", i > 0 ? " · " : "", id);
        teach_text(page, json_object_get(exercise, "title"));
        fputs("</a>", page->out);
    }
    fputs("</p>\n", page->out);
}

static void write_minutes(const struct page *page, json_int_t from, json_int_t to)
{
    json_t *args = json_object();
    args_count(args, "from", from);
    args_count(args, "to", to);
    fputs("<li><b class=\"when\">", page->out);
    words_fill(words_get(page->words, "teach.minute"), args, page->out);
    fputs("</b><div>\n", page->out);
    json_decref(args);
}

static void write_plan(const struct page *page, const json_t *plan)
{
    const json_t *steps = json_object_get(plan, "steps");
    json_int_t minute = 0;
    json_t *args = json_object();
    args_count(args, "n", json_integer_value(json_object_get(plan, "minutes")));
    fprintf(page->out, "<section class=\"planned\" id=\"plan-%" JSON_INTEGER_FORMAT "\"><h2>",
            json_integer_value(json_object_get(plan, "minutes")));
    words_fill(words_get(page->words, "teach.plan"), args, page->out);
    fputs("</h2>\n<ol class=\"plan\">\n", page->out);
    json_decref(args);
    for (size_t i = 0; i < json_array_size(steps); i++) {
        const json_t *step = json_array_get(steps, i);
        const json_t *exercises = json_object_get(step, "exercises");
        const json_int_t end = minute + json_integer_value(json_object_get(step, "minutes"));
        write_minutes(page, minute, end);
        minute = end;
        if (exercises != NULL)
            write_exercise_step(page, exercises);
        else
            write_question_step(page, find(teach(page, "questions"), text_of(step, "question")));
        fputs("</div></li>\n", page->out);
    }
    fputs("</ol></section>\n", page->out);
}

static void write_plans(const struct page *page)
{
    for (size_t i = 0; i < json_array_size(teach(page, "plans")); i++)
        write_plan(page, json_array_get(teach(page, "plans"), i));
}

/* -- questions --------------------------------------------------------------------------------- */

static void write_questions(const struct page *page)
{
    for (size_t i = 0; i < json_array_size(teach(page, "questions")); i++) {
        const json_t *one = json_array_get(teach(page, "questions"), i);
        fprintf(page->out, "<article id=\"q-%s\"><h3>", text_of(one, "id"));
        teach_text(page, json_object_get(one, "ask"));
        fputs("</h3>\n", page->out);
        begin_said(page, "answer", "teach.answer");
        teach_text(page, json_object_get(one, "answer"));
        fputs("</p>\n", page->out);
        teach_links(page, json_object_get(one, "show"));
        fputs("</article>\n", page->out);
    }
}

/* -- exercises --------------------------------------------------------------------------------- */

/* "A committed accepted": A is moved twice, and stands at the last of them then. "free":
 * the lock has to end first. */
static void write_move(const struct page *page, const char *move)
{
    fputs("<li>", page->out);
    const char *last = strrchr(move, ' ');
    if (last == NULL)
        write_word(page, "move.free");
    else {
        json_t *args = json_object();
        char who[2] = {move[0], '\0'};
        int n = 0;
        for (const char *at = move; (at = strchr(at, ' ')) != NULL; at++)
            n++;
        args_text(args, "who", who);
        args_count(args, "n", n);
        args_text(args, "where", words_of(page->words, "move", last + 1));
        words_fill(words_get(page->words, "move.times"), args, page->out);
        json_decref(args);
    }
    fputs("</li>\n", page->out);
}

static void write_solution(const struct page *page, const json_t *exercise)
{
    const json_t *moves = json_object_get(exercise, "moves");
    fputs("<p class=\"head\">", page->out);
    write_word(page, "teach.moves");
    fputs("</p>\n<ol>\n", page->out);
    for (size_t i = 0; i < json_array_size(moves); i++)
        write_move(page, json_string_value(json_array_get(moves, i)));
    fputs("</ol>\n<p>", page->out);
    html_escape(words_of(page->words, "teach.verdict", text_of(exercise, "verdict")), page->out);
    fputc(' ', page->out);
    teach_text(page, json_object_get(exercise, "why"));
    fputs("</p>\n", page->out);
}

static void write_exercise(const struct page *page, const json_t *exercise)
{
    const char *id = text_of(exercise, "id");
    const json_t *show = json_object_get(exercise, "show");
    fprintf(page->out, "<article id=\"e-%s\"><h3>", id);
    teach_text(page, json_object_get(exercise, "title"));
    fprintf(page->out, "</h3>\n<p><a class=\"live\" href=\"" LIVE "?ex=%s&amp;lang=%s\">", id,
            words_get(page->words, "lang"));
    write_word(page, "teach.live");
    fputs("</a></p>\n", page->out);
    write_solution(page, exercise);
    teach_links(page, show);
    fputs("<p class=\"head\">", page->out);
    write_word(page, "teach.terminal");
    fputs("</p>\n<pre>", page->out);
    teach_command(page, show);
    fputs("</pre>\n</article>\n", page->out);
}

static void write_exercises(const struct page *page)
{
    for (size_t i = 0; i < json_array_size(teach(page, "exercises")); i++)
        write_exercise(page, json_array_get(teach(page, "exercises"), i));
}

int pages_teach(const struct site *site, const json_t *words, int language)
{
    static const struct page_part parts[] = {{"before", write_before},
                                             {"plans", write_plans},
                                             {"questions", write_questions},
                                             {"exercises", write_exercises},
                                             {NULL, NULL}};
    struct page page = {.site = site,
                        .words = words,
                        .language = language,
                        .root = language == EN ? "" : "../",
                        .other = language == EN ? "zh/teach.html" : "../teach.html",
                        .title = words_get(words, "nav.teach")};
    return page_make(&page, "teach.html", parts, language == EN ? "teach.html" : "zh/teach.html");
}

/* -- before an interview ----------------------------------------------------------------------- */

static void write_interview(const struct page *page)
{
    for (size_t i = 0; i < json_array_size(page->site->interview); i++) {
        const json_t *one = json_array_get(page->site->interview, i);
        const char *code = json_string_value(json_object_get(one, "code"));
        fprintf(page->out, "<article id=\"%s\"><h2>", text_of(one, "id"));
        teach_text(page, json_object_get(one, "ask"));
        fputs("</h2>\n<p>", page->out);
        teach_text(page, json_object_get(one, "answer"));
        fputs("</p>\n", page->out);
        if (code != NULL) {
            fputs("<pre>", page->out);
            html_escape(code, page->out);
            fputs("</pre>\n", page->out);
        }
        teach_links(page, json_object_get(one, "show"));
        fputs("</article>\n", page->out);
    }
}

int pages_interview(const struct site *site, const json_t *words, int language)
{
    static const struct page_part parts[] = {{"interview", write_interview}, {NULL, NULL}};
    struct page page = {.site = site,
                        .words = words,
                        .language = language,
                        .root = language == EN ? "" : "../",
                        .other = language == EN ? "zh/interview.html" : "../interview.html",
                        .title = words_get(words, "nav.interview")};
    return page_make(&page, "interview.html", parts,
                     language == EN ? "interview.html" : "zh/interview.html");
}
