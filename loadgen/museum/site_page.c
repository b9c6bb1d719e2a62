#include "site_page.h"
#include "museum.h"
#include "output.h"
#include "web_files.h"
#include "words.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void member(const struct page *page, const char *name)
{
    if (strcmp(name, "root") == 0)
        html_escape(page->root, page->out);
    else if (strcmp(name, "other") == 0)
        html_escape(page->other, page->out);
    else
        html_escape(page->title, page->out);
}

static void part(const struct page *page, const struct page_part *parts, const char *name)
{
    while (parts->name != NULL && strcmp(parts->name, name) != 0)
        parts++;
    assert(parts->name != NULL);
    parts->write(page);
}

static void fill(const struct page *page, const char *text, const struct page_part *parts)
{
    for (const char *brace; (brace = strstr(text, "{{")) != NULL;) {
        const char *end = strstr(brace, "}}");
        char name[64];
        fwrite(text, 1, (size_t)(brace - text), page->out);
        snprintf(name, sizeof name, "%.*s", (int)(end - brace - 2), brace + 2);
        if (name[0] == '@')
            part(page, parts, name + 1);
        else if (name[0] == '=')
            member(page, name + 1);
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
    page->out = output_open("loadgen", file);
    if (page->out != NULL) {
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

/* Keys that begin with "p." */
void page_script_words(const struct page *page)
{
    json_t *some = json_object();
    const char *key;
    json_t *word;
    json_object_foreach((json_t *)page->words, key, word)
    {
        if (strncmp(key, "p.", 2) == 0)
            json_object_set(some, key, word);
    }
    fputs("<script type=\"application/json\" id=\"words\">", page->out);
    page_json(some, page->out);
    fputs("</script>\n", page->out);
    json_decref(some);
}
