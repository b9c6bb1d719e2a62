/* A page: web/head.html and one of web/NAME.html with their words and generated parts filled in. */
#ifndef SITE_PAGE_H
#define SITE_PAGE_H

#include <jansson.h>
#include <stdio.h>

struct site {
    const json_t *lab, *demo;  /* the recordings; demo: NULL if there is none */
    const json_t *results;     /* of lab */
    json_t *levels;            /* of levels_open(); NULL: they were not recorded */
    const char *out;           /* the folder */
    char *message;             /* MUSEUM_MESSAGE_MAX */
    json_t *commands, *which;  /* web/commands.json, web/which.json */
    json_t *teach, *interview; /* web/teach.json, web/interview.json */
};

struct page {
    const struct site *site;
    const json_t *words;
    int language;      /* enum hazard_language */
    const char *root;  /* from the page to the site's top: "", "../" */
    const char *other; /* address of the page in the other language */
    const char *title;
    const void *about;    /* for the parts */
    const char *template; /* page_make() sets it */
    FILE *out;
};

struct page_part {
    const char *name; /* {{@NAME}} in the template */
    void (*write)(const struct page *page);
};

/* In the template:
 *   {{KEY}}     the word, escaped
 *   {{@NAME}}   a part of the page
 *   {{=root}} {{=title}}  members of the page
 *   {{=nav}}    the links to the other pages
 *   {{=policy}} what the page may load: scripts only if it has the part "scripts"
 * Writes the file PATH of the site. 0, or -1 with site->message. */
int page_make(struct page *page, const char *template, const struct page_part *parts,
              const char *path);

/* The words whose keys begin with one of these (NULL-terminated), for scripts: as JSON in a script
 * element. */
void page_script_words(const struct page *page, const char *const *prefixes);
/* The part "scripts": those of the player, and the words that they need. */
void page_scripts(const struct page *page);
/* JSON as the text of a script element. */
void page_json(const json_t *json, FILE *out);

#endif
