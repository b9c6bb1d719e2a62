/*
 * What Redis can do: lock and unlock with nothing around it. SET NX PX and a compare-and-delete
 * script, commands formatted once, every connection with a key of its own; with a depth of 1 each
 * command waits for its answer, with more so many pairs are written in one go.
 *
 *     bare_redis PORT CONNECTIONS DEPTH RUN_MS     prints {"pairs_per_s": N}
 */
#include "connect_redis.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { CONNECTIONS_MAX = 256, DEPTH_MAX = 256 };

struct caller {
    redisContext *redis;
    char *set, *release; /* as they go over the wire */
    size_t set_length, release_length;
};

_Noreturn static void die(const char *what)
{
    fprintf(stderr, "bare_redis: %s\n", what);
    exit(1);
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void open_caller(struct caller *caller, int port, int number)
{
    char *text;
    caller->redis = connect_redis(port);
    if (caller->redis == NULL)
        die("no Redis there");
    redisReply *sha = redisCommand(caller->redis, "SCRIPT LOAD %s",
                                   "if redis.call('get',KEYS[1])==ARGV[1] then return "
                                   "redis.call('del',KEYS[1]) else return 0 end");
    if (sha == NULL || sha->type != REDIS_REPLY_STRING)
        die("Redis takes no script");
    caller->set_length =
        (size_t)redisFormatCommand(&text, "SET lock:bare:%d token NX PX 30000", number);
    caller->set = text;
    caller->release_length =
        (size_t)redisFormatCommand(&text, "EVALSHA %s 1 lock:bare:%d token", sha->str, number);
    caller->release = text;
    freeReplyObject(sha);
}

static void close_caller(struct caller *caller)
{
    redisFreeCommand(caller->set);
    redisFreeCommand(caller->release);
    redisFree(caller->redis);
}

static void take_answer(struct caller *caller)
{
    redisReply *reply;
    if (redisGetReply(caller->redis, (void **)&reply) != REDIS_OK)
        die(caller->redis->errstr);
    bool granted = reply->type == REDIS_REPLY_STATUS;
    bool freed = reply->type == REDIS_REPLY_INTEGER && reply->integer == 1;
    if (!granted && !freed)
        die("a lock was refused or not ours");
    freeReplyObject(reply);
}

static void pair(struct caller *caller)
{
    redisAppendFormattedCommand(caller->redis, caller->set, caller->set_length);
    take_answer(caller);
    redisAppendFormattedCommand(caller->redis, caller->release, caller->release_length);
    take_answer(caller);
}

static void send_pairs(struct caller *caller, int depth)
{
    int done = 0;
    for (int i = 0; i < depth; i++) {
        redisAppendFormattedCommand(caller->redis, caller->set, caller->set_length);
        redisAppendFormattedCommand(caller->redis, caller->release, caller->release_length);
    }
    while (!done)
        if (redisBufferWrite(caller->redis, &done) != REDIS_OK)
            die(caller->redis->errstr);
}

int main(int argc, char **argv)
{
    struct caller callers[CONNECTIONS_MAX];
    int n = argc == 5 ? atoi(argv[2]) : 0, depth = argc == 5 ? atoi(argv[3]) : 0;
    if (n < 1 || n > CONNECTIONS_MAX || depth < 1 || depth > DEPTH_MAX)
        die("usage: bare_redis PORT CONNECTIONS DEPTH RUN_MS");
    for (int i = 0; i < n; i++)
        open_caller(&callers[i], atoi(argv[1]), i);
    long pairs = 0;
    double start_s = now_s(), end_s = start_s + atof(argv[4]) / 1e3;
    for (; now_s() < end_s; pairs += (long)n * depth) {
        for (int i = 0; i < n && depth > 1; i++)
            send_pairs(&callers[i], depth);
        for (int i = 0; i < n; i++)
            if (depth == 1)
                pair(&callers[i]);
            else
                for (int answer = 0; answer < 2 * depth; answer++)
                    take_answer(&callers[i]);
    }
    printf("{\"pairs_per_s\": %.1f}\n", (double)pairs / (now_s() - start_s));
    for (int i = 0; i < n; i++)
        close_caller(&callers[i]);
    return 0;
}
