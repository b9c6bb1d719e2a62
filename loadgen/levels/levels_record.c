#include "levels_record.h"
#include "json_text.h"
#include "sandbox.h"
#include "tree.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static struct sandbox_server *start(struct sandbox *sandbox, const char *seckilld)
{
    char db[SANDBOX_TEXT_MAX + 32];
    struct sandbox_server *redis = sandbox_redis(sandbox, NULL);
    if (redis == NULL)
        return NULL;
    snprintf(db, sizeof db, "sqlite:%s/levels.db", sandbox_dir(sandbox));
    const char *const args[] = {"--db",     db,      "--sync",      "normal", "--redis",
                                redis->url, "--lab", "--lanes=off", NULL};
    return sandbox_seckilld(sandbox, seckilld, args);
}

static json_t *fetch_levels(const struct load_target *target)
{
    struct stage stage = {.target = *target};
    json_t *ret = NULL;
    if (stage_call(&stage, "GET", "/web/levels.json", NULL, &ret) != 0)
        fprintf(stderr, "loadgen: %s\n", stage.message);
    return ret;
}

static int record(const struct load_target *target, json_t *all, json_t *level,
                  const atomic_bool *stop)
{
    static struct stage stage;
    const json_t *subject =
        json_object_get(json_object_get(all, "subjects"), json_text_of(level, "subject"));
    json_t *tree = NULL;
    if (stage_open(&stage, target, level, subject) == 0)
        tree = tree_record(&stage, stop);
    if (tree == NULL) {
        fprintf(stderr, "loadgen: level %s: %s\n", json_text_of(level, "id"), stage.message);
        return -1;
    }
    json_object_set_new(level, "tree", tree);
    return 0;
}

static json_t *record_all(const struct load_target *target, const char *only,
                          const atomic_bool *stop, void (*told)(const json_t *level))
{
    json_t *all = fetch_levels(target), *level;
    size_t i;
    bool good = all != NULL, found = false;
    json_array_foreach(json_object_get(all, "levels"), i, level)
    {
        if (!good || (only != NULL && strcmp(only, json_text_of(level, "id")) != 0) ||
            json_object_get(level, "points") == NULL)
            continue;
        found = true;
        good = record(target, all, level, stop) == 0;
        if (good)
            told(level);
    }
    if (good && !found)
        fprintf(stderr, "loadgen: there is no level %s\n", only != NULL ? only : "");
    if (good && found)
        return all;
    json_decref(all);
    return NULL;
}

json_t *levels_record(const char *seckilld, const char *only, const atomic_bool *stop,
                      void (*told)(const json_t *level))
{
    struct sandbox *sandbox = NULL;
    struct load_target target;
    char message[256];
    json_t *ret = NULL;
    if (sandbox_open(&sandbox) != 0)
        return NULL;
    const struct sandbox_server *service = start(sandbox, seckilld);
    if (service != NULL) {
        if (load_target_parse(service->url, &target, message, sizeof message) == 0)
            ret = record_all(&target, only, stop, told);
        else
            fprintf(stderr, "loadgen: %s\n", message);
    }
    sandbox_close(sandbox);
    return ret;
}
