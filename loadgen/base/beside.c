#include "beside.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

const char *beside(const char *program, const char *name, const char *flag, const char *given,
                   int mode, char *buffer, size_t size)
{
    if (given != NULL) {
        snprintf(buffer, size, "%s", given);
    } else {
        ssize_t length = readlink("/proc/self/exe", buffer, size - strlen(name) - 1);
        buffer[length < 0 ? 0 : length] = '\0';
        char *slash = strrchr(buffer, '/');
        strcpy(slash == NULL ? buffer : slash + 1, name);
    }
    if (access(buffer, mode) == 0)
        return buffer;
    fprintf(stderr, "%s: cannot use %s: %s; build it with make", program, buffer, strerror(errno));
    if (flag != NULL)
        fprintf(stderr, ", or name another with %s", flag);
    fputc('\n', stderr);
    return NULL;
}
