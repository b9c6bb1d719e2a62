#include "which.h"
#include "words.h"

#include <stdbool.h>
#include <string.h>

static bool fits(const json_t *rule, const json_t *answers)
{
    const char *question;
    json_t *wanted;
    json_object_foreach(json_object_get(rule, "if"), question, wanted)
    {
        if (!json_equal(wanted, json_object_get(answers, question)))
            return false;
    }
    return true;
}

const json_t *which_rule(const json_t *which, const json_t *answers)
{
    const json_t *rules = json_object_get(which, "rules");
    for (size_t i = 0; i < json_array_size(rules); i++)
        if (fits(json_array_get(rules, i), answers))
            return json_array_get(rules, i);
    return NULL;
}

static const char *text_of(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));
    return text != NULL ? text : "";
}

static void write_questions(const struct page *page)
{
    const json_t *questions = json_object_get(page->site->which, "questions");
    fputs("<form id=\"which-form\">\n", page->out);
    for (size_t i = 0; i < json_array_size(questions); i++) {
        const json_t *question = json_array_get(questions, i);
        const json_t *answers = json_object_get(question, "answers");
        const char *id = text_of(question, "id");
        char key[64];
        fputs("<fieldset><legend>", page->out);
        snprintf(key, sizeof key, "which.%s", id);
        html_escape(words_get(page->words, key), page->out);
        fputs("</legend>\n", page->out);
        for (size_t k = 0; k < json_array_size(answers); k++) {
            const char *answer = json_string_value(json_array_get(answers, k));
            fprintf(page->out, "<label><input type=\"radio\" name=\"%s\" value=\"%s\"%s> ", id,
                    answer, k == 0 ? " checked" : "");
            html_escape(words_of(page->words, key, answer), page->out);
            fputs("</label>\n", page->out);
        }
        fputs("</fieldset>\n", page->out);
    }
    fputs("</form>\n", page->out);
}

/* The measured run of the guard in the demo; NULL: it is not in there. */
static const json_t *run_of(const json_t *demo, const char *guard)
{
    const json_t *runs = json_object_get(demo, "runs");
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *run = json_array_get(runs, i);
        if (strcmp(text_of(run, "guard"), guard) == 0 &&
            strcmp(text_of(run, "workload"), "sale") == 0)
            return run;
    }
    return NULL;
}

static void write_cost(const struct page *page, const char *guard)
{
    const json_t *run = run_of(page->site->demo, guard);
    json_t *args = json_object();
    if (run != NULL) {
        args_count(args, "rate",
                   (int64_t)json_number_value(json_object_get(run, "accepted_per_s")));
        args_count(args, "p99",
                   json_integer_value(json_object_get(json_object_get(run, "latency_us"), "p99")) /
                       1000);
        words_fill(words_get(page->words, "which.cost"), args, page->out);
    } else
        html_escape(words_get(page->words, "which.no-cost"), page->out);
    json_decref(args);
}

static void write_line(const struct page *page, const char *key, const char *text)
{
    fprintf(page->out, "<dt>%s</dt><dd>", words_get(page->words, key));
    html_escape(text, page->out);
    fputs("</dd>\n", page->out);
}

/* What the guard itself says, from lockkit's registry; of the guards in the store from which.json.
 */
static void write_guard(const struct page *page, const char *guard)
{
    const json_t *own = json_object_get(json_object_get(page->site->which, "guards"), guard);
    char prefix[64];
    snprintf(prefix, sizeof prefix, "guard.%s", guard);
    fprintf(page->out,
            "<article class=\"choice\" id=\"which-%s\">\n<h3><code>%s</code></h3>\n<dl>\n", guard,
            guard);
    write_line(page, "which.how", words_of(page->words, prefix, "how"));
    write_line(page, "which.gives", words_of(page->words, prefix, "gives"));
    write_line(page, "which.weak", words_of(page->words, prefix, "weak"));
    fprintf(page->out, "<dt>%s</dt><dd>", words_get(page->words, "which.costs"));
    write_cost(page, guard);
    fputs("</dd></dl>\n<pre>", page->out);
    json_t *code = words_code(page->words, text_of(own, "code"));
    html_escape(json_string_value(code), page->out);
    fputs("</pre>\n</article>\n", page->out);
    json_decref(code);
}

void which_write(const struct page *page)
{
    const char *guard;
    json_t *own;
    write_questions(page);
    fputs("<p class=\"because\" id=\"which-because\" aria-live=\"polite\"></p>\n", page->out);
    json_object_foreach(json_object_get(page->site->which, "guards"), guard, own)
    {
        write_guard(page, guard);
    }
    fputs("<script type=\"application/json\" id=\"which-data\">", page->out);
    json_t *rules = json_deep_copy(json_object_get(page->site->which, "rules"));
    for (size_t i = 0; i < json_array_size(rules); i++) {
        json_t *rule = json_array_get(rules, i);
        json_object_set_new(rule, "text",
                            json_string(words_of(page->words, "because", text_of(rule, "id"))));
    }
    page_json(rules, page->out);
    fputs("</script>\n", page->out);
    json_decref(rules);
}
