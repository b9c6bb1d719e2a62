/* The words of one language: web/words.LANG.json, a key and a text for each. */
#ifndef WORDS_H
#define WORDS_H

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

json_t *words_open(const char *language); /* free with json_decref(); NULL: no memory */
/* Asserts that there is such a key. */
const char *words_get(const json_t *words, const char *key);
const char *words_of(const json_t *words, const char *prefix, const char *name); /* PREFIX.NAME */

/* Writes a text with {NAME} replaced by the strings of args, escaped for HTML. */
void words_fill(const char *text, const json_t *args, FILE *out);

/* Code whose remarks stand as <NAME>, with these in words: code.NAME. A JSON string; free it with
 * json_decref(). */
json_t *words_code(const json_t *words, const char *code);

void html_escape(const char *text, FILE *out);
/* A number with separators, as a member of args. */
void args_count(json_t *args, const char *name, int64_t value);
void args_text(json_t *args, const char *name, const char *text);

#endif
