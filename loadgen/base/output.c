#include "output.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(const char *program, const char *path)
{
    fprintf(stderr, "%s: cannot write %s: %s\n", program, path, strerror(errno));
    return -1;
}

static const char *checked; /* the program */

static void check_stdout(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && ferror(stdout) == 0)
        return;
    errno = errno != 0 ? errno : EIO;
    fail(checked, "the standard output");
    _exit(EXIT_FAILURE);
}

void output_check_at_exit(const char *program)
{
    static char buffer[1 << 16]; /* so that what fails is the last write, whose errno is known */
    checked = program;
    if (!isatty(STDOUT_FILENO))
        setvbuf(stdout, buffer, _IOFBF, sizeof buffer);
    atexit(check_stdout);
}

static void make_folders(const char *path)
{
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", path);
    for (char *slash = strchr(folder + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(folder, 0777); /* one that cannot be made shows at fopen() */
        *slash = '/';
    }
}

int output_check_files(const char *program, const char *const *files, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (files[i] == NULL || strcmp(files[i], "-") == 0)
            continue;
        make_folders(files[i]);
        bool is_new = access(files[i], F_OK) != 0;
        FILE *out = fopen(files[i], "ae");
        if (out == NULL)
            return fail(program, files[i]);
        fclose(out);
        if (is_new)
            unlink(files[i]);
    }
    return 0;
}

FILE *output_open(const char *program, const char *path)
{
    if (strcmp(path, "-") == 0)
        return stdout;
    make_folders(path);
    FILE *out = fopen(path, "we");
    if (out == NULL)
        fail(program, path);
    return out;
}

int output_close(const char *program, const char *path, FILE *out)
{
    if (out == stdout)
        return 0;
    bool failed = ferror(out) != 0;
    failed |= fclose(out) != 0;
    return failed ? fail(program, path) : 0;
}

int output_json(const char *program, const char *path, json_t *json)
{
    FILE *out = output_open(program, path);
    bool dumped = false;
    if (json == NULL)
        fprintf(stderr, "%s: not enough memory for %s\n", program, path);
    else if (out != NULL)
        dumped = json_dumpf(json, out, JSON_INDENT(2) | JSON_REAL_PRECISION(8)) == 0 &&
                 fputc('\n', out) != EOF;
    json_decref(json);
    return out != NULL && output_close(program, path, out) == 0 && dumped ? 0 : -1;
}

void output_tell(FILE *out, const char *const *files, size_t n)
{
    const char *before = "\nReports: ";
    for (size_t i = 0; i < n; i++)
        if (files[i] != NULL && strcmp(files[i], "-") != 0) {
            fprintf(out, "%s%s", before, files[i]);
            before = ", ";
        }
    if (before[0] == ',')
        fputc('\n', out);
}
