#include "site_page.h"
#include "hazard.h"
#include "museum.h"
#include "output.h"
#include "web_files.h"
#include "words.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* NULL: the page has no such part. */
static const struct page_part *find_part(const struct page_part *parts, const char *name)
{
    while (parts->name != NULL && strcmp(parts->name, name) != 0)
        parts++;
    return parts->name != NULL ? parts : NULL;
}

/* Content-Security-Policy: nothing from another host, nothing inline; scripts where there are
 * some. "data:" is the picture that becomes a PNG; a script connects in front of a class only. */
static const char *policy(const struct page_part *parts)
{
    return find_part(parts, "scripts") != NULL
               ? "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
                 "connect-src 'self'; base-uri 'none'; form-action 'none'"
               : "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; "
                 "form-action 'none'";
}

static const char *member(const struct page *page, const struct page_part *parts, const char *name)
{
    if (strcmp(name, "policy") == 0)
        return policy(parts);
    if (strcmp(name, "root") == 0)
        return page->root;
    return page->title;
}

/* The same row of links on each page. The page itself is none, and its own sections are near. */
static void write_nav(const struct page *page)
{
    static const struct {
        const char *to, *word;
    } links[] = {{"index.html", "site"},
                 {"index.html#lost-update", "nav.story"},
                 {"index.html#which", "nav.which"},
                 {"levels.html", "nav.levels"},
                 {"matrix.html", "nav.matrix"},
                 {"teach.html", "nav.teach"},
                 {"interview.html", "nav.interview"}};
    const char *top = page->root + (page->language == EN ? 0 : strlen("../")); /* of its language */
    fputs("<nav aria-label=\"", page->out);
    html_escape(words_get(page->words, "site"), page->out);
    fputs("\">", page->out);
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        const bool here = strcmp(links[i].to, page->template) == 0;
        const char *section = strchr(links[i].to, '#');
        const bool near = section != NULL && strncmp(links[i].to, page->template,
                                                     (size_t)(section - links[i].to)) == 0;
        if (here)
            fputs("<b aria-current=\"page\">", page->out);
        else
            fprintf(page->out, "<a href=\"%s%s\">", near ? "" : top, near ? section : links[i].to);
        html_escape(words_get(page->words, links[i].word), page->out);
        fputs(here ? "</b>\n" : "</a>\n", page->out);
    }
    fprintf(page->out, "<a href=\"%s\" lang=\"%s\" hreflang=\"%s\">", page->other,
            words_get(page->words, "other-lang"), words_get(page->words, "other-lang"));
    html_escape(words_get(page->words, "other"), page->out);
    fputs("</a></nav>\n", page->out);
}

static void write_part(const struct page *page, const struct page_part *parts, const char *name)
{
    const struct page_part *part = find_part(parts, name);
    assert(part != NULL);
    part->write(page);
}

static void fill(const struct page *page, const char *text, const struct page_part *parts)
{
    for (const char *brace; (brace = strstr(text, "{{")) != NULL;) {
        const char *end = strstr(brace, "}}");
        char name[64];
        fwrite(text, 1, (size_t)(brace - text), page->out);
        snprintf(name, sizeof name, "%.*s", (int)(end - brace - 2), brace + 2);
        if (strcmp(name, "=nav") == 0)
            write_nav(page);
        else if (name[0] == '@')
            write_part(page, parts, name + 1);
        else if (name[0] == '=')
            html_escape(member(page, parts, name + 1), page->out);
        else
            html_escape(words_get(page->words, name), page->out);
        text = end + 2;
    }
    fputs(text, page->out);
}

int page_make(struct page *page, const char *template, const struct page_part *parts,
              const char *path)
{
    char file[4096];
    snprintf(file, sizeof file, "%s/%s", page->site->out, path);
    page->template = template;
    page->out = output_open("loadgen", file);
    if (page->out != NULL) {
        fill(page, web_find("head.html"), parts);
        fill(page, web_find(template), parts);
        if (output_close("loadgen", file, page->out) == 0)
            return 0;
    }
    snprintf(page->site->message, MUSEUM_MESSAGE_MAX, "cannot write %.400s", file);
    return -1;
}

/* No '<' in it can end the element or begin another. */
void page_json(const json_t *json, FILE *out)
{
    char *text = json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS);
    for (const char *at = text; at != NULL && *at != '\0'; at++)
        if (*at == '<')
            fputs("\\u003c", out);
        else
            fputc(*at, out);
    free(text);
}

void page_script_words(const struct page *page, const char *const *prefixes)
{
    json_t *some = json_object();
    const char *key;
    json_t *word;
    json_object_foreach((json_t *)page->words, key, word)
    {
        for (const char *const *prefix = prefixes; *prefix != NULL; prefix++)
            if (strncmp(key, *prefix, strlen(*prefix)) == 0)
                json_object_set(some, key, word);
    }
    fputs("<script type=\"application/json\" id=\"words\">", page->out);
    page_json(some, page->out);
    fputs("</script>\n", page->out);
    json_decref(some);
}

void page_scripts(const struct page *page)
{
    static const char *const names[] = {"state", "view",    "desk",   "zoom",  "moment",
                                        "embed", "present", "follow", "player"};
    page_script_words(page, (const char *const[]){"p.", NULL});
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        fprintf(page->out, "<script src=\"%s%s.js\"></script>\n", page->root, names[i]);
}
