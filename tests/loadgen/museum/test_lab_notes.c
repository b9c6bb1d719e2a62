/* Each note that the lab writes has words on the pages. */
#include "trace.h"
#include "tests.h"
#include "words.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <string.h>

enum { PATH_LONGEST = 700, FILE_MAX = 1 << 19 };

static json_t *note(const char *actor, const char *point)
{
    return json_pack("{s:[{s:s, s:s}]}", "timeline", "actor", actor, "point", point);
}

/* The note with something in each place: "nodes %s killed". A place right behind a word is an
 * optional tail, and left out: "answer is lost%s". */
static void fill_in(const char *format, char out[TRACE_POINT_MAX])
{
    size_t n = 0;
    for (; *format != '\0' && *format != '"' && n < TRACE_POINT_MAX - 1; format++)
        if (*format == '%') {
            format += 1 + strspn(format + 1, "l");
            if (n == 0 || !isalnum((unsigned char)out[n - 1]))
                out[n++] = *format == 's' ? 'A' : '7';
        } else
            out[n++] = *format;
    out[n] = '\0';
}

static int check_notes(const char *text, const json_t *words)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, "run_note(")) != NULL; at++) {
        const char *quote = strchr(at, ','), *end = strstr(at, ");");
        if (strncmp(at, "run_note(struct", 15) == 0 || quote == NULL)
            continue;
        quote = strchr(quote + 1, ','); /* after the actor */
        for (quote = strchr(quote, '"'); quote != NULL && quote < end; quote = strchr(quote, '"')) {
            char point[TRACE_POINT_MAX], key[TRACE_POINT_MAX + 8];
            struct trace_event told;
            fill_in(quote + 1, point);
            quote = strchr(quote + 1, '"') + 1;
            if (point[0] == '\0' || point[0] == ' ' || point[0] == ',')
                continue; /* what joins parts */
            json_t *record = note(strncmp(point, "shop-", 5) == 0 ? "tasks" : "locks", point);
            assert_true(trace_event(record, 0, &told));
            json_decref(record);
            snprintf(key, sizeof key, "at.%s", told.words);
            if (json_object_get(words, key) == NULL)
                fail_msg("no words for the lab's note \"%s\"", point);
            n++;
        }
    }
    return n;
}

TEST_THAT(each_note_of_the_lab_has_words)
{
    int n = 0;
    json_t *words = words_open("zh");
    DIR *dir = opendir("loadgen/lab");
    struct dirent *entry;
    assert_non_null(dir);
    while ((entry = readdir(dir)) != NULL) {
        static char text[FILE_MAX];
        char path[PATH_LONGEST];
        if (strstr(entry->d_name, ".c") == NULL)
            continue;
        snprintf(path, sizeof path, "loadgen/lab/%s", entry->d_name);
        FILE *file = fopen(path, "re");
        assert_non_null(file);
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        fclose(file);
        n += check_notes(text, words);
    }
    closedir(dir);
    json_decref(words);
    assert_true(n > 30);
}
