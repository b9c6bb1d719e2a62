/* A service that answers by itself, in place of the real one: for tests of the HTTP side alone.
 * Defines every function of app/service/service.h but op_problem(). */
#ifndef STUB_SERVICE_H
#define STUB_SERVICE_H

#include "service.h"

#include <stdbool.h>

/* How operations are treated from now on. Any thread. */
enum stub_mode {
    STUB_ANSWER, /* at once, from the stub's thread */
    STUB_HOLD,   /* kept until stub_release() */
    STUB_REFUSE  /* service_submit() says overloaded */
};
void stub_mode(struct service *service, enum stub_mode mode);

/* Answers what is held. */
void stub_release(struct service *service);

/* Operations submitted so far, and held now. */
long stub_submitted(struct service *service);
long stub_held(struct service *service);

/* The last operation's question. */
void stub_last(struct service *service, struct op *ret);

/*
 * The answers: order 201 with order_id "o1"; other POSTs 201, the rest 200, all with
 * {"id","other","amount","key","request"}. A key "replay..." is marked as a replay, a user
 * "sold-out" gets that problem, OP_GUARDS a long body of STUB_LONG_BYTES.
 */
enum { STUB_LONG_BYTES = 300000 };

#endif
