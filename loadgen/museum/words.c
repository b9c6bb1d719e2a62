#include "words.h"
#include "text.h"
#include "web_files.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

static json_t *read_words(const char *of, const char *language)
{
    char name[40];
    json_error_t error;
    snprintf(name, sizeof name, "%s.%s.json", of, language);
    return json_loads(web_find(name), JSON_REJECT_DUPLICATES, &error);
}

/* A key is of the player, of the levels, or of the museum. */
json_t *words_open(const char *language)
{
    static const char *const files[] = {"words", "player", "levels"};
    json_t *words = json_object();
    size_t n = 0;
    bool good = words != NULL;
    for (size_t i = 0; good && i < sizeof files / sizeof *files; i++) {
        json_t *some = read_words(files[i], language);
        n += json_object_size(some);
        good = some != NULL && json_object_update(words, some) == 0;
        json_decref(some);
    }
    if (good && json_object_size(words) == n)
        return words;
    json_decref(words);
    return NULL;
}

const char *words_get(const json_t *words, const char *key)
{
    const char *text = json_string_value(json_object_get(words, key));
    assert(text != NULL);
    return text;
}

const char *words_of(const json_t *words, const char *prefix, const char *name)
{
    char key[128];
    snprintf(key, sizeof key, "%s.%s", prefix, name);
    return words_get(words, key);
}

void html_escape(const char *text, FILE *out)
{
    for (; *text != '\0'; text++)
        switch (*text) {
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '&':
            fputs("&amp;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        case '\'':
            fputs("&#39;", out);
            break;
        default:
            fputc(*text, out);
        }
}

void words_fill(const char *text, const json_t *args, FILE *out)
{
    for (const char *brace; (brace = strchr(text, '{')) != NULL;) {
        const size_t length = strcspn(brace + 1, "}");
        char name[32], before[1024];
        snprintf(name, sizeof name, "%.*s", (int)length, brace + 1);
        snprintf(before, sizeof before, "%.*s", (int)(brace - text), text);
        html_escape(before, out);
        const char *value = json_string_value(json_object_get(args, name));
        assert(value != NULL);
        html_escape(value, out);
        text = brace + 1 + length + 1;
    }
    html_escape(text, out);
}

json_t *words_code(const json_t *words, const char *code)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";
    json_t *filled = json_string("");
    while (*code != '\0') {
        char name[64];
        const size_t length = *code == '<' ? strspn(code + 1, letters) : 0;
        const bool is_name = length > 0 && code[1 + length] == '>';
        const size_t taken = is_name ? length + 2 : 1 + strcspn(code + 1, "<");
        snprintf(name, sizeof name, "%.*s", (int)length, code + 1);
        json_t *longer =
            is_name ? json_sprintf("%s%s", json_string_value(filled), words_of(words, "code", name))
                    : json_sprintf("%s%.*s", json_string_value(filled), (int)taken, code);
        json_decref(filled);
        filled = longer;
        code += taken;
    }
    return filled;
}

void args_count(json_t *args, const char *name, int64_t value)
{
    char text[TEXT_MAX];
    args_text(args, name, text_count(text, value));
}

void args_text(json_t *args, const char *name, const char *text)
{
    json_object_set_new(args, name, json_string(text));
}
