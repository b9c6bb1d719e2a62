/* loadgen site --lab FILE [--demo FILE] [--levels FILE] --out DIR: the museum's pages. */
#include "site_command.h"
#include "museum.h"

#include <stdio.h>
#include <stdlib.h>

static json_t *read_recording(const char *path)
{
    json_error_t error;
    json_t *json = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (json == NULL)
        fprintf(stderr, "loadgen: cannot read %s: %s\n", path, error.text);
    return json;
}

int site_command(const struct options *options)
{
    char message[MUSEUM_MESSAGE_MAX];
    json_t *lab = read_recording(options->lab);
    json_t *demo = options->demo != NULL ? read_recording(options->demo) : NULL;
    json_t *levels = options->levels != NULL ? read_recording(options->levels) : NULL;
    int status = EXIT_FAILURE;
    if (lab != NULL && (demo != NULL || options->demo == NULL) &&
        (levels != NULL || options->levels == NULL)) {
        const struct museum_recordings recordings = {.lab = lab, .demo = demo, .levels = levels};
        if (museum_make(&recordings, options->dir, message) == 0) {
            printf("Open %s/index.html\n", options->dir);
            status = EXIT_SUCCESS;
        } else
            fprintf(stderr, "loadgen: %s\n", message);
    }
    json_decref(lab);
    json_decref(demo);
    json_decref(levels);
    return status;
}
