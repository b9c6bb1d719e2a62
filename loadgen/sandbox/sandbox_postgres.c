/* PostgreSQL with its own cluster, on a loopback port and a unix socket. It refuses to run as
 * root, so root starts it as the user postgres. Its superuser may run programs (COPY FROM PROGRAM),
 * so it wants the password of PGPASSWORD. */
#include "sandbox_process.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ANSWER_MS = 500 };

/* Creates the cluster at the first start. The processes of a killed postmaster outlive it by some
 * milliseconds. While one is attached to its shared memory (line 7 of postmaster.pid: key, id),
 * the next postmaster refuses to start: wait for it. Debian keeps the servers out of PATH, in one
 * folder per version. Arguments: the folder, then the server's own. */
static const char script[] =
    "bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | sort -V | tail -n 1)\n"
    "PATH=$bin:$PATH dir=$1\n"
    "shift\n"
    "[ -s \"$dir\"/data/PG_VERSION ] ||"
    " { (umask 077 && printf '%s' \"$PGPASSWORD\" >\"$dir\"/password) &&"
    " initdb -D \"$dir\"/data -A password --pwfile=\"$dir\"/password -U postgres -E UTF8"
    " --locale=C --no-sync || exit; }\n"
    "id=$(awk 'NR == 7 { print $2 }' \"$dir\"/data/postmaster.pid 2>/dev/null)\n"
    "while [ -n \"$id\" ] && ipcs -m |"
    " awk -v id=\"$id\" '$2 == id && $6 > 0 { found = 1 } END { exit !found }'\n"
    "do sleep 0.01; done\n"
    "exec postgres -D \"$dir\"/data -k \"$dir\" \"$@\"\n";

/* A ready server answers a start-up packet (protocol 3.0) with 'R'. The question goes over the
 * unix socket in our own folder, so the answer is from our server. */
static bool postgres_ready(struct sandbox_server *server)
{
    static const char start_up[] = "\0\0\0\27\0\3\0\0user\0postgres\0";
    return sandbox_answers_bytes(server->socket, 0, start_up, sizeof start_up, "R", ANSWER_MS);
}

static void postgres_fill(struct sandbox_server *server, const void *extra)
{
    const char *dir = sandbox_dir(server->sandbox);
    static const char *const as_postgres[] = {"setpriv", "--reuid=postgres", "--regid=postgres",
                                              "--clear-groups", "--pdeathsig=KILL"};
    if (geteuid() == 0) /* changing the user clears the death signal: set it again */
        for (size_t i = 0; i < sizeof as_postgres / sizeof as_postgres[0]; i++)
            sandbox_arg(server, "%s", as_postgres[i]);
    sandbox_arg(server, "sh");
    sandbox_arg(server, "-c");
    sandbox_arg(server, "%s", script);
    sandbox_arg(server, "sh");
    sandbox_arg(server, "%s/%s", dir, server->name);
    sandbox_arg(server, "-p");
    sandbox_arg(server, "%d", server->port);
    static const char *const settings[] = {"listen_addresses=127.0.0.1", "fsync=off",
                                           "shared_buffers=16MB",
                                           "dynamic_shared_memory_type=mmap"};
    for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++) {
        sandbox_arg(server, "-c");
        sandbox_arg(server, "%s", settings[i]);
    }
    for (const char *const *arg = extra; arg != NULL && *arg != NULL; arg++)
        sandbox_arg(server, "%s", *arg);
    snprintf(server->socket, sizeof server->socket, "%s/%s/.s.PGSQL.%d", dir, server->name,
             server->port);
    snprintf(server->url, sizeof server->url, "postgres://postgres@127.0.0.1:%d/postgres",
             server->port);
}

/* Creates the server's folder. Started by root, it belongs to the user postgres. */
static int make_folder(const struct sandbox_server *server)
{
    char dir[SANDBOX_TEXT_MAX + sizeof server->name];
    const char *parent = sandbox_dir(server->sandbox);
    snprintf(dir, sizeof dir, "%s/%s", parent, server->name);
    if (mkdir(dir, 0700) != 0) {
        fprintf(stderr, "sandbox: cannot make %s: %s\n", dir, strerror(errno));
        return -1;
    }
    if (geteuid() != 0)
        return 0;
    struct passwd user, *found = NULL;
    char texts[1024];
    if (getpwnam_r("postgres", &user, texts, sizeof texts, &found) != 0 || found == NULL) {
        fprintf(stderr, "sandbox: there is no user postgres; install the package postgresql-15\n");
        return -1;
    }
    if (chmod(parent, 0711) != 0 || chown(dir, user.pw_uid, user.pw_gid) != 0) {
        fprintf(stderr, "sandbox: cannot give %s to postgres: %s\n", dir, strerror(errno));
        return -1;
    }
    return 0;
}

struct sandbox_server *sandbox_postgres(struct sandbox *sandbox, const char *const *extra)
{
    struct sandbox_server *server = sandbox_add(sandbox, "postgres", postgres_ready);
    if (server == NULL || make_folder(server) != 0)
        return NULL;
    server->ready_ms = SANDBOX_MAKE_MS;
    return sandbox_start_on_free_port(server, postgres_fill, extra) == 0 ? server : NULL;
}
