/* A site from a recording of the whole catalogue, as it is expected to come out. The runs of the
 * scenes are left out: they have to be recorded truly. */
#ifndef TEACH_SITE_H
#define TEACH_SITE_H

#include "hazard.h"
#include "museum.h"
#include "sandbox.h"
#include "scenes.h"

#include <stdio.h>
#include <string.h>

enum { TEACH_FILE_MAX = 1 << 19, TEACH_PATH_MAX = 700 };

static struct sandbox *teach_sandbox;
static char teach_site_message[MUSEUM_MESSAGE_MAX];

static inline int teach_site_open(void)
{
    return sandbox_open(&teach_sandbox);
}

static inline void teach_site_close(void)
{
    sandbox_close(teach_sandbox);
}

static inline bool teach_is_scene(const struct hazard *hazard, const struct hazard_case *one)
{
    bool found = false;
    for (size_t i = 0; i < scenes_n; i++)
        found |= strcmp(scenes[i].hazard, hazard->id) == 0 &&
                 strcmp(scenes[i].guard, one->guard) == 0 &&
                 strcmp(scenes[i].variant, one->as[EN] != NULL ? one->as[EN] : "") == 0;
    return found;
}

/* wrong: the runs of this failure came out as none of the catalogue does; NULL: of none. */
static inline json_t *teach_recording(const char *wrong)
{
    json_t *results = json_array();
    for (size_t i = 0; hazard_list[i] != NULL; i++)
        for (const struct hazard_case *one = hazard_list[i]->cases; one->guard != NULL; one++) {
            const bool is_wrong = wrong != NULL && strcmp(wrong, hazard_list[i]->id) == 0;
            if (teach_is_scene(hazard_list[i], one))
                continue;
            json_array_append_new(
                results, json_pack("{s:s, s:s, s:s, s:b, s:s, s:{s:s}, s:[]}", "hazard",
                                   hazard_list[i]->id, "guard", one->guard, "variant",
                                   one->as[EN] != NULL ? one->as[EN] : "", "fence", 0, "observed",
                                   is_wrong ? "stuck" : hazard_outcome_text(one->expected),
                                   "outcome", "unit", "balance", "timeline"));
        }
    return json_pack("{s:o, s:[]}", "results", results, "not_run");
}

/* What museum_make() returns, with teach_site_message. */
static inline int teach_site_make(const char *wrong)
{
    char folder[TEACH_PATH_MAX];
    json_t *recording = teach_recording(wrong);
    const struct museum_recordings recordings = {.lab = recording};
    snprintf(folder, sizeof folder, "%s/site", sandbox_dir(teach_sandbox));
    const int failed = museum_make(&recordings, folder, teach_site_message);
    json_decref(recording);
    return failed;
}

/* The text of a file of the source tree, until the next call. */
static inline const char *teach_site_source(const char *path)
{
    static char text[TEACH_FILE_MAX];
    FILE *file = fopen(path, "re");
    text[0] = '\0';
    if (file != NULL) {
        text[fread(text, 1, sizeof text - 1, file)] = '\0';
        fclose(file);
    }
    return text;
}

/* The text of a page, until the next call; "": there is no such file. */
static inline const char *teach_site_file(const char *name)
{
    char path[TEACH_PATH_MAX + 100];
    snprintf(path, sizeof path, "%s/site/%s", sandbox_dir(teach_sandbox), name);
    return teach_site_source(path);
}

#endif
