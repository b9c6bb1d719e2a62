/*
 * A lock server in memory for tests of lockkit's core, with a virtual clock (or the real one),
 * seeded random numbers and scripted faults. Only sleeping moves the virtual clock.
 *
 * Like redis-token, the server keeps for each key a token, its lease and a fence that rises with
 * each grant. A provider is a const struct: to weaken one, a test copies fake_provider and changes
 * a member.
 */
#ifndef LK_FAKE_H
#define LK_FAKE_H

#include "client.h"

enum { FAKE_KEYS_MAX = 16, FAKE_LATE_MAX = 64, FAKE_SLEEPS_MAX = 4096 };

enum fake_call { FAKE_TRY, FAKE_RENEW, FAKE_RELEASE, FAKE_WAIT, FAKE_WAIT_END, FAKE_CALLS };

enum fake_fault {
    FAKE_NONE,
    FAKE_AWAY,         /* certainly not sent: LK_UNAVAILABLE at once */
    FAKE_REQUEST_LOST, /* LK_UNKNOWN after timeout_us, nothing done */
    FAKE_REQUEST_LATE, /* LK_UNKNOWN after timeout_us, a try takes effect late_us after that */
    FAKE_REPLY_LOST,   /* LK_UNKNOWN after timeout_us, done */
    FAKE_GARBAGE,      /* LK_PROTOCOL, done */
    FAKE_FAULTS
};

struct fake_lock {
    char key[LK_KEY_MAX + 1], token[LK_TOKEN_MAX + 1]; /* token "": free */
    uint64_t fence;
    int64_t until_us; /* the lease's end; INT64_MAX: none */
};

struct fake_late {
    int64_t at_us;
    char key[LK_KEY_MAX + 1], token[LK_TOKEN_MAX + 1];
    int64_t lease_ms;
};

struct fake {
    lk_env env; /* ctx is this struct */
    bool real_time;
    int64_t now_us;
    uint64_t random_state;
    void (*sleep_us)(struct fake *fake, int64_t us); /* NULL: the clock moves, or real sleep */

    int64_t latency_us; /* of a command: half before its effect, half after */
    int64_t timeout_us; /* how long a lost command takes */
    int64_t late_us;
    int64_t look_us; /* how often a blocked wait() polls */
    /* Returns the fault of call n, counted from 0 over all kinds. NULL: no faults. */
    enum fake_fault (*fault)(struct fake *fake, enum fake_call call, uint64_t n);
    void *test; /* the test's own */

    int64_t session_ms;        /* timeout of fake_session_provider's sessions */
    _Atomic uint64_t session;  /* the current one */
    const lk_context *context; /* of the client opened last */

    pthread_mutex_t lock; /* of all that follows */
    struct fake_lock locks[FAKE_KEYS_MAX];
    struct fake_late late[FAKE_LATE_MAX];
    size_t n_late;
    uint64_t n_calls, calls[FAKE_CALLS];
    int64_t sleeps_us[FAKE_SLEEPS_MAX]; /* arguments of env->sleep_us */
    size_t n_sleeps;
    bool tell_expiry; /* a refused try returns the end of the lease */
    int64_t last_renew_us;
};

extern const lk_provider fake_provider;         /* polls */
extern const lk_provider fake_each_provider;    /* has lk_try_each(): one call per key, in turn */
extern const lk_provider fake_waiting_provider; /* subscribes at its first wait() */
extern const lk_provider fake_session_provider; /* its holds end with fake->session */

void fake_init(struct fake *fake, uint64_t seed);
/* Asserts success. options may be NULL; env is set. Virtual time: no watchdog thread. */
lk_client *fake_open(struct fake *fake, const lk_provider *provider, const lk_options *options);

/* Virtual time: does the work of the client's watchdog up to this time, and moves the clock there.
 */
void fake_run_watchdog(struct fake *fake, lk_client *client, int64_t until_us);

int64_t fake_now_us(struct fake *fake);
void fake_sleep_us(struct fake *fake, int64_t us);
uint64_t fake_random(struct fake *fake);
/* Another client takes the key; lease_ms 0: until fake_free(). */
void fake_take(struct fake *fake, const char *key, const char *token, int64_t lease_ms);
void fake_free(struct fake *fake, const char *key);
/* Ends the session and tells the client: its holds are lost. The server keeps their locks. */
void fake_end_session(struct fake *fake);
/* True if the server holds this token for the key now; token NULL: any. */
bool fake_held(struct fake *fake, const char *key, const char *token);

/* A client of the fake server, and room for a hold. */
struct fake_fixture {
    struct fake fake;
    lk_client *client;
    lk_hold hold;
};
void fake_fixture_open(struct fake_fixture *f, const lk_provider *provider,
                       const lk_options *options);

#endif
