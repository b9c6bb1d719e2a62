#include "serve_servers.h"
#include "steady.h"

#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FILES_MAX = 2, GUARD_PREFIXES_MAX = 2, PATH_LONGEST = 4096 };

static bool start_redis(struct serve_family *family);
static bool start_memcached(struct serve_family *family);
static bool start_zookeeper(struct serve_family *family);
static bool start_postgres(struct serve_family *family);

/* What is needed to run servers of a kind, and the guards that need them. */
static const struct description {
    const char *name, *option;
    bool (*start)(struct serve_family *family); /* fills servers and address */
    const char *program;                        /* in PATH; NULL: none */
    const char *files[FILES_MAX];               /* each pattern must match a file */
    const char *packages;                       /* of Debian */
    const char *guards[GUARD_PREFIXES_MAX];     /* prefixes of their names */
} descriptions[SERVE_KINDS] = {
    [SERVE_REDIS] = {.name = "Redis",
                     .option = "--redis",
                     .start = start_redis,
                     .program = "redis-server",
                     .packages = "redis-server",
                     .guards = {"redis-", "redlock"}},
    [SERVE_MEMCACHED] = {.name = "memcached",
                         .option = "--memcached",
                         .start = start_memcached,
                         .program = "memcached",
                         .packages = "memcached",
                         .guards = {"memcached"}},
    [SERVE_ZOOKEEPER] = {.name = "ZooKeeper",
                         .option = "--zookeeper",
                         .start = start_zookeeper,
                         .program = "java",
                         .files = {"/usr/share/java/zookeeper.jar",
                                   "/usr/share/java/slf4j-log4j12.jar"},
                         .packages = "libzookeeper-java libslf4j-java liblog4j1.2-java "
                                     "openjdk-17-jre-headless",
                         .guards = {"zk-"}},
    [SERVE_POSTGRES] = {.name = "PostgreSQL",
                        .option = "--lock-db",
                        .start = start_postgres,
                        .files = {"/usr/lib/postgresql/*/bin/initdb"},
                        .packages = "postgresql-15",
                        .guards = {"pg-"}},
};

/* -- starting ---------------------------------------------------------------------------------- */

static bool start_redis(struct serve_family *family)
{
    size_t length = 0;
    for (int i = 0; i < SERVE_REDIS_NODES; i++) {
        struct sandbox_server *node = sandbox_redis(family->sandbox, NULL);
        if (node == NULL)
            return false;
        family->servers[i] = node;
        length += (size_t)snprintf(family->address + length, sizeof family->address - length,
                                   "%s%s", i > 0 ? "," : "", node->url);
    }
    return true;
}

static bool has_started(struct serve_family *family, struct sandbox_server *server, const char *url)
{
    family->servers[0] = server;
    snprintf(family->address, sizeof family->address, "%s", url);
    return true;
}

static bool start_memcached(struct serve_family *family)
{
    struct sandbox_server *server = sandbox_memcached(family->sandbox, NULL);
    return server != NULL && has_started(family, server, server->url);
}

static bool start_zookeeper(struct serve_family *family)
{
    struct sandbox_zookeeper set;
    return sandbox_zookeeper(family->sandbox, 1, &set) == 0 &&
           has_started(family, set.server[0], set.url);
}

static bool start_postgres(struct serve_family *family)
{
    struct sandbox_server *server = sandbox_postgres(family->sandbox, NULL);
    return server != NULL && has_started(family, server, server->url);
}

static bool is_in_path(const char *program)
{
    char paths[PATH_LONGEST], file[PATH_LONGEST], *rest = NULL;
    const char *all = getenv("PATH");
    snprintf(paths, sizeof paths, "%s", all != NULL ? all : "/usr/local/bin:/usr/bin:/bin");
    for (char *dir = strtok_r(paths, ":", &rest); dir != NULL; dir = strtok_r(NULL, ":", &rest)) {
        const int length = snprintf(file, sizeof file, "%s/%s", dir, program);
        if (length > 0 && (size_t)length < sizeof file && access(file, X_OK) == 0)
            return true;
    }
    return false;
}

static bool is_there(const char *pattern)
{
    glob_t found;
    const bool result = glob(pattern, 0, NULL, &found) == 0;
    if (result)
        globfree(&found);
    return result;
}

static bool is_installed(const struct description *kind)
{
    bool result = kind->program == NULL || is_in_path(kind->program);
    for (size_t i = 0; i < FILES_MAX && kind->files[i] != NULL; i++)
        result = result && is_there(kind->files[i]);
    return result;
}

static void *start_family(void *arg)
{
    struct serve_family *family = arg;
    const int64_t begun_ms = steady_ms();
    if (!descriptions[family->kind].start(family))
        family->address[0] = '\0';
    family->started_ms = steady_ms() - begun_ms;
    return NULL;
}

static void leave_out(const struct description *kind, bool installed)
{
    fprintf(stderr, "loadgen: %s %s, so its guards cannot be used (%s*)", kind->name,
            installed ? "does not start" : "is not installed", kind->guards[0]);
    if (installed)
        fprintf(stderr, "\n");
    else
        fprintf(stderr, "; on Debian: apt-get install %s\n", kind->packages);
}

/* Signals are for the main thread: here they would cut a wait short. */
static bool start_thread(struct serve_family *family)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool result = pthread_create(&family->thread, NULL, start_family, family) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return result;
}

int serve_servers_start(struct serve_servers *servers)
{
    bool installed[SERVE_KINDS];
    *servers = (struct serve_servers){.families[0].sandbox = NULL};
    for (int i = 0; i < SERVE_KINDS; i++) { /* forks: before the threads */
        struct serve_family *family = &servers->families[i];
        family->kind = (enum serve_kind)i;
        installed[i] = is_installed(&descriptions[i]);
        if (installed[i] && sandbox_open(&family->sandbox) != 0)
            return -1;
    }
    for (int i = 0; i < SERVE_KINDS; i++)
        if (installed[i])
            servers->families[i].threaded = start_thread(&servers->families[i]);
    for (int i = 0; i < SERVE_KINDS; i++)
        if (servers->families[i].threaded)
            pthread_join(servers->families[i].thread, NULL);
    for (int i = 0; i < SERVE_KINDS; i++)
        if (servers->families[i].address[0] == '\0')
            leave_out(&descriptions[i], installed[i]);
    return servers->families[SERVE_REDIS].address[0] != '\0' ? 0 : -1;
}

void serve_servers_close(struct serve_servers *servers)
{
    for (int i = 0; i < SERVE_KINDS; i++)
        sandbox_close(servers->families[i].sandbox);
}

/* -- what runs --------------------------------------------------------------------------------- */

struct sandbox_server *serve_servers_redis(const struct serve_servers *servers)
{
    return servers->families[SERVE_REDIS].servers[0];
}

bool serve_servers_option(const struct serve_servers *servers, size_t i, char *ret, size_t size)
{
    for (size_t k = 0, n = 0; k < SERVE_KINDS; k++) {
        if (servers->families[k].address[0] == '\0' || n++ < i)
            continue;
        snprintf(ret, size, "%s=%s", descriptions[k].option, servers->families[k].address);
        return true;
    }
    return false;
}

/* The kind of server that a guard needs; SERVE_KINDS: none of them. */
static int kind_of(const char *guard)
{
    for (int i = 0; i < SERVE_KINDS; i++)
        for (size_t k = 0; k < GUARD_PREFIXES_MAX && descriptions[i].guards[k] != NULL; k++)
            if (strncmp(guard, descriptions[i].guards[k], strlen(descriptions[i].guards[k])) == 0)
                return i;
    return SERVE_KINDS;
}

bool serve_servers_usable(const struct serve_servers *servers, const json_t *guards, size_t *ret_n)
{
    size_t i, n = 0;
    const json_t *guard;
    bool all = true;
    json_array_foreach(guards, i, guard)
    {
        const char *name = json_string_value(json_object_get(guard, "name"));
        const int kind = kind_of(name != NULL ? name : "");
        const bool answers = json_is_true(json_object_get(guard, "servers_answer"));
        n += answers;
        if (!answers && kind != SERVE_KINDS && servers->families[kind].address[0] != '\0')
            all = false;
    }
    *ret_n = n;
    return all;
}

/* kB of one process. */
static long long memory_of(long pid)
{
    char path[64], line[256];
    long long result = 0;
    snprintf(path, sizeof path, "/proc/%ld/smaps_rollup", pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && result == 0 && fgets(line, sizeof line, file) != NULL)
        sscanf(line, "Pss: %lld", &result);
    if (file != NULL)
        fclose(file);
    return result;
}

long long serve_servers_memory(const struct sandbox_server *server)
{
    char path[96];
    long child;
    long long result = memory_of(server->pid);
    snprintf(path, sizeof path, "/proc/%ld/task/%ld/children", (long)server->pid,
             (long)server->pid);
    FILE *file = fopen(path, "re");
    while (file != NULL && fscanf(file, "%ld", &child) == 1)
        result += memory_of(child);
    if (file != NULL)
        fclose(file);
    return result * 1024;
}

void serve_servers_print(const struct serve_servers *servers)
{
    for (int i = 0; i < SERVE_KINDS; i++) {
        const struct serve_family *family = &servers->families[i];
        long long memory = 0;
        if (family->address[0] == '\0')
            continue;
        for (int k = 0; k < SERVE_REDIS_NODES && family->servers[k] != NULL; k++)
            memory += serve_servers_memory(family->servers[k]);
        printf("  %-11s %5.1f s  %4.0f MB  %s\n", descriptions[i].name,
               (double)family->started_ms / 1000, (double)memory / 1e6, family->address);
    }
}
