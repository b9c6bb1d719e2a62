/* What a lesson points at: scenes, recorded runs, parts of the site, exercises of the live page. In
 * web/teach.json and web/interview.json it is an array:
 *   ["scene", ID, BEAT]                       BEAT: where to stop; may be left out
 *   ["run", HAZARD, GUARD, VARIANT, OUTCOME]  OUTCOME: what the text says of it
 *   ["part", NAME]                            opening, which, matrix */
#ifndef TEACH_H
#define TEACH_H

#include "site_page.h"

/* A text in both languages: [ENGLISH, CHINESE]. `...` is code. */
void teach_text(const struct page *page, const json_t *text);

/* The list of links of one entry. What was not recorded is named as missing. */
void teach_links(const struct page *page, const json_t *show);

/* What the lesson asks at this scene, and its answers: hidden, for the notes of who presents. */
void teach_notes(const struct page *page, const char *scene);

/* The command that makes the first run of show again, step by step: "build/hazards run ...". */
void teach_command(const struct page *page, const json_t *show);

/* Compares what the texts say of each run with the recording. 0, or -1 with site->message. */
int teach_check(const struct site *site);

#endif
