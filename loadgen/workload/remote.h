/* The service as seen by set-up and audit: blocking calls, one at a time. */
#ifndef REMOTE_H
#define REMOTE_H

#include "options.h"
#include "verdict.h"

enum { REMOTE_PATH_MAX = 400, REMOTE_MESSAGE_MAX = 512 };

/* From GET /v1/guards of all instances. */
struct remote_service {
    int instances; /* different ones behind the addresses */
    bool lanes;    /* at least one serves hot resources in batches */
    char default_guard[OPTIONS_GUARD_TEXT_MAX];
    json_t *guards; /* array; see remote_claims_safe() */
};

/* Each returns 0, or -1. Then message says what happened, to what, and what to do. */
int remote_describe(const struct options *options, struct remote_service *ret, char *message);
void remote_forget(struct remote_service *service);

/* Does this guard claim to lose nothing with this number of instances? -1: the service does not
 * know the guard. */
int remote_claims_safe(const struct remote_service *service, const char *guard, bool *ret,
                       char *message);

/* ret_version (may be NULL): its first version. */
int remote_put_item(const struct options *options, const char *id, const char *guard,
                    int64_t per_user_limit, int64_t *ret_version, char *message);
/* Sets the options->terms that only a service with --lab accepts. Does nothing if none is given. */
int remote_set_terms(const struct options *options, const char *resource, char *message);
int remote_put_account(const struct options *options, const char *id, const char *guard,
                       int64_t balance, int64_t *ret_version, char *message);
/* Does the service answer within a few seconds? Asked before an audit, which may take long. */
int remote_is_there(const struct options *options, char *message);
/* resource: "item:ID", "account:ID" */
int remote_audit(const struct options *options, const char *resource, struct audit_row *ret,
                 char *message);
/* All resources in one answer, and one of its rows. Free the answer with json_decref(). */
int remote_audit_all(const struct options *options, json_t **ret, char *message);
int remote_audit_row(const json_t *audit, const char *resource, struct audit_row *ret,
                     char *message);

/* GET path of the first instance. Free the JSON with json_decref(). */
int remote_get(const struct options *options, const char *path, json_t **ret, char *message);

/* One POST with its key, to the n-th instance. Returns the status, or -1 with a message in
 * *ret_body. The caller frees *ret_body either way. */
int remote_post(const struct options *options, uint64_t n, const char *path, const char *key,
                const char *body, char **ret_body);
/* For `loadgen serve`, whose service runs with --lab. Reports whether the connection to Redis is
 * cut, and asks whether the page wants it cut. Takes a second at most. */
int remote_keep_wire(const struct options *options, bool cut, bool *ret_wished);
/* The outcome of a key: 201 or 409 by the stored answer, another status of the service (404:
 * nothing happened), or -1. */
int remote_outcome(const struct options *options, uint64_t n, const char *key, char **ret_body);

#endif
