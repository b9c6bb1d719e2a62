/* The commands that the museum shows beside a point are those that Redis is sent there. */
#include "lockkit.h"
#include "sandbox.h"
#include "web_files.h"
#include "redis.h"
#include "tests.h"

#include <hiredis/hiredis.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static struct sandbox *sandbox;
static struct sandbox_server *server;
static redisContext *redis;

static int open_redis(void **state)
{
    (void)state;
    if (sandbox_open(&sandbox) != 0 || (server = sandbox_redis(sandbox, NULL)) == NULL)
        return -1;
    redis = redis_connect(server->port);
    return redis != NULL && redis->err == 0 ? 0 : -1;
}

static int close_redis(void **state)
{
    (void)state;
    redisFree(redis);
    sandbox_close(sandbox);
    return 0;
}

static void forget_commands(void)
{
    redisReply *reply = redisCommand(redis, "CONFIG RESETSTAT");
    assert_non_null(reply);
    freeReplyObject(reply);
}

/* Has Redis done this command since then, in a script or not? */
static bool was_done(const char *verb)
{
    char name[64];
    redisReply *reply = redisCommand(redis, "INFO commandstats");
    assert_non_null(reply);
    snprintf(name, sizeof name, "cmdstat_%s:", verb);
    const bool done = strcasestr(reply->str, name) != NULL;
    freeReplyObject(reply);
    return done;
}

/* The commands are between ';' and line ends; what follows "->" or "--" is said of them, and a line
 * of C or Java is none. "<or>" separates alternatives: one of them is enough. Returns how many. */
static int assert_done(const char *guard, const char *text)
{
    char line[512];
    int n = 0;
    for (; *text != '\0'; text += text[0] == '\n') {
        const size_t length = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)length, text);
        text += length;
        for (const char *const *mark = (const char *const[]){"->", "--", NULL}; *mark; mark++)
            if (strstr(line, *mark) != NULL)
                *strstr(line, *mark) = '\0';
        if (strncmp(line, "C:", 2) == 0 || strncmp(line, "Java", 4) == 0)
            continue;
        bool alternative = strstr(line, ", <or> ") != NULL, any = false;
        char *rest = line, *command;
        while ((command = strsep(&rest, ";,")) != NULL) {
            char verb[32];
            if (sscanf(command, " <or> %31[A-Z]", verb) != 1 &&
                sscanf(command, " %31[A-Z]", verb) != 1)
                continue;
            const bool done = was_done(verb);
            any |= done;
            if (!done && !alternative)
                fail_msg("%s does not send %s", guard, verb);
            n++;
        }
        assert_true(any);
    }
    return n;
}

static int assert_guard(const char *guard, const json_t *points)
{
    lk_client *locks;
    lk_error error;
    lk_hold hold;
    const lk_request request = {.key = "lock:account:1", .wait_ms = 1000};
    int n = 0;
    if (lk_open(guard, server->url, NULL, &locks, &error) != LK_OK)
        fail_msg("%s: %s", guard, error.message);
    forget_commands();
    assert_int_equal(lk_acquire(locks, &request, &hold), LK_OK);
    n += assert_done(guard, json_string_value(json_object_get(points, "lock.acquired")));
    forget_commands();
    assert_int_equal(lk_release(&hold), LK_OK);
    n += assert_done(guard, json_string_value(json_object_get(points, "lock.released")));
    lk_close(locks);
    return n;
}

GROUP_FIXTURE(open_redis, close_redis);

TEST_THAT(each_lock_of_redis_sends_what_is_shown)
{
    json_t *all = json_loads(web_find("commands.json"), JSON_REJECT_DUPLICATES, NULL), *points;
    const char *guard;
    int n = 0;
    json_object_foreach(json_object_get(all, "guards"), guard, points)
    {
        if (strncmp(guard, "redis-", 6) == 0)
            n += assert_guard(guard, points);
    }
    json_decref(all);
    assert_true(n >= 14);
}
