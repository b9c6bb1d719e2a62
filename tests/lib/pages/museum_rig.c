#include "museum_rig.h"
#include "program.h"
#include "sandbox_process.h"
#include "shop.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { ARGS_MAX = 48, PROGRAM_MS = 250000 };

struct museum_rig museum;

static void read_output(const char *file)
{
    FILE *in = fopen(file, "re");
    museum.output[0] = '\0';
    if (in == NULL)
        return;
    museum.output[fread(museum.output, 1, sizeof museum.output - 1, in)] = '\0';
    fclose(in);
}

int museum_run(const char *name, const char *const *args)
{
    char output[MUSEUM_PATH_MAX];
    const char *argv[ARGS_MAX + 1] = {shop_binary(name)};
    int status = -1;
    for (size_t n = 1; *args != NULL; n++) {
        assert(n < ARGS_MAX);
        argv[n] = *args++;
    }
    snprintf(output, sizeof output, "%s/output", sandbox_dir(museum.sandbox));
    const bool ended = program_ends(program_start(argv, output, NULL), PROGRAM_MS, &status);
    read_output(output);
    return ended && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int museum_site(const json_t *lab, const char *folder)
{
    char file[MUSEUM_PATH_MAX];
    snprintf(file, sizeof file, "%s/recording.json", sandbox_dir(museum.sandbox));
    if (json_dump_file(lab, file, 0) != 0)
        return -1;
    return museum_run("loadgen",
                      (const char *const[]){"site", "--lab", file, "--out", folder, NULL});
}

/* Adds what the lab records with these choices. False, with its output: not all as expected. */
static bool record(const char *const *choices)
{
    char file[MUSEUM_PATH_MAX];
    const char *args[ARGS_MAX] = {"run", "--json", file};
    snprintf(file, sizeof file, "%s/lab.json", sandbox_dir(museum.sandbox));
    for (size_t n = 3; *choices != NULL; n++)
        args[n] = *choices++;
    const int status = museum_run("hazards", args);
    json_t *lab = json_load_file(file, 0, NULL);
    if (status != 0 || lab == NULL) {
        fprintf(stderr, "hazards ended with %d\n%s", status, museum.output);
        json_decref(lab);
        return false;
    }
    if (museum.lab == NULL)
        museum.lab = json_incref(lab);
    else
        json_array_extend(json_object_get(museum.lab, "results"), json_object_get(lab, "results"));
    json_decref(lab);
    return true;
}

/* The runs of all scenes, with few others; "unfair" is the longest. */
static const char *const recordings[][16] = {
    {"--hazard", "lost-update", "--hazard", "oversell", "--guard", "none"},
    {"--hazard", "two-processes", "--guard", "mutex"},
    {"--hazard", "holder-crash-no-expiry", "--hazard", "wrong-delete", "--guard", "redis-setnx",
     "--guard", "redis-set"},
    {"--hazard", "paused-holder", "--guard", "redis-reentrant"},
    {"--hazard", "unfair", "--guard", "redis-fair"},
    {"--hazard", "expired-lease", "--hazard", "failover", "--hazard", "commit-unknown", "--guard",
     "redis-token"},
};

int museum_open_empty(void **state)
{
    (void)state;
    museum = (struct museum_rig){.browser.session = ""};
    if (sandbox_open(&museum.sandbox) != 0)
        return -1;
    snprintf(museum.folder, sizeof museum.folder, "%s/site", sandbox_dir(museum.sandbox));
    return browser_open(&museum.browser, museum.sandbox);
}

int museum_open(void **state)
{
    if (museum_open_empty(state) != 0)
        return -1;
    for (size_t i = 0; i < sizeof recordings / sizeof *recordings; i++)
        if (!record(recordings[i]))
            return -1;
    if (museum_site(museum.lab, museum.folder) != 0) {
        fprintf(stderr, "no site: %s", museum.output);
        return -1;
    }
    return 0;
}

int museum_close(void **state)
{
    (void)state;
    browser_close(&museum.browser);
    json_decref(museum.lab);
    sandbox_close(museum.sandbox);
    return 0;
}

bool museum_go(const char *page)
{
    char url[2 * MUSEUM_PATH_MAX];
    snprintf(url, sizeof url, "file://%s/%s", museum.folder, page);
    browser_go(&museum.browser, "about:blank"); /* so that another fragment is another visit */
    browser_go(&museum.browser, url);
    return browser_await(&museum.browser,
                         "document.readyState === 'complete' && (typeof Museum === 'undefined' || "
                         "Museum.player !== undefined || Museum.levels !== undefined)",
                         MUSEUM_WAIT_MS);
}

bool museum_read_code(char *ret_text, size_t size)
{
    static const char kind[] = "QR-Code:";
    char picture[MUSEUM_PATH_MAX], output[MUSEUM_PATH_MAX], line[MUSEUM_TEXT_MAX] = "";
    int status = -1;
    snprintf(picture, sizeof picture, "%s/screen.png", sandbox_dir(museum.sandbox));
    snprintf(output, sizeof output, "%s/code.txt", sandbox_dir(museum.sandbox));
    browser_picture(&museum.browser, picture);
    const char *const argv[] = {"/usr/bin/zbarimg", "-q", "--nodbus", picture, NULL};
    if (!program_ends(program_start(argv, output, NULL), MUSEUM_WAIT_MS, &status))
        return false;
    FILE *read = fopen(output, "re");
    if (read == NULL)
        return false;
    const bool one = fgets(line, sizeof line, read) != NULL && fgetc(read) == EOF;
    fclose(read);
    line[strcspn(line, "\n")] = '\0';
    if (!one || strncmp(line, kind, strlen(kind)) != 0)
        return false;
    snprintf(ret_text, size, "%s", line + strlen(kind));
    return true;
}
