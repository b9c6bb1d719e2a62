#include "opening.h"
#include "text.h"
#include "words.h"

#include <stdbool.h>
#include <string.h>

static const char *text_of(const json_t *json, const char *name)
{
    const char *text = json_string_value(json_object_get(json, name));
    return text != NULL ? text : "";
}

struct sale {
    json_int_t initial, sold, buyers;
    const json_t *rows; /* two rows of the ledger that contradict each other */
};

static bool is_told(const struct sale *sale)
{
    return sale->sold > sale->initial && json_array_size(sale->rows) == 2 &&
           json_equal(json_object_get(json_array_get(sale->rows, 0), "before"),
                      json_object_get(json_array_get(sale->rows, 1), "before"));
}

/* The lab's sale of a hundred pieces; its buyers are the crowd of its first event. */
static struct sale of_lab(const json_t *results)
{
    for (size_t i = 0; i < json_array_size(results); i++) {
        const json_t *record = json_array_get(results, i);
        const json_t *outcome = json_object_get(record, "outcome");
        long long buyers = 0;
        if (strcmp(text_of(record, "hazard"), "oversell") != 0 ||
            strcmp(text_of(record, "guard"), "none") != 0)
            continue;
        sscanf(text_of(json_array_get(json_object_get(record, "timeline"), 0), "point"),
               "sends %lld orders", &buyers);
        return (struct sale){
            .initial = json_integer_value(json_object_get(outcome, "initial")),
            .sold = json_integer_value(json_object_get(outcome, "final")),
            .buyers = buyers,
            .rows = json_object_get(outcome, "counterexample"),
        };
    }
    return (struct sale){0};
}

/* The demo's sale, when the lab's was not recorded. */
static struct sale of_demo(const json_t *demo)
{
    const json_t *runs = json_object_get(demo, "runs");
    for (size_t i = 0; i < json_array_size(runs); i++) {
        const json_t *run = json_array_get(runs, i);
        const json_t *asked = json_object_get(run, "asked");
        if (strcmp(text_of(run, "workload"), "sale") == 0 &&
            strcmp(text_of(run, "guard"), "none") == 0)
            return (struct sale){
                .initial = json_integer_value(json_object_get(run, "initial")),
                .sold = json_integer_value(json_object_get(run, "accepted")),
                .buyers = json_integer_value(json_object_get(asked, "requests")),
                .rows = json_object_get(run, "counterexample"),
            };
    }
    return (struct sale){0};
}

static json_t *args_of(const struct sale *sale)
{
    json_t *args = json_object();
    args_count(args, "initial", sale->initial);
    args_count(args, "sold", sale->sold);
    args_count(args, "oversold", sale->sold - sale->initial);
    args_count(args, "buyers", sale->buyers);
    return args;
}

static void write_words(const struct page *page, const char *key, const json_t *args)
{
    words_fill(words_get(page->words, key), args, page->out);
}

static void write_buyers(const struct page *page, const struct sale *sale, json_t *args)
{
    fputs("<div class=\"buyers\">\n", page->out);
    for (size_t i = 0; i < 2; i++) {
        const json_t *row = json_array_get(sale->rows, i);
        const char *dash = strrchr(text_of(row, "txn_id"), '-');
        args_text(args, "n", dash != NULL ? dash + 1 : "");
        args_count(args, "before", json_integer_value(json_object_get(row, "before")));
        args_count(args, "after", json_integer_value(json_object_get(row, "after")));
        fputs("<div class=\"buyer\"><b>", page->out);
        write_words(page, "opening.buyer", args);
        fputs("</b> <span>", page->out);
        html_escape(text_of(row, "instance"), page->out);
        fputs("</span> <em>", page->out);
        write_words(page, "opening.held", args);
        fputs("</em></div>\n", page->out);
    }
    fputs("<p>", page->out);
    write_words(page, "opening.both", args);
    fputs("</p></div>\n", page->out);
}

void opening_write(const struct page *page)
{
    struct sale sale = of_lab(page->site->results);
    if (!is_told(&sale))
        sale = of_demo(page->site->demo);
    if (!is_told(&sale)) {
        fprintf(page->out, "<p class=\"missing\">%s</p>\n",
                words_get(page->words, "opening.absent"));
        return;
    }
    char below[TEXT_MAX];
    json_t *args = args_of(&sale);
    fprintf(page->out, "<div id=\"sale\" data-initial=\"%lld\" data-sold=\"%lld\">\n<h1>",
            (long long)sale.initial, (long long)sale.sold);
    write_words(page, "opening.title", args);
    fprintf(
        page->out,
        "</h1>\n<div class=\"counter\"><span class=\"left\">−%s</span> <small>%s</small></div>\n"
        "<div class=\"phones\" aria-hidden=\"true\"></div>\n<div class=\"end\"><p class=\"sold\">",
        text_count(below, sale.sold - sale.initial), words_get(page->words, "opening.left"));
    write_words(page, "opening.sold", args);
    fputs("</p>\n", page->out);
    write_buyers(page, &sale, args);
    fprintf(page->out,
            "<p><a class=\"why\" href=\"#lost-update\">%s</a></p></div>\n<p class=\"note\">",
            words_get(page->words, "opening.why"));
    write_words(page, "opening.note", args);
    fputs("</p></div>\n", page->out);
    json_decref(args);
}
