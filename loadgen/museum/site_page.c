#include "site_page.h"
#include "museum.h"
#include "output.h"
#include "web_files.h"
#include "words.h"

#include <assert.h>
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
 * some. "data:" is the picture that becomes a PNG. */
static const char *policy(const struct page_part *parts)
{
    return find_part(parts, "scripts") != NULL
               ? "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
                 "base-uri 'none'; form-action 'none'"
               : "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; "
                 "form-action 'none'";
}

static const char *member(const struct page *page, const struct page_part *parts, const char *name)
{
    if (strcmp(name, "policy") == 0)
        return policy(parts);
    if (strcmp(name, "root") == 0)
        return page->root;
    return strcmp(name, "other") == 0 ? page->other : page->title;
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
        if (name[0] == '@')
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
    static const char *const names[] = {"state",  "view",  "desk",    "zoom",
                                        "moment", "embed", "present", "player"};
    page_script_words(page, (const char *const[]){"p.", NULL});
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        fprintf(page->out, "<script src=\"%s%s.js\"></script>\n", page->root, names[i]);
}
