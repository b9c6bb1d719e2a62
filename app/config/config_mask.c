/* Hides the passwords in URLs, so that settings can be shown. */
#include "config.h"

#include <stdbool.h>
#include <string.h>

static const char scheme_end[] = "://", hidden[] = "***";

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

/* Parameters of URLs whose values are shown. Any other one may be a password in a spelling that the
 * database understands: "PASSWORD", "pass%77ord", "sslpassword". */
static bool is_shown(const char *name, size_t length)
{
    static const char *const shown[] = {"db",   "host",     "port",           "user",
                                        "pool", "dbname",   "sslmode",        "isolation",
                                        "mode", "hostaddr", "connect_timeout"};
    for (size_t i = 0; i < sizeof shown / sizeof shown[0]; i++)
        if (strlen(shown[i]) == length && strncmp(shown[i], name, length) == 0)
            return true;
    return false;
}

/* Copies ":user" or "user" and hides what stands between the next colon and the '@'. */
static const char *put_user(struct mask *mask, const char *value)
{
    const char *at = end_of_user(value);
    const size_t user = strcspn(value, ":");
    if (at == NULL || value + user >= at)
        return value;
    put(mask, value, user + 1);
    put(mask, hidden, strlen(hidden));
    return at;
}

/* Copies the name of "name=value" in a query, and hides the value unless it is known to be none to
 * hide. A shown value is left to the caller: a further URL may follow it. */
static const char *put_parameter(struct mask *mask, const char *value)
{
    const size_t name = strcspn(value, "=&,");
    const char *url = strstr(value, scheme_end);
    const bool is_url = url != NULL && url < value + name; /* it has a password of its own */
    if (value[name] != '=' || is_url || is_shown(value, name))
        return value;
    put(mask, value, name + 1);
    put(mask, hidden, strlen(hidden));
    return value + strcspn(value, "&");
}

void config_mask(const char *value, char *ret, size_t size)
{
    struct mask mask = {ret, size};
    put(&mask, "", 0);
    const bool is_file = strncmp(value, "sqlite:", strlen("sqlite:")) == 0;
    if (!is_file && strstr(value, scheme_end) == NULL)
        value = put_user(&mask, value); /* a URL without its scheme is refused, and shown */
    for (bool in_query = false; *value != '\0';) {
        if (strncmp(value, scheme_end, strlen(scheme_end)) == 0) {
            put(&mask, value, strlen(scheme_end));
            value = put_user(&mask, value + strlen(scheme_end));
            in_query = false;
        } else if (!is_file && (*value == '?' || (in_query && *value == '&'))) {
            put(&mask, value, 1);
            value = put_parameter(&mask, value + 1);
            in_query = true;
        } else {
            put(&mask, value++, 1);
        }
    }
}
