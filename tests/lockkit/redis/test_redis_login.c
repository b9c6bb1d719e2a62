/* The login of the environment is used in each topology where the endpoint has none. A server that
 * refuses it is named, with what to do, and without the password. */
#include "login.h"
#include "login_rig.h"
#include "redis.h"
#include "lockkit.h"
#include "tests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMMAND_MS = 2000, TOPOLOGIES = 4, NODES = 3, URL_MAX = NODES * (SANDBOX_TEXT_MAX + 1) };

struct topology {
    const char *guard, *variable;
    char url[URL_MAX];
    int port; /* of a server that a message may name; 0: of any */
};

static struct sandbox *sandbox;
static struct topology topologies[TOPOLOGIES];

static int open_servers(void **state)
{
    (void)state;
    struct sandbox_sentinel sentinel;
    struct sandbox_cluster cluster;
    if (sandbox_open(&sandbox) != 0)
        return -1;
    struct sandbox_server *node[NODES];
    for (int i = 0; i < NODES; i++)
        if ((node[i] = sandbox_redis(sandbox, NULL)) == NULL)
            return -1;
    if (sandbox_sentinel(sandbox, &sentinel) != 0 || sandbox_cluster(sandbox, false, &cluster) != 0)
        return -1;
    topologies[0] = (struct topology){"redis-token", LK_REDIS_LOGIN, "", node[0]->port};
    snprintf(topologies[0].url, URL_MAX, "%s", node[0]->url);
    topologies[1] = (struct topology){"redis-token", LK_SENTINEL_LOGIN, "", 0};
    snprintf(topologies[1].url, URL_MAX, "%s", sentinel.url);
    topologies[2] = (struct topology){"redis-token", LK_REDIS_LOGIN, "", 0};
    snprintf(topologies[2].url, URL_MAX, "%s", cluster.url);
    topologies[3] = (struct topology){"redlock", LK_REDIS_LOGIN, "", node[1]->port};
    snprintf(topologies[3].url, URL_MAX, "%s,%s,%s", node[0]->url, node[1]->url, node[2]->url);
    return 0;
}

static int close_servers(void **state)
{
    (void)state;
    sandbox_close(sandbox);
    return 0;
}

static int log_in_again(void **state)
{
    (void)state;
    return setenv(LK_REDIS_LOGIN, sandbox_password(), 1) == 0 &&
                   setenv(LK_SENTINEL_LOGIN, sandbox_password(), 1) == 0
               ? 0
               : -1;
}

static lk_status try_once(const struct topology *topology, char message[LK_MESSAGE_MAX])
{
    return login_try(topology->guard, topology->url, COMMAND_MS, message);
}

GROUP_FIXTURE(open_servers, close_servers);
TEST_FIXTURE(NULL, log_in_again);

TEST_THAT_WITH(the_environment_s_login_is_used, NULL, NULL)
{
    char message[LK_MESSAGE_MAX];
    for (size_t i = 0; i < TOPOLOGIES; i++)
        if (try_once(&topologies[i], message) != LK_OK)
            fail_msg("%s: %s", topologies[i].url, message);
}

TEST_THAT(without_a_login_it_is_said_where_to_give_it)
{
    char message[LK_MESSAGE_MAX];
    for (size_t i = 0; i < TOPOLOGIES; i++) {
        log_in_again(NULL);
        unsetenv(topologies[i].variable);
        if (try_once(&topologies[i], message) == LK_OK)
            fail_msg("%s was used without a login", topologies[i].url);
        login_says(message, "NOAUTH");
        login_says(message, topologies[i].variable);
    }
}

TEST_THAT(a_wrong_password_is_told_with_the_server_and_without_itself)
{
    char message[LK_MESSAGE_MAX], server[32];
    for (size_t i = 0; i < TOPOLOGIES; i++) {
        log_in_again(NULL);
        setenv(topologies[i].variable, LOGIN_WRONG, 1);
        assert_int_equal(try_once(&topologies[i], message), LK_UNAVAILABLE);
        snprintf(server, sizeof server, "at 127.0.0.1:%d", topologies[i].port);
        login_says(message, topologies[i].port != 0 ? server : "at 127.0.0.1:");
        login_says(message, "refuses AUTH: WRONGPASS");
        login_says(message, topologies[i].variable);
        assert_null(strstr(message, LOGIN_WRONG));
    }
}

TEST_THAT(a_wrong_form_is_refused_at_open)
{
    for (size_t i = 0; i < TOPOLOGIES; i++) {
        log_in_again(NULL);
        login_has_wrong_form(topologies[i].guard, topologies[i].url, topologies[i].variable,
                             LOGIN_WRONG ":", "\"user:password\" or \"password\"");
    }
}

TEST_THAT(the_endpoint_s_own_login_comes_first)
{
    char message[LK_MESSAGE_MAX];
    struct topology own = topologies[0];
    snprintf(own.url, sizeof own.url, "redis://default:%s@127.0.0.1:%d", sandbox_password(),
             own.port);
    setenv(LK_REDIS_LOGIN, LOGIN_WRONG, 1);
    assert_int_equal(try_once(&own, message), LK_OK);
}
