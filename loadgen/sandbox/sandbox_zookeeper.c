/* ZooKeeper, one server or an ensemble of three, on loopback ports, in small JVMs. */
#include "sandbox_process.h"
#include "steady.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum {
    ANSWER_MS = 500, /* a starting server may accept a question and never answer it */
    ANSWER_MAX = 16 * 1024,
    FOLDER_MAX = 512,
    READY_MS = 120000, /* a JVM on a busy machine; one that ends is noticed at once */
    AGREE_MS = 120000,
    LOOK_MS = 10
};

/* Debian's jars; both logging ones are needed. */
#define JARS                                                                                       \
    "/usr/share/java/zookeeper.jar:/usr/share/java/slf4j-log4j12.jar:/usr/share/java/"             \
    "log4j-1.2.jar"

/* The ports of a server. All servers know them before the first starts. */
struct ports {
    int client, follow, elect;
};

static void folder_of(const struct sandbox_server *server, char ret[FOLDER_MAX])
{
    snprintf(ret, FOLDER_MAX, "%s/%s", sandbox_dir(server->sandbox), server->name);
}

/* Does it run? It may not serve yet, because it needs the others. Its answer has its own folder in
 * its class path: another program on the port does not say that. */
static bool is_up(struct sandbox_server *server)
{
    char answer[ANSWER_MAX], folder[FOLDER_MAX];
    folder_of(server, folder);
    sandbox_ask(server->port, "envi", answer, sizeof answer, ANSWER_MS);
    return strstr(answer, folder) != NULL;
}

/* -- a set of servers ---------------------------------------------------------------------------
 */

static bool write_text(const char *folder, const char *name, const char *text)
{
    char path[FOLDER_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    bool written = file != NULL && fputs(text, file) >= 0;
    if (file != NULL && fclose(file) != 0)
        written = false;
    if (!written)
        fprintf(stderr, "sandbox: cannot write %s: %s\n", path, strerror(errno));
    return written;
}

static bool configure(const struct sandbox_server *server, int which, const struct ports *ports,
                      int n)
{
    char folder[FOLDER_MAX], text[2048], id[16];
    folder_of(server, folder);
    int length =
        snprintf(text, sizeof text,
                 "tickTime=%d\nminSessionTimeout=%d\nmaxSessionTimeout=60000\ndataDir=%s/data\n"
                 "clientPort=%d\nclientPortAddress=127.0.0.1\nadmin.enableServer=false\n"
                 "4lw.commands.whitelist=envi,srvr\nforceSync=no\nmaxClientCnxns=0\n",
                 SANDBOX_ZOOKEEPER_TICK_MS, 2 * SANDBOX_ZOOKEEPER_TICK_MS, folder, server->port);
    if (n > 1)
        length += snprintf(text + length, sizeof text - (size_t)length,
                           "initLimit=50\nsyncLimit=20\nstandaloneEnabled=false\n");
    for (int i = 0; i < n && n > 1; i++)
        length += snprintf(text + length, sizeof text - (size_t)length,
                           "server.%d=127.0.0.1:%d:%d\n", i + 1, ports[i].follow, ports[i].elect);
    snprintf(id, sizeof id, "%d\n", which + 1);
    return write_text(folder, "zoo.cfg", text) && write_text(folder, "data/myid", id) &&
           write_text(
               folder, "log4j.properties",
               "log4j.rootLogger=WARN, A\nlog4j.appender.A=org.apache.log4j.ConsoleAppender\n"
               "log4j.appender.A.layout=org.apache.log4j.PatternLayout\n"
               "log4j.appender.A.layout.ConversionPattern=%d %p %m%n\n");
}

static void fill_args(struct sandbox_server *server)
{
    /* Empty containers are removed after a second, not a minute. */
    static const char *const fixed[] = {"java",
                                        "-Xms32m",
                                        "-Xmx96m",
                                        "-XX:+UseSerialGC",
                                        "-XX:TieredStopAtLevel=1",
                                        "-Dzookeeper.jmx.log4j.disable=true",
                                        "-Dznode.container.checkIntervalMs=1000",
                                        "-cp"};
    char folder[FOLDER_MAX];
    folder_of(server, folder);
    server->n_args = 0;
    server->args_length = 0;
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++)
        sandbox_arg(server, "%s", fixed[i]);
    sandbox_arg(server, "%s:" JARS, folder);
    sandbox_arg(server, "org.apache.zookeeper.server.quorum.QuorumPeerMain");
    sandbox_arg(server, "%s/zoo.cfg", folder);
    snprintf(server->url, sizeof server->url, "127.0.0.1:%d", server->port);
}

/* A server that serves may still need a moment for sessions. */
static int close_tree(const struct sandbox_zookeeper *set)
{
    int64_t deadline_ms = steady_ms() + AGREE_MS;
    while (!sandbox_zookeeper_close_tree(set->server[0])) {
        if (!sandbox_alive(set->server[0]) || steady_ms() > deadline_ms) {
            fprintf(stderr, "sandbox: %s does not take an ACL; see %s\n", set->server[0]->name,
                    set->server[0]->log);
            return -1;
        }
        steady_sleep_ms(LOOK_MS);
    }
    return 0;
}

static int start_all(const struct sandbox_zookeeper *set)
{
    struct ports ports[SANDBOX_ZOOKEEPERS_MAX];
    for (int i = 0; i < set->n; i++) {
        ports[i] = (struct ports){sandbox_free_port(), sandbox_free_port(), sandbox_free_port()};
        sandbox_take_port(set->server[i], ports[i].client);
    }
    for (int i = 0; i < set->n; i++) {
        fill_args(set->server[i]);
        if (!configure(set->server[i], i, ports, set->n) || sandbox_start(set->server[i]) != 0)
            return -1;
    }
    return sandbox_zookeeper_agree(set) == 0 ? close_tree(set) : -1;
}

static struct sandbox_server *add(struct sandbox *sandbox)
{
    char folder[FOLDER_MAX], data[FOLDER_MAX + 8];
    struct sandbox_server *server = sandbox_add(sandbox, "zookeeper", is_up);
    if (server == NULL)
        return NULL;
    server->ready_ms = READY_MS;
    folder_of(server, folder);
    snprintf(data, sizeof data, "%s/data", folder);
    if (mkdir(folder, 0700) == 0 && mkdir(data, 0700) == 0)
        return server;
    fprintf(stderr, "sandbox: cannot make %s: %s\n", data, strerror(errno));
    return NULL;
}

int sandbox_zookeeper(struct sandbox *sandbox, int n, struct sandbox_zookeeper *ret)
{
    struct sandbox_zookeeper set = {.n = n};
    for (int i = 0; i < n; i++)
        if ((set.server[i] = add(sandbox)) == NULL)
            return -1;
    /* Another program may take a port of the set before its server binds it. */
    for (int attempt = 1; start_all(&set) != 0; attempt++) {
        for (int i = 0; i < n; i++)
            if (set.server[i]->pid != 0)
                sandbox_signal(set.server[i], SIGKILL);
        if (attempt == SANDBOX_PORT_TRIES_MAX)
            return -1;
        fprintf(stderr, "sandbox: trying ZooKeeper on other ports\n");
    }
    size_t length = 0;
    for (int i = 0; i < n; i++)
        length += (size_t)snprintf(set.url + length, sizeof set.url - length, "%s%s",
                                   i > 0 ? "," : "", set.server[i]->url);
    *ret = set;
    return 0;
}

/* -- the state of the servers ------------------------------------------------------------------ */

/* "standalone", "leader", "follower"; "" while it does not serve. */
static void mode_of(const struct sandbox_server *server, char ret[16])
{
    char answer[ANSWER_MAX];
    ret[0] = '\0';
    if (server->pid == 0)
        return;
    sandbox_ask(server->port, "srvr", answer, sizeof answer, ANSWER_MS);
    const char *mode = strstr(answer, "Mode: ");
    if (mode != NULL)
        sscanf(mode, "Mode: %15[a-z]", ret);
}

int sandbox_zookeeper_leader(const struct sandbox_zookeeper *set)
{
    char mode[16];
    for (int i = 0; i < set->n; i++) {
        mode_of(set->server[i], mode);
        if (strcmp(mode, "leader") == 0 || strcmp(mode, "standalone") == 0)
            return i;
    }
    return -1;
}

int sandbox_zookeeper_agree(const struct sandbox_zookeeper *set)
{
    char mode[16];
    int64_t deadline_ms = steady_ms() + AGREE_MS;
    for (int i = 0; i < set->n;) {
        mode_of(set->server[i], mode);
        if (set->server[i]->pid == 0 || mode[0] != '\0') {
            i++;
            continue;
        }
        if (!sandbox_alive(set->server[i]) || steady_ms() > deadline_ms) {
            fprintf(stderr, "sandbox: %s does not serve; see %s\n", set->server[i]->name,
                    set->server[i]->log);
            return -1;
        }
        steady_sleep_ms(LOOK_MS);
    }
    return 0;
}
