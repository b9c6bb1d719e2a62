/* The first page: opening, story, which lock. */
#include "exhibit.h"
#include "hazard.h"
#include "museum.h"
#include "opening.h"
#include "pages.h"
#include "teach.h"
#include "which.h"
#include "words.h"

#include <string.h>

static const char *text_of(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));
    return text != NULL ? text : "";
}

static void write_missing(const struct page *page, const struct scene *scene)
{
    json_t *args = json_object();
    args_text(args, "hazard", scene->hazard);
    args_text(args, "guard", scene->guard);
    fputs("<p class=\"missing\">", page->out);
    words_fill(words_get(page->words, "missing"), args, page->out);
    fputs("</p>\n", page->out);
    json_decref(args);
}

/* What became of the same failure under other guards, each with its run. */
static void write_others(const struct page *page, const json_t *record)
{
    fputs("<p class=\"source\">", page->out);
    html_escape(words_get(page->words, "others"), page->out);
    fputs(":", page->out);
    for (size_t i = 0; i < json_array_size(page->site->results); i++) {
        const json_t *other = json_array_get(page->site->results, i);
        if (strcmp(text_of(other, "hazard"), text_of(record, "hazard")) == 0)
            exhibit_link(page, other);
    }
    fputs("</p>\n", page->out);
}

static void write_scene(const struct page *page, const struct scene *scene)
{
    char message[MUSEUM_MESSAGE_MAX];
    struct bound bound;
    const json_t *record = scene_record(scene, page->site->results);
    fprintf(page->out, "<section class=\"exhibit scene\" id=\"%s\"><div class=\"inner\">\n<h2>",
            scene->id);
    html_escape(words_of(page->words, scene->id, "title"), page->out);
    fputs("</h2>\n<p class=\"lede\">", page->out);
    html_escape(words_of(page->words, scene->id, "lede"), page->out);
    fputs("</p>\n", page->out);
    /* museum_make() has bound each scene that was recorded, or else has failed. */
    if (record != NULL && scene_bind(scene, record, &bound, message) == 0) {
        exhibit_write(page, record, scene, &bound);
        write_others(page, record);
        teach_notes(page, scene->id);
    } else
        write_missing(page, scene);
    fputs("</div></section>\n", page->out);
}

static void write_story(const struct page *page)
{
    for (size_t i = 0; i < scenes_n; i++)
        write_scene(page, &scenes[i]);
}

int pages_index(const struct site *site, const json_t *words, int language)
{
    static const struct page_part parts[] = {
        {"opening", opening_write}, {"story", write_story}, {"which", which_write},
        {"scripts", page_scripts},  {NULL, NULL},
    };
    struct page page = {.site = site,
                        .words = words,
                        .language = language,
                        .root = language == EN ? "" : "../",
                        .other = language == EN ? "zh/index.html" : "../index.html",
                        .title = words_get(words, "site")};
    return page_make(&page, "index.html", parts, language == EN ? "index.html" : "zh/index.html");
}
