#include "report.h"

#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

static void read_cpu(char *ret, size_t size)
{
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "re");
    snprintf(ret, size, "unknown processor");
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, "model name", strlen("model name")) == 0) {
            const char *colon = strchr(line, ':');
            line[strcspn(line, "\n")] = '\0';
            if (colon != NULL && colon[1] == ' ')
                snprintf(ret, size, "%.150s", colon + 2);
            break;
        }
    if (file != NULL)
        fclose(file);
}

void environment_read(struct environment *ret)
{
    struct utsname name;
    time_t now = time(NULL);
    struct tm utc;
    memset(ret, 0, sizeof *ret);
    if (uname(&name) == 0)
        snprintf(ret->system, sizeof ret->system, "%.60s %.60s %.60s", name.sysname, name.release,
                 name.machine);
    read_cpu(ret->cpu, sizeof ret->cpu);
    ret->cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
    ret->memory_mb = (int64_t)sysconf(_SC_PHYS_PAGES) * (sysconf(_SC_PAGESIZE) / 1024) / 1024;
    gmtime_r(&now, &utc);
    strftime(ret->at, sizeof ret->at, "%Y-%m-%dT%H:%M:%SZ", &utc);
}
