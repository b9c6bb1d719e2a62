#include "login.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool copy(const char *from, size_t length, char to[LK_LOGIN_MAX + 1])
{
    if (length > LK_LOGIN_MAX)
        return false;
    memcpy(to, from, length);
    to[length] = '\0';
    return true;
}

const char *lk_login_read(const char *variable, lk_login *ret)
{
    const char *text = secure_getenv(variable);
    *ret = (lk_login){.user = ""};
    if (text == NULL || text[0] == '\0')
        return NULL;
    for (const char *at = text; *at != '\0'; at++)
        if (iscntrl((unsigned char)*at))
            return "has a control character, such as the end of a line";
    const char *colon = strchr(text, ':');
    const char *password = colon != NULL ? colon + 1 : text;
    if (password[0] == '\0')
        return "has no password after its colon";
    lk_login login = {.user = ""};
    if ((colon != NULL && !copy(text, (size_t)(colon - text), login.user)) ||
        !copy(password, strlen(password), login.password))
        return "is too long";
    *ret = login;
    return NULL;
}
