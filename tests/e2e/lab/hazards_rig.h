/* build/hazards as a child process, with a folder for what it writes. */
#ifndef HAZARDS_RIG_H
#define HAZARDS_RIG_H

#include "json_schema.h"
#include "program.h"
#include "shop.h"
#include "tests.h"

#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ARGS_MAX = 24, USAGE = 2, MISMATCH = 99, INTERRUPTED = 130, REPEAT = 2 };

static struct sandbox *sandbox; /* only for a folder that goes away */
static char report[SANDBOX_TEXT_MAX + 16], page[SANDBOX_TEXT_MAX + 16],
    output[SANDBOX_TEXT_MAX + 16], wrapper[SANDBOX_TEXT_MAX + 16],
    fake_redis[SANDBOX_TEXT_MAX + 16], real_path[4096];

static inline int open_folder(void **state)
{
    (void)state;
    if (sandbox_open(&sandbox) != 0)
        return -1;
    snprintf(report, sizeof report, "%s/report.json", sandbox_dir(sandbox));
    snprintf(page, sizeof page, "%s/matrix.html", sandbox_dir(sandbox));
    snprintf(output, sizeof output, "%s/output", sandbox_dir(sandbox));
    snprintf(wrapper, sizeof wrapper, "%s/seckilld", sandbox_dir(sandbox));
    snprintf(fake_redis, sizeof fake_redis, "%s/redis-server", sandbox_dir(sandbox));
    snprintf(real_path, sizeof real_path, "%s", getenv("PATH"));
    return 0;
}

static inline int close_folder(void **state)
{
    (void)state;
    sandbox_close(sandbox);
    return 0;
}

static inline void show_output(void)
{
    char line[512];
    FILE *file = fopen(output, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        fputs(line, stderr);
    if (file != NULL)
        fclose(file);
}

/* build/hazards with these arguments. */
static inline pid_t start(const char *const *args)
{
    const char *argv[ARGS_MAX + 1] = {shop_binary("hazards")};
    for (size_t n = 1; *args != NULL && n < ARGS_MAX; n++)
        argv[n] = *args++;
    return program_start(argv, output, NULL);
}

/* Its exit status. */
static inline int await(pid_t pid)
{
    int status = -1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static inline int hazards(const char *const *args)
{
    return await(start(args));
}

static inline void expect(const char *const *args, int status)
{
    int got = hazards(args);
    if (got == status)
        return;
    show_output();
    fail_msg("hazards ended with %d, not %d", got, status);
}

static inline json_t *load_json(const char *path)
{
    json_t *json = json_load_file(path, 0, NULL);
    assert_non_null(json);
    return json;
}

/* What a run has written. It obeys its published schema. */
static inline json_t *load_report(void)
{
    char message[512];
    json_t *json = load_json(report), *schema = load_json("loadgen/lab/matrix.schema.json");
    if (!schema_holds(schema, json, message, sizeof message))
        fail_msg("the report of the lab: %s", message);
    json_decref(schema);
    return json;
}

static inline bool file_has(const char *path, const char *text)
{
    static char content[1 << 20];
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    content[fread(content, 1, sizeof content - 1, file)] = '\0';
    fclose(file);
    return strstr(content, text) != NULL;
}

static inline bool page_has(const char *text)
{
    return file_has(page, text);
}

/* The service as the lab starts it, with one thing broken. */
static inline void write_wrapper(const char *breakage)
{
    char path[4096];
    assert_non_null(realpath(shop_binary("seckilld"), path));
    FILE *file = fopen(wrapper, "we");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\nexec '%s' \"$@\" %s\n", path, breakage);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(wrapper, 0700), 0);
}

#endif
