/* The sandbox's ZooKeeper: alone and as three, of which one leads and may be killed. */
#include "sandbox.h"
#include "process.h"
#include "tests.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#define THREADED /* the synchronous functions */
#include <zookeeper/zookeeper.h>

enum { WITHIN_MS = 30000, SESSION_MS = 4000 };

static void on_event(zhandle_t *handle, int type, int state, const char *path, void *context)
{
    (void)handle;
    (void)type;
    (void)state;
    (void)path;
    (void)context;
}

struct question {
    const char *url, *path;
    bool create;
    int answer;
};

/* One short session; true once the server has answered. */
static bool is_answered(void *arg)
{
    struct question *question = arg;
    zhandle_t *handle =
        zookeeper_init(question->url, on_event, SESSION_MS, NULL, NULL, ZOO_NO_LOG_CLIENTENV);
    assert_non_null(handle);
    const char *login = getenv("LOCKKIT_ZOOKEEPER_AUTH");
    assert_non_null(login);
    zoo_add_auth(handle, "digest", login, (int)strlen(login), NULL, NULL);
    question->answer = question->create ? zoo_create(handle, question->path, "", 0,
                                                     &ZOO_OPEN_ACL_UNSAFE, ZOO_PERSISTENT, NULL, 0)
                                        : zoo_exists(handle, question->path, 0, NULL);
    zookeeper_close(handle);
    return question->answer != ZCONNECTIONLOSS && question->answer != ZOPERATIONTIMEOUT;
}

static int ask(const char *url, const char *path, bool create)
{
    struct question question = {.url = url, .path = path, .create = create};
    assert_true(wait_until(is_answered, &question, WITHIN_MS));
    return question.answer;
}

/* One session without a login, then with a wrong one; true once the server has answered. */
static bool is_answered_as_strangers(void *arg)
{
    struct question *question = arg;
    static const char wrong[] = "sandbox:hunter2";
    static const char *const paths[] = {"/theirs", "/zookeeper/theirs", "/zookeeper/quota/theirs"};
    enum { PATHS = sizeof paths / sizeof paths[0] };
    zhandle_t *handle =
        zookeeper_init(question->url, on_event, SESSION_MS, NULL, NULL, ZOO_NO_LOG_CLIENTENV);
    assert_non_null(handle);
    question->answer = ZNOAUTH;
    for (int i = 0; i < 2 * PATHS && question->answer == ZNOAUTH; i++) {
        if (i == PATHS)
            zoo_add_auth(handle, "digest", wrong, (int)strlen(wrong), NULL, NULL);
        question->answer = zoo_create(handle, paths[i % PATHS], "", 0, &ZOO_OPEN_ACL_UNSAFE,
                                      ZOO_PERSISTENT, NULL, 0);
    }
    zookeeper_close(handle);
    return question->answer != ZCONNECTIONLOSS && question->answer != ZOPERATIONTIMEOUT;
}

static void expect_strangers_are_refused(const char *url)
{
    struct question question = {.url = url};
    assert_true(wait_until(is_answered_as_strangers, &question, WITHIN_MS));
    assert_int_equal(question.answer, ZNOAUTH);
}

TEST_THAT(a_node_survives_a_killed_server)
{
    struct sandbox *sandbox;
    struct sandbox_zookeeper alone;
    assert_int_equal(sandbox_open(&sandbox), 0);
    assert_int_equal(sandbox_zookeeper(sandbox, 1, &alone), 0);
    assert_string_equal(alone.url, alone.server[0]->url);
    assert_int_equal(sandbox_zookeeper_leader(&alone), 0);
    expect_strangers_are_refused(alone.url);
    assert_int_equal(ask(alone.url, "/kept", true), ZOK);
    assert_true(WIFSIGNALED(sandbox_signal(alone.server[0], SIGKILL)));
    assert_int_equal(sandbox_zookeeper_leader(&alone), -1);
    assert_int_equal(sandbox_restart(alone.server[0]), 0);
    assert_int_equal(sandbox_zookeeper_agree(&alone), 0);
    assert_int_equal(ask(alone.url, "/kept", false), ZOK);
    assert_int_equal(ask(alone.url, "/never", false), ZNONODE);
    expect_strangers_are_refused(alone.url);
    struct process server = process_of(alone.server[0]->pid);
    sandbox_close(sandbox);
    assert_true(process_gone(server));
}

struct succession {
    struct sandbox_zookeeper *set;
    int was;
};

static bool another_leads(void *arg)
{
    struct succession *succession = arg;
    int leader = sandbox_zookeeper_leader(succession->set);
    return leader >= 0 && leader != succession->was;
}

TEST_THAT(of_three_another_leads_when_the_leader_is_killed)
{
    struct sandbox *sandbox;
    struct sandbox_zookeeper set;
    assert_int_equal(sandbox_open(&sandbox), 0);
    assert_int_equal(sandbox_zookeeper(sandbox, 3, &set), 0);
    struct succession succession = {.set = &set, .was = sandbox_zookeeper_leader(&set)};
    assert_in_range(succession.was, 0, 2);
    for (int i = 0; i < set.n; i++)
        expect_strangers_are_refused(set.server[i]->url);
    assert_int_equal(ask(set.url, "/kept", true), ZOK);
    assert_true(WIFSIGNALED(sandbox_signal(set.server[succession.was], SIGKILL)));
    assert_true(wait_until(another_leads, &succession, WITHIN_MS));
    assert_int_equal(ask(set.url, "/kept", false), ZOK);
    assert_int_equal(sandbox_restart(set.server[succession.was]), 0);
    assert_int_equal(sandbox_zookeeper_agree(&set), 0);
    sandbox_close(sandbox);
}

int main(void)
{
    zoo_set_debug_level((ZooLogLevel)0);
    return tests_run();
}
