/*
 * Redis servers in memory that are asked in bytes, over sim_net.h. They know the commands that
 * lockkit sends, and no others; scripts run in Lua 5.1, as in Redis. Each has a clock of its own.
 *
 * What answers is made after Redis 7. SCRIPT LOAD makes up a digest that is not SHA-1: lockkit only
 * gives it back.
 */
#ifndef SIM_REDIS_H
#define SIM_REDIS_H

#include "sim_net.h"
#include "sim_redis_data.h"

enum { SIM_REDIS_NODES_MAX = 6, SIM_REDIS_WORDS_MAX = 32 };

enum sim_redis_kind {
    SIM_REDIS_NONE,
    SIM_REDIS_ONE,
    SIM_REDIS_SENTINEL,
    SIM_REDIS_FIVE,
    SIM_REDIS_CLUSTER /* sim_redis_cluster.h */
};

struct sim_redis {
    struct sim_host host;
    int number;
    char name[8];
    int64_t ahead_us, usual_ahead_us; /* its clock */
    struct sim_redis_data data;
    struct sim_redis *replica; /* gets what it writes, a little later; NULL: none */
    bool is_replica;
    int64_t copy_us; /* when the replica gets it; 0: it has all */
};

void sim_redis_begin(void);
/* The servers of this kind. Called within sim_run(). */
void sim_redis_start(enum sim_redis_kind kind);
/* For --redis. */
const char *sim_redis_endpoint(enum sim_redis_kind kind);

size_t sim_redis_count(void); /* of nodes, Sentinels not counted */
struct sim_redis *sim_redis_node(size_t i);
int64_t sim_redis_now_us(const struct sim_redis *redis);

/* -- faults ----------------------------------------------------------------------------------- */

/* Its connections break; it forgets all but keeps its address. */
void sim_redis_kill(struct sim_redis *redis);
void sim_redis_restart(struct sim_redis *redis);
void sim_redis_reach(struct sim_redis *redis); /* it is unreachable no more */
/* DEL of all keys whose name contains this. Returns how many. */
size_t sim_redis_delete(struct sim_redis *redis, const char *part);
/* DEL of all strings that never end. */
size_t sim_redis_delete_endless(struct sim_redis *redis);

/* That the first Sentinel names; else the first node. */
struct sim_redis *sim_redis_master(void);
/* next takes writes, and gets none of its former master any more. */
void sim_redis_promote(struct sim_redis *next, struct sim_redis *former);
void sim_redis_tell_sentinels(const struct sim_redis *master); /* one after the other */
/* former is next's replica, and has its state. */
void sim_redis_demote(struct sim_redis *former, struct sim_redis *next, bool hangs_up);

/* -- for its own files ------------------------------------------------------------------------ */

void sim_redis_on_bytes(struct sim_host *host, struct sim_wire *wire);
void sim_redis_on_end(struct sim_host *host, struct sim_wire *wire);
/* Answers WAIT where its time is over, or everywhere: the replica has all. */
void sim_redis_end_waits(struct sim_redis *redis, bool copied);
/* Returns what follows the command, or NULL: it has not arrived as a whole. */
char *sim_redis_parse(char *from, const char *end, int *ret_n, char **words);
/* Runs one command. Appends its answer, in RESP, to ret. */
void sim_redis_run(struct sim_redis *redis, int n, char **words, struct sim_bytes *ret);
void sim_redis_script(struct sim_redis *redis, int n, char **words, struct sim_bytes *ret);
void sim_redis_forget_scripts(const struct sim_redis *redis);
/* Returns how many listen. */
int sim_redis_publish(struct sim_redis *redis, const char *channel, const char *message);
/* It has written: the replica will get it. */
void sim_redis_wrote(struct sim_redis *redis);

void sim_resp_integer(struct sim_bytes *ret, long long value);
void sim_resp_text(struct sim_bytes *ret, const char *text); /* NULL: nil */
void sim_resp_status(struct sim_bytes *ret, const char *text);
void sim_resp_error(struct sim_bytes *ret, const char *text);
void sim_resp_array(struct sim_bytes *ret, size_t n);

#endif
