/* What a service manager tells the real program, and hears from it: tokens to be read again, that
 * it is ready, that it turns, that it ends. */
#include "daemon.h"

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define HASH_OF_FIRST  "a7937b64b8caa58f03721bb6bacf5c78cb235febe0e70b1b84cd99541461a08e"
#define HASH_OF_SECOND "16367aacb67a4a017c8da8ab95682ccb390863780f7114dda0a0e0c55644c7c4"

/* Writes the file of --tokens. */
static void write_tokens(const char *path, const char *role, const char *hash)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "%s ann %s\n", role, hash);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, 0600), 0);
}

static int ask_metrics(int port, const char *token)
{
    char text[256];
    struct raw_reply reply;
    int fd = raw_connect(port);
    snprintf(text, sizeof(text),
             "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n\r\n", token);
    raw_send_text(fd, text);
    int status = raw_read(fd, 0, RAW_WAIT_MS, &reply);
    raw_free(&reply);
    close(fd);
    return status;
}

GROUP_FIXTURE(make_folder, remove_folder);

/* SIGHUP reads the tokens again. A file that is wrong leaves those that are known. */
TEST_THAT(a_hangup_reloads_the_tokens)
{
    char path[128], option[160];
    struct daemon daemon;
    snprintf(path, sizeof(path), "%s/tokens", folder);
    snprintf(option, sizeof(option), "--tokens=%s", path);
    write_tokens(path, "operator", HASH_OF_FIRST);
    run_until_ready(&daemon, (const char *const[]){option, NULL});
    assert_int_equal(ask_metrics(daemon.port, "first"), 200);
    assert_int_equal(ask_metrics(daemon.port, "second"), 401);

    write_tokens(path, "operator", HASH_OF_SECOND);
    kill(daemon.pid, SIGHUP);
    await_line(&daemon, "event=reload tokens=1");
    assert_int_equal(ask_metrics(daemon.port, "first"), 401);
    assert_int_equal(ask_metrics(daemon.port, "second"), 200);

    write_tokens(path, "king", HASH_OF_FIRST);
    kill(daemon.pid, SIGHUP);
    await_line(&daemon, "event=reload error=");
    assert_int_equal(ask_metrics(daemon.port, "second"), 200);

    unlink(path);
    kill(daemon.pid, SIGTERM);
    assert_int_equal(status_of(&daemon), 0);
}

/* -- the service manager --------------------------------------------------------------------------
 */

static int manager_fd = -1;

/* Binds the socket of NOTIFY_SOCKET, by a name of the file system or an abstract one. */
static void manager_listens(bool abstract)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s/notify", folder);
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    if (abstract) {
        char name[sizeof(address.sun_path) + 1];
        snprintf(name, sizeof(name), "@%s", address.sun_path);
        setenv("NOTIFY_SOCKET", name, 1);
        memmove(address.sun_path + 1, address.sun_path, strlen(address.sun_path) + 1);
        address.sun_path[0] = '\0';
    }
    const size_t length = strlen(abstract ? address.sun_path + 1 : address.sun_path) + abstract;
    manager_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(manager_fd, (struct sockaddr *)&address,
                          (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length)),
                     0);
}

static int manager_goes(void **state)
{
    (void)state;
    char path[128];
    snprintf(path, sizeof(path), "%s/notify", folder);
    unlink(path);
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    return close(manager_fd);
}

static void manager_hears(const char *state)
{
    char text[128];
    struct pollfd heard = {.fd = manager_fd, .events = POLLIN};
    assert_int_equal(poll(&heard, 1, RAW_WAIT_MS), 1);
    ssize_t n = recv(manager_fd, text, sizeof(text) - 1, 0);
    assert_true(n > 0);
    text[n] = '\0';
    assert_string_equal(text, state);
}

TEST_THAT(a_manager_hears_of_the_start_and_of_the_end)
{
    for (int abstract = 0; abstract <= 1; abstract++) {
        struct daemon daemon;
        manager_listens(abstract);
        run_until_ready(&daemon, (const char *const[]){NULL});
        manager_hears("READY=1");
        kill(daemon.pid, SIGTERM);
        manager_hears("STOPPING=1");
        assert_int_equal(status_of(&daemon), 0);
        manager_goes(NULL);
    }
}

TEST_THAT_WITH(a_watchdog_hears_that_the_service_turns, NULL, manager_goes)
{
    struct daemon daemon;
    manager_listens(false);
    setenv("WATCHDOG_USEC", "60000", 1);
    run_until_ready(&daemon, (const char *const[]){NULL});
    manager_hears("READY=1");
    for (int i = 0; i < 3; i++)
        manager_hears("WATCHDOG=1");
    kill(daemon.pid, SIGKILL);
    assert_int_equal(waitpid(daemon.pid, NULL, 0), daemon.pid);
    fclose(daemon.out);
    fclose(daemon.err);
}
