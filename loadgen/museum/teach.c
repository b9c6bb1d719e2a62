#include "teach.h"
#include "bind.h"
#include "exhibit.h"
#include "hazard.h"
#include "museum.h"
#include "words.h"

#include <assert.h>
#include <string.h>

/* Of ["run", ...]. */
enum { RUN_HAZARD = 1, RUN_GUARD, RUN_VARIANT, RUN_OUTCOME };

static const char *at(const json_t *array, size_t i)
{
    const char *text = json_string_value(json_array_get(array, i));
    return text != NULL ? text : "";
}

static bool has(const json_t *record, const char *name, const char *text)
{
    const char *own = json_string_value(json_object_get(record, name));
    return own != NULL && strcmp(own, text) == 0;
}

static bool is_run(const json_t *one)
{
    return strcmp(at(one, 0), "run") == 0;
}

/* NULL: it was not recorded. */
static const json_t *find_run(const struct site *site, const json_t *run)
{
    for (size_t i = 0; i < json_array_size(site->results); i++) {
        const json_t *record = json_array_get(site->results, i);
        if (has(record, "hazard", at(run, RUN_HAZARD)) &&
            has(record, "guard", at(run, RUN_GUARD)) &&
            has(record, "variant", at(run, RUN_VARIANT)))
            return record;
    }
    return NULL;
}

/* -- text -------------------------------------------------------------------------------------- */

void teach_text(const struct page *page, const json_t *text)
{
    const char *rest = at(text, (size_t)page->language);
    for (bool code = false; rest[0] != '\0'; code = !code) {
        char part[1024];
        const size_t length = strcspn(rest, "`");
        snprintf(part, sizeof part, "%.*s", (int)length, rest);
        fputs(code ? "<code>" : "", page->out);
        html_escape(part, page->out);
        fputs(code ? "</code>" : "", page->out);
        rest += length + (rest[length] == '`');
    }
}

/* -- links ------------------------------------------------------------------------------------- */

static void write_absent(const struct page *page, const char *hazard, const char *guard)
{
    json_t *args = json_object();
    args_text(args, "hazard", hazard);
    args_text(args, "guard", guard);
    fputs(" <span class=\"absent\">", page->out);
    words_fill(words_get(page->words, "absent"), args, page->out);
    fputs("</span>", page->out);
    json_decref(args);
}

/* Where the scene is to be stopped. */
static void write_stop(const struct page *page, const struct scene *scene,
                       const struct bound *bound, const char *beat)
{
    for (int i = 0; i < bound->n; i++)
        if (strcmp(scene->beats[i].words, beat) == 0) {
            fprintf(page->out, " <a class=\"stop\" href=\"index.html#%s/%zu\">", scene->id,
                    bound->at[i]);
            html_escape(words_get(page->words, "teach.stop"), page->out);
            fputs("</a>", page->out);
        }
}

static void write_scene(const struct page *page, const json_t *one)
{
    char message[MUSEUM_MESSAGE_MAX];
    struct bound bound;
    size_t i = 0;
    while (i < scenes_n && strcmp(scenes[i].id, at(one, 1)) != 0)
        i++;
    assert(i < scenes_n);
    const struct scene *scene = &scenes[i];
    const json_t *record = scene_record(scene, page->site->results);
    fprintf(page->out, "<li><a href=\"index.html#%s/0\">", scene->id);
    html_escape(words_of(page->words, scene->id, "title"), page->out);
    fputs("</a>", page->out);
    if (record != NULL && scene_bind(scene, record, &bound, message) == 0)
        write_stop(page, scene, &bound, at(one, 2));
    else
        write_absent(page, scene->hazard, scene->guard);
}

static void write_part(const struct page *page, const json_t *one)
{
    static const char *const parts[][3] = {{"opening", "index.html#opening", "teach.opening"},
                                           {"which", "index.html#which", "nav.which"},
                                           {"matrix", "matrix.html", "nav.matrix"}};
    size_t i = 0;
    while (strcmp(parts[i][0], at(one, 1)) != 0)
        i++;
    fprintf(page->out, "<li><a href=\"%s\">", parts[i][1]);
    html_escape(words_get(page->words, parts[i][2]), page->out);
    fputs("</a>", page->out);
}

/* Runs of one failure that follow each other share a line. */
static void write_run(const struct page *page, const json_t *one, const json_t *before)
{
    const struct hazard *hazard = hazard_find(at(one, RUN_HAZARD));
    const json_t *record = find_run(page->site, one);
    assert(hazard != NULL);
    if (before == NULL || !is_run(before) || strcmp(at(before, RUN_HAZARD), hazard->id) != 0) {
        fputs("<li>", page->out);
        html_escape(hazard->title[page->language], page->out);
        fputs(page->language == EN ? ":" : "：", page->out);
    }
    if (record != NULL)
        exhibit_link(page, record);
    else
        write_absent(page, hazard->id, at(one, RUN_GUARD));
}

void teach_links(const struct page *page, const json_t *show)
{
    fputs("<ul class=\"source\">\n", page->out);
    for (size_t i = 0; i < json_array_size(show); i++) {
        const json_t *one = json_array_get(show, i);
        if (is_run(one))
            write_run(page, one, i > 0 ? json_array_get(show, i - 1) : NULL);
        else if (strcmp(at(one, 0), "scene") == 0)
            write_scene(page, one);
        else
            write_part(page, one);
        fputc('\n', page->out);
    }
    fputs("</ul>\n", page->out);
}

static void write_said(const struct page *page, const char *key, const json_t *text)
{
    fputs("<p><b>", page->out);
    html_escape(words_get(page->words, key), page->out);
    fputs(page->language == EN ? ":</b> " : "：</b>", page->out);
    teach_text(page, text);
    fputs("</p>\n", page->out);
}

void teach_notes(const struct page *page, const char *scene)
{
    const json_t *questions = json_object_get(page->site->teach, "questions");
    for (size_t i = 0; i < json_array_size(questions); i++) {
        const json_t *question = json_array_get(questions, i);
        const json_t *first = json_array_get(json_object_get(question, "show"), 0);
        if (strcmp(at(first, 0), "scene") != 0 || strcmp(at(first, 1), scene) != 0)
            continue;
        fputs("<aside class=\"lesson-line\" hidden>\n", page->out);
        write_said(page, "teach.ask", json_object_get(question, "ask"));
        write_said(page, "teach.answer", json_object_get(question, "answer"));
        fputs("</aside>\n", page->out);
    }
}

void teach_command(const struct page *page, const json_t *show)
{
    const json_t *one = json_array_get(show, 0);
    assert(is_run(one));
    fprintf(page->out, "build/hazards run --hazard %s --guard %s --step%s", at(one, RUN_HAZARD),
            at(one, RUN_GUARD), page->language == EN ? "" : " --lang zh");
}

/* -- check ------------------------------------------------------------------------------------- */

static int check_entries(const struct site *site, const json_t *entries)
{
    for (size_t i = 0; i < json_array_size(entries); i++) {
        const json_t *show = json_object_get(json_array_get(entries, i), "show");
        for (size_t k = 0; k < json_array_size(show); k++) {
            const json_t *one = json_array_get(show, k);
            const json_t *record = is_run(one) ? find_run(site, one) : NULL;
            if (record == NULL || has(record, "observed", at(one, RUN_OUTCOME)))
                continue;
            snprintf(site->message, MUSEUM_MESSAGE_MAX,
                     "the lesson says that %s under %s (%s) is %s, but it was recorded otherwise",
                     at(one, RUN_HAZARD), at(one, RUN_GUARD), at(one, RUN_VARIANT),
                     at(one, RUN_OUTCOME));
            return -1;
        }
    }
    return 0;
}

int teach_check(const struct site *site)
{
    return check_entries(site, json_object_get(site->teach, "questions")) != 0 ||
                   check_entries(site, json_object_get(site->teach, "exercises")) != 0 ||
                   check_entries(site, site->interview) != 0
               ? -1
               : 0;
}
