/* What --check looks at beyond the form of the settings, and how settings are shown: without the
 * passwords in them. */
#include "config.h"
#include "guard.h"

#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* "sqlite:FILE": the file can be opened for writing, or made. */
static int check_file(const char *file)
{
    char path[CONFIG_TEXT_MAX];
    struct stat status;
    if (stat(file, &status) == 0) {
        if (S_ISREG(status.st_mode) && access(file, R_OK | W_OK) == 0)
            return 0;
        fprintf(stderr, "seckilld: db: %s is not a file that can be written\n", file);
        return -1;
    }
    snprintf(path, sizeof path, "%s", file);
    const char *folder = dirname(path);
    if (file[0] != '\0' && access(folder, W_OK | X_OK) == 0 && stat(folder, &status) == 0 &&
        S_ISDIR(status.st_mode))
        return 0;
    fprintf(stderr, "seckilld: db: %s cannot be made: %s is no folder that can be written\n", file,
            folder);
    return -1;
}

static int check_store(const char *url)
{
    static const char sqlite[] = "sqlite:", postgres[] = "postgres://";
    if (strncmp(url, sqlite, strlen(sqlite)) == 0)
        return check_file(url + strlen(sqlite));
    if (strncmp(url, postgres, strlen(postgres)) == 0)
        return 0;
    fprintf(stderr, "seckilld: db: give sqlite:FILE or postgres://USER@HOST:PORT/DATABASE\n");
    return -1;
}

int config_check(const struct config *config)
{
    struct guards *guards;
    if (check_store(config->db) != 0 || guards_open(config, &guards) != 0)
        return -1;
    guards_close(guards);
    return 0;
}

/* -- passwords -------------------------------------------------------------------------------- */

static const char scheme_end[] = "://";

struct mask {
    char *at;
    size_t left; /* with the final NUL */
};

static void put(struct mask *mask, const char *text, size_t length)
{
    if (length >= mask->left)
        length = mask->left - 1;
    memcpy(mask->at, text, length);
    mask->at += length;
    mask->left -= length;
    *mask->at = '\0';
}

/* The last '@' of this URL, which may be one of several; NULL: no user. What is not as it should be
 * is rather hidden than shown. */
static const char *end_of_user(const char *authority)
{
    const char *next = strstr(authority, scheme_end), *at = NULL;
    for (const char *c = authority; *c != '\0' && c != next; c++)
        if (*c == '@')
            at = c;
    return at;
}

void config_mask(const char *value, char *ret, size_t size)
{
    static const char parameter[] = "password=", hidden[] = "***";
    struct mask mask = {ret, size};
    put(&mask, "", 0);
    while (*value != '\0') {
        if (strncmp(value, scheme_end, strlen(scheme_end)) == 0) {
            put(&mask, value, strlen(scheme_end));
            value += strlen(scheme_end);
            const char *at = end_of_user(value);
            size_t user = strcspn(value, ":");
            if (at && value + user < at) {
                put(&mask, value, user + 1);
                put(&mask, hidden, strlen(hidden));
                value = at;
            }
        } else if (strncmp(value, parameter, strlen(parameter)) == 0) {
            put(&mask, parameter, strlen(parameter));
            put(&mask, hidden, strlen(hidden));
            value += strlen(parameter);
            value += strcspn(value, "& ");
        } else {
            put(&mask, value++, 1);
        }
    }
}
