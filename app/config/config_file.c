/* A settings file: lines "key = value"; empty lines and lines that begin with # are skipped. */
#include "config_keys.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

enum { LINE_MAX_BYTES = 1024 };

static char *trim(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    size_t length = strlen(text);
    while (length > 0 && isspace((unsigned char)text[length - 1]))
        text[--length] = '\0';
    return text;
}

/* Takes one line; returns NULL, or what is wrong with it. */
static const char *take_line(struct config_draft *draft, char *line, bool *seen)
{
    char *text = trim(line);
    if (text[0] == '\0' || text[0] == '#')
        return NULL;
    char *equals = strchr(text, '=');
    if (equals == NULL)
        return "not of the form key = value";
    *equals = '\0';
    const char *name = trim(text);
    int key = config_key_find(name, strlen(name));
    if (key < 0) {
        snprintf(draft->message, sizeof(draft->message), "unknown key \"%.64s\"", name);
        return draft->message;
    }
    if (seen[key])
        return "key set twice";
    seen[key] = true;
    return config_draft_set(draft, (size_t)key, trim(equals + 1), CONFIG_FILE) == 0
               ? NULL
               : draft->message;
}

int config_draft_file(struct config_draft *draft, const char *path)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        snprintf(draft->message, sizeof(draft->message), "cannot read %.512s: %s", path,
                 strerror(errno));
        return -1;
    }
    char line[LINE_MAX_BYTES];
    bool seen[CONFIG_KEYS_MAX] = {false};
    const char *wrong = NULL;
    int number = 0;
    while (wrong == NULL && fgets(line, sizeof(line), file) != NULL) {
        number++;
        size_t length = strlen(line);
        if (length == sizeof(line) - 1 && line[length - 1] != '\n')
            wrong = "line too long";
        else
            wrong = take_line(draft, line, seen);
    }
    if (wrong == NULL && ferror(file))
        wrong = "read error";
    fclose(file);
    if (wrong == NULL)
        return 0;
    char why[256];
    snprintf(why, sizeof(why), "%.255s", wrong);
    snprintf(draft->message, sizeof(draft->message), "%.512s:%d: %s", path, number, why);
    return -1;
}
