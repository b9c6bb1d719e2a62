/* What --check looks at beyond the form of the settings. */
#include "config.h"
#include "guard.h"
#include "lab.h"
#include "tokens.h"

#include <errno.h>
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
        fprintf(stderr, "seckilld: db: cannot write %s: %s\n", file,
                S_ISREG(status.st_mode) ? strerror(errno) : "it is not a regular file");
        return -1;
    }
    snprintf(path, sizeof path, "%s", file);
    const char *folder = dirname(path);
    if (file[0] == '\0') {
        fprintf(stderr, "seckilld: db: sqlite: names no file; give sqlite:FILE\n");
        return -1;
    }
    if (access(folder, W_OK | X_OK) == 0 && stat(folder, &status) == 0 && S_ISDIR(status.st_mode))
        return 0;
    fprintf(stderr, "seckilld: db: cannot make %s in the folder %s: %s\n", file, folder,
            strerror(errno));
    return -1;
}

static const char sqlite[] = "sqlite:", postgres[] = "postgres://";

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

int config_check_names(const struct config *config)
{
    if (!begins(config->db, sqlite) && !begins(config->db, postgres)) {
        fprintf(stderr, "seckilld: db: give sqlite:FILE or postgres://USER@HOST:PORT/DATABASE\n");
        return -1;
    }
    return guard_is_known(config->guard) && lab_is_possible(config) ? 0 : -1;
}

struct tokens *config_tokens(const struct config *config)
{
    char message[TOKENS_MESSAGE_MAX];
    const struct tokens_source source = {.file = config->tokens,
                                         .operator_sha256 = config->operator_token_sha256,
                                         .open = config->open};
    struct tokens *tokens = tokens_open(&source, message, sizeof message);
    if (tokens == NULL)
        fprintf(stderr, "seckilld: %s\n", message);
    return tokens;
}

int config_check(const struct config *config)
{
    struct guards *guards;
    struct tokens *tokens = config_tokens(config);
    if (tokens == NULL)
        return -1;
    tokens_close(tokens);
    if ((begins(config->db, sqlite) && check_file(config->db + strlen(sqlite)) != 0) ||
        guards_open(config, &seams_none, &guards) != 0)
        return -1;
    guards_close(guards);
    return 0;
}
