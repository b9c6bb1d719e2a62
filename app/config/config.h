/* seckilld's settings: flag, then environment SECKILL_*, then file, then default. */
#ifndef CONFIG_H
#define CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CONFIG_TEXT_MAX = 512 };

struct config {
    char listen[CONFIG_TEXT_MAX];     /* host:port; port 0: any free one */
    char allow_host[CONFIG_TEXT_MAX]; /* further names in Host, comma-separated */
    char db[CONFIG_TEXT_MAX];         /* sqlite:FILE or postgres://... */
    bool db_shared;              /* --db-shared: SQLite file used by several instances (lessons) */
    bool sync_normal;            /* --sync full|normal */
    char guard[32];              /* default guard of items and accounts */
    char redis[CONFIG_TEXT_MAX]; /* URL[,URL...]: the first for redis-*, all for redlock */
    int64_t redis_replicas;      /* of redis-*: lk_options.replicas */
    char zookeeper[CONFIG_TEXT_MAX];
    char memcached[CONFIG_TEXT_MAX];
    char lock_db[CONFIG_TEXT_MAX]; /* like db; "": beside the store, see guard.c */
    int64_t lease_ms, wait_ms;
    bool watchdog, fence, lanes;
    bool lock_queue;     /* lk_options.local_queue; off with lab: there each request polls */
    bool fence_database; /* --fence-source lock|database: the store gives the fence of a lock */
    int64_t batch;       /* operations per batch of a lane at most */
    int64_t lane_turns;  /* batches of a lane, one after the other, under one lock at most */
    int64_t workers;     /* threads that run operations */
    int64_t queue_max;   /* operations waiting at most; beyond: 503 overloaded */
    int64_t connections; /* open connections at most */
    int64_t connections_per_address; /* 0: 1000, and any number from loopback */
    char instance[33];               /* name of this instance in ledger rows and answers */
    bool lab, demo;                  /* only on loopback addresses */
    char
        demo_peers[CONFIG_TEXT_MAX]; /* --demo-peers: URL[,URL...] of further instances; "": none */
    char lab_slip[32];               /* --lab-slip: this mistake is made on purpose; "": none */
    int64_t max_hold_ms;             /* the watchdog renews no longer than this; 0: ten leases */
    int64_t lab_clock_ms;            /* --lab-clock-ms: the locks' wall clock is ahead by this */
    char tokens[CONFIG_TEXT_MAX];    /* file of tokens, see tokens.h; "": none */
    char operator_token_sha256[65];  /* "": none */
    bool open;                       /* without a token everything is answered; loopback only */
    int64_t drain_delay_ms;          /* after the signal: not ready, and serving as before */
    int64_t key_retention_s;         /* age at which stored answers are pruned; 0: never */
    int64_t refusals_max;            /* of those answers, refusals that are kept at most */
    int64_t close_orders_ms;         /* period of the scheduled task that closes unpaid orders */
};

/* Fills *ret from defaults, --config file, environment and flags. Prints usage errors to stderr.
 * Returns -1 to go on, else the exit status (0 after --help, --print-config, --check; 2 on a usage
 * error). shows_lab: --help lists the flags of the lab. */
int config_load(int argc, char **argv, bool shows_lab, struct config *ret);

/* config_check.c: checks that the kind of store, the guard and the slip exist. 0, or -1 after
 * printing to stderr which does not. */
int config_check_names(const struct config *config);
/* config_check.c: loads the tokens of a service. config is borrowed until tokens_close(). NULL
 * after printing to stderr why not. */
struct tokens *config_tokens(const struct config *config);
/* config_check.c: checks that a service could start: the tokens, the store's folder, the default
 * guard and its endpoints. No server is asked. 0, or -1 after printing to stderr why not. */
int config_check(const struct config *config);
/* config_mask.c: copies a setting with the passwords of its URLs as "***", cut to size. */
void config_mask(const char *value, char *ret, size_t size);

#endif
