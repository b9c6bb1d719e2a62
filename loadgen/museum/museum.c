#include "museum.h"
#include "bind.h"
#include "output.h"
#include "pages.h"
#include "web_files.h"
#include "words.h"

#include <stdio.h>
#include <string.h>

/* A scene that its recording does not bear out must not be shown. */
static int check_scenes(const struct site *site)
{
    struct bound bound;
    for (size_t i = 0; i < scenes_n; i++) {
        const json_t *record = scene_record(&scenes[i], site->results);
        if (record != NULL && scene_bind(&scenes[i], record, &bound, site->message) != 0)
            return -1;
    }
    return 0;
}

static int copy_assets(const struct site *site)
{
    const char *name;
    for (size_t i = 0; (name = web_asset(i)) != NULL; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", site->out, name);
        FILE *out = output_open("loadgen", path);
        if (out != NULL)
            fputs(web_find(name), out);
        if (out == NULL || output_close("loadgen", path, out) != 0) {
            snprintf(site->message, MUSEUM_MESSAGE_MAX, "cannot write %.400s", path);
            return -1;
        }
    }
    return 0;
}

static int make_pages(const struct site *site)
{
    static const char *const languages[] = {"en", "zh"}; /* enum hazard_language */
    int failed = 0;
    for (int language = 0; language < 2 && failed == 0; language++) {
        json_t *words = words_open(languages[language]);
        failed = words == NULL || pages_index(site, words, language) != 0 ||
                 pages_lessons(site, words, language) != 0 ||
                 pages_matrix(site, words, language) != 0;
        json_decref(words);
    }
    return failed ? -1 : 0;
}

int museum_make(const struct museum_recordings *recordings, const char *out,
                char message[MUSEUM_MESSAGE_MAX])
{
    struct site site = {
        .lab = recordings->lab,
        .demo = recordings->demo,
        .results = json_object_get(recordings->lab, "results"),
        .out = out,
        .message = message,
        .commands = json_loads(web_find("commands.json"), 0, NULL),
        .which = json_loads(web_find("which.json"), 0, NULL),
    };
    int failed = -1;
    snprintf(message, MUSEUM_MESSAGE_MAX, "out of memory");
    if (!json_is_array(site.results))
        snprintf(message, MUSEUM_MESSAGE_MAX, "the lab's JSON has no results");
    else if (site.commands != NULL && site.which != NULL && check_scenes(&site) == 0 &&
             copy_assets(&site) == 0 && make_pages(&site) == 0)
        failed = 0;
    json_decref(site.commands);
    json_decref(site.which);
    return failed;
}
