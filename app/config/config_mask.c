/* Hides the passwords in URLs, so that settings can be shown. */
#include "config.h"

#include <string.h>

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

/* The last '@' of the first of these URLs; NULL: no user. In a malformed URL it hides too much
 * rather than too little. */
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
