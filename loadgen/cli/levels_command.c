/* loadgen levels --json FILE: each schedule of each level, run once on the real service. */
#include "levels_command.h"
#include "beside.h"
#include "json_text.h"
#include "levels_record.h"
#include "output.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void tell(const json_t *level)
{
    const json_t *tree = json_object_get(level, "tree");
    fprintf(stderr, "%-20s %4lld schedules, %lld lose\n", json_text_of(level, "id"),
            (long long)json_integer_value(json_object_get(tree, "schedules")),
            (long long)json_integer_value(json_object_get(tree, "losing")));
}

static void tell_nothing(const json_t *level)
{
    (void)level;
}

int levels_command(const struct options *options)
{
    char path[4096];
    const char *binary =
        beside("loadgen", "seckilld", "--seckilld", options->seckilld, X_OK, path, sizeof path);
    if (binary == NULL)
        return EXIT_FAILURE;
    json_t *all =
        levels_record(binary, options->level, options->stop, options->quiet ? tell_nothing : tell);
    if (all == NULL)
        return EXIT_FAILURE;
    return output_json("loadgen", options->json, all) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
