#include "foreign.h"

#include <stdarg.h>
#include <string.h>

static bool run(char ret[FOREIGN_TEXT_MAX], const char *format, va_list args)
{
    char command[4 * FOREIGN_TEXT_MAX];
    if (vsnprintf(command, sizeof command, format, args) >= (int)sizeof command)
        return false;
    FILE *out = popen(command, "re");
    if (out == NULL)
        return false;
    size_t n = fread(ret, 1, FOREIGN_TEXT_MAX - 1, out);
    bool whole = feof(out) != 0;
    ret[n] = '\0';
    if (n > 0 && ret[n - 1] == '\n')
        ret[n - 1] = '\0';
    return pclose(out) == 0 && whole;
}

bool foreign_run(char ret[FOREIGN_TEXT_MAX], const char *format, ...)
{
    va_list args;
    va_start(args, format);
    bool ran = run(ret, format, args);
    va_end(args);
    return ran;
}

bool foreign_says(const char *want, const char *format, ...)
{
    char said[FOREIGN_TEXT_MAX];
    va_list args;
    va_start(args, format);
    bool ran = run(said, format, args);
    va_end(args);
    if (ran && strcmp(said, want) == 0)
        return true;
    fprintf(stderr, "\"%s\" says \"%s\", not \"%s\"\n", format, ran ? said : "nothing", want);
    return false;
}
