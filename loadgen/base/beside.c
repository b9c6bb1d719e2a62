#include "beside.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Writes the folder of this program and `name` behind it. */
static void from_program(const char *name, char *buffer, size_t size)
{
    ssize_t length = readlink("/proc/self/exe", buffer, size - strlen(name) - 1);
    buffer[length < 0 ? 0 : length] = '\0';
    char *slash = strrchr(buffer, '/');
    strcpy(slash == NULL ? buffer : slash + 1, name);
}

const char *beside(const char *program, const char *name, const char *flag, const char *given,
                   int mode, char *buffer, size_t size)
{
    char installed[128];
    int error;
    if (given != NULL)
        snprintf(buffer, size, "%s", given);
    else
        from_program(name, buffer, size);
    if (access(buffer, mode) == 0)
        return buffer;
    error = errno;
    if (given == NULL) {
        snprintf(installed, sizeof installed, "%s%s", BESIDE_INSTALLED, name);
        from_program(installed, buffer, size);
        if (access(buffer, mode) == 0)
            return buffer;
        from_program(name, buffer, size);
    }
    fprintf(stderr, "%s: cannot use %s: %s; build it with make", program, buffer, strerror(error));
    if (given == NULL)
        fprintf(stderr, ", or install it as %s%s", BESIDE_INSTALLED, name);
    if (flag != NULL)
        fprintf(stderr, ", or name another with %s", flag);
    fputc('\n', stderr);
    return NULL;
}
