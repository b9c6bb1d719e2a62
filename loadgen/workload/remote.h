/* The service as its set-up and audit see it: blocking calls, one at a time. */
#ifndef REMOTE_H
#define REMOTE_H

#include "options.h"
#include "verdict.h"

enum { REMOTE_PATH_MAX = 400, REMOTE_MESSAGE_MAX = 512 };

/* From GET /v1/guards of all instances. */
struct remote_service {
    int instances; /* different ones behind the addresses */
    bool lanes;    /* any of them serves hot resources in batches */
    char default_guard[OPTIONS_GUARD_TEXT_MAX];
    json_t *guards; /* array; see remote_claims_safe() */
};

/* Each returns 0, or -1 with what happened, to what, and what to do in message. */
int remote_describe(const struct options *options, struct remote_service *ret, char *message);
void remote_forget(struct remote_service *service);

/* Does this guard, as built into the service, claim that nothing is ever lost with so many
 * instances? -1 for a guard that the service does not know. */
int remote_claims_safe(const struct remote_service *service, const char *guard, bool *ret,
                       char *message);

/* ret_version (may be NULL): with which it begins. */
int remote_put_item(const struct options *options, const char *id, const char *guard,
                    int64_t per_user_limit, int64_t *ret_version, char *message);
/* Of options->terms what only a service with --lab takes; nothing when none of it was asked for. */
int remote_set_terms(const struct options *options, const char *resource, char *message);
int remote_put_account(const struct options *options, const char *id, const char *guard,
                       int64_t balance, int64_t *ret_version, char *message);
/* Does the service answer within a few seconds? Asked before an audit, which may take long. */
int remote_is_there(const struct options *options, char *message);
/* resource: "item:ID", "account:ID" */
int remote_audit(const struct options *options, const char *resource, struct audit_row *ret,
                 char *message);
/* All resources in one answer, to be freed with json_decref(), and one of its rows. */
int remote_audit_all(const struct options *options, json_t **ret, char *message);
int remote_audit_row(const json_t *audit, const char *resource, struct audit_row *ret,
                     char *message);

/* GET path of the first instance: its JSON, to be freed with json_decref(). */
int remote_get(const struct options *options, const char *path, json_t **ret, char *message);

/* One POST with its key, to the n-th instance. Returns the status, or -1 with what went wrong in
 * *ret_body's place; to be freed either way. */
int remote_post(const struct options *options, uint64_t n, const char *path, const char *key,
                const char *body, char **ret_body);
/* For `loadgen serve`, whose service runs with --lab: tells it whether the connection to Redis is
 * cut, and asks whether the page wants it cut. Within a second. */
int remote_keep_wire(const struct options *options, bool cut, bool *ret_wished);
/* What became of a key: the stored status and answer, 404 when nothing happened, or -1. */
int remote_outcome(const struct options *options, uint64_t n, const char *key, char **ret_body);

#endif
