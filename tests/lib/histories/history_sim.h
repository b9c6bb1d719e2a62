/*
 * Generates histories of a correct service from a seed. Requests overlap at random; each takes
 * effect at one instant between its invocation and its answer. Histories contain lost answers,
 * unknown outcomes, repeated keys, reads, refusals and cancellations. sim_spoil() plants one
 * mistake that no order of the requests can explain.
 */
#ifndef TEST_HISTORY_SIM_H
#define TEST_HISTORY_SIM_H

#include <stdbool.h>
#include <stdint.h>

enum { SIM_OPS_MAX = 400, SIM_TEXT_MAX = 120 * SIM_OPS_MAX };

enum sim_kind { SIM_BUY, SIM_ADD, SIM_MOVE, SIM_READ, SIM_CANCEL };
/* How it ended for its client. */
enum sim_end { SIM_ANSWERED, SIM_LOST, SIM_UNSENT, SIM_CUT /* the file ends without it */ };

struct sim_op {
    enum sim_kind kind;
    enum sim_end end;
    int number;   /* makes its key: a duplicate has the number of the first */
    int resource; /* item: 0 and 1; accounts: 2, 3 and 4 */
    int other;    /* MOVE: the payee; CANCEL: index of the order */
    int user;
    int64_t amount; /* ADD: as signed; BUY, MOVE: positive */
    int64_t asked, effect, answered;
    bool happened; /* took effect or was refused; false: the request did not arrive */
    const char *refused;
    int64_t before, after, version, other_version, fence;
};

struct sim_options {
    int n;         /* operations */
    int clients;   /* how many requests can overlap */
    int lost_pct;  /* percentage of requests whose outcome the client does not learn */
    bool versions; /* answers contain versions */
};

struct sim {
    struct sim_options options;
    uint64_t seed;
    struct sim_op ops[SIM_OPS_MAX];
    int n;
    int64_t values[5], initial[5], versions[5];
};

void sim_run(struct sim *sim, uint64_t seed, const struct sim_options *options);
/* The history in the format of history_text.h, and the answer of GET /v1/audit at its end. Static,
 * until the next call. */
const char *sim_text(const struct sim *sim);
const char *sim_audit(const struct sim *sim);

/* Plants one mistake and returns its name. NULL: the chosen mistake does not fit this history. The
 * history must have versions and no losses. */
const char *sim_spoil(struct sim *sim, uint64_t dice);

#endif
