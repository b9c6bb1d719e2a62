/* The page of the levels: each with its task, its hint, and its solution as a list; the script
 * makes a game of it. */
#include "json_text.h"
#include "hazard.h"
#include "levels.h"
#include "pages.h"
#include "words.h"

#include <string.h>

static const char *word(const struct page *page, const json_t *level, const char *name)
{
    char key[100];
    snprintf(key, sizeof key, "level.%s", json_text_of(level, "id"));
    return words_of(page->words, key, name);
}

static void write_element(const struct page *page, const char *open, const char *text,
                          const char *close)
{
    fputs(open, page->out);
    html_escape(text, page->out);
    fputs(close, page->out);
}

static void write_move(const struct page *page, char who)
{
    const char name[] = {who, '\0'};
    write_element(page, "<li><b>", who == 'L' ? words_get(page->words, "level.lease") : name,
                  "</b> ");
}

static void write_sum(const struct page *page, const json_t *level, const json_t *run)
{
    json_t *args = json_object();
    const json_int_t final = json_integer_value(json_object_get(run, "final"));
    args_count(args, "final", final);
    args_count(args, "expected", json_integer_value(json_object_get(run, "expected")));
    args_count(args, "n", json_integer_value(json_object_get(level, "schedules")));
    fprintf(page->out, "</ol>\n<p class=\"verdict %s\">", levels_keeps(run) ? "safe" : "unsafe");
    words_fill(words_get(page->words, levels_keeps(run) ? "level.proof.kept" : "level.proof.lost"),
               args, page->out);
    if (json_integer_value(json_object_get(level, "losing")) == 0 &&
        json_text_of(level, "begins")[0] == '\0') {
        fputc(' ', page->out);
        words_fill(words_get(page->words, "level.none"), args, page->out);
    }
    fputs("</p>\n", page->out);
    json_decref(args);
}

static void write_solution(const struct page *page, const json_t *level)
{
    const json_t *run = levels_solution(level);
    if (run == NULL)
        return;
    const char *moves = json_text_of(run, "moves");
    write_element(page, "<details class=\"solution\"><summary>",
                  words_get(page->words, levels_keeps(run) ? "level.nearest" : "level.solution"),
                  "</summary>\n<ol>\n");
    for (size_t i = 0; moves[i] != '\0'; i++) {
        write_move(page, moves[i]);
        levels_tell(page, run, i);
        fputs("</li>\n", page->out);
    }
    write_sum(page, level, run);
    write_element(page, "<p class=\"lesson\">", word(page, level, "lesson"), "</p></details>\n");
}

/* The mends are the lists of the levels that they are; here stand their names. */
static void write_choices(const struct page *page, const json_t *level)
{
    const json_t *choices = json_object_get(level, "choices");
    write_element(page, "<details class=\"solution\"><summary>",
                  words_get(page->words, "level.mends"), "</summary>\n<ul>\n");
    for (size_t i = 0; i < json_array_size(choices); i++) {
        const char *id = json_string_value(json_array_get(choices, i));
        const json_t *chosen = levels_find(page->site, id);
        json_t *args = json_object();
        args_count(args, "n", json_integer_value(json_object_get(chosen, "schedules")));
        args_count(args, "losing", json_integer_value(json_object_get(chosen, "losing")));
        fprintf(page->out, "<li><a href=\"#%s\">", id);
        write_element(page, "", word(page, level, id), "</a>");
        fputs(words_get(page->words, "colon"), page->out);
        words_fill(words_get(page->words, json_integer_value(json_object_get(chosen, "losing")) > 0
                                              ? "level.not-mended"
                                              : "level.none"),
                   args, page->out);
        fputs("</li>\n", page->out);
        json_decref(args);
    }
    write_element(page, "</ul>\n<p class=\"lesson\">", word(page, level, "lesson"),
                  "</p></details>\n");
}

static void write_level(const struct page *page, const json_t *level)
{
    fprintf(page->out, "<section class=\"level\" id=\"%s\">\n<p class=\"kind\">",
            json_text_of(level, "id"));
    write_element(page, "", words_of(page->words, "level.kind", json_text_of(level, "kind")),
                  "</p>\n");
    write_element(page, "<h2>", word(page, level, "title"), "</h2>\n");
    write_element(page, "<p class=\"task\">", word(page, level, "task"), "</p>\n");
    if (json_object_get(level, "choices") == NULL) {
        write_element(page, "<details class=\"hint\"><summary>",
                      words_get(page->words, "level.hint"), "</summary>");
        write_element(page, "<p>", word(page, level, "hint"), "</p></details>\n");
    }
    fputs("<div class=\"game\" hidden></div>\n", page->out);
    if (json_object_get(level, "choices") != NULL)
        write_choices(page, level);
    else
        write_solution(page, level);
    fputs("</section>\n", page->out);
}

static void write_levels(const struct page *page)
{
    const json_t *levels = json_object_get(page->site->levels, "levels");
    if (levels == NULL)
        write_element(page, "<p class=\"missing\">", words_get(page->words, "levels.missing"),
                      "</p>\n");
    for (size_t i = 0; i < json_array_size(levels); i++)
        write_level(page, json_array_get(levels, i));
}

static void write_scripts(const struct page *page)
{
    static const char *const prefixes[] = {"p.", "at.", "level.", NULL};
    static const char *const names[] = {"state", "view", "tree", "bet", "levels-data", "levels"};
    if (page->site->levels == NULL)
        return;
    page_script_words(page, prefixes);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        fprintf(page->out, "<script src=\"%s%s.js\"></script>\n", page->root, names[i]);
}

int pages_levels(const struct site *site, const json_t *words, int language)
{
    static const struct page_part parts[] = {
        {"levels", write_levels}, {"scripts", write_scripts}, {NULL, NULL}};
    struct page page = {.site = site,
                        .words = words,
                        .language = language,
                        .root = language == EN ? "" : "../",
                        .other = language == EN ? "zh/levels.html" : "../levels.html",
                        .title = words_get(words, "levels.title")};
    return page_make(&page, "levels.html", parts,
                     language == EN ? "levels.html" : "zh/levels.html");
}
