/* A stub of the service, for tests of the HTTP side alone. It defines every function of
 * app/service/service.h. */
#ifndef STUB_SERVICE_H
#define STUB_SERVICE_H

#include "service.h"

#include <stdbool.h>

/* How operations are treated from now on. Any thread. */
enum stub_mode {
    STUB_ANSWER, /* at once, from the stub's thread */
    STUB_HOLD,   /* kept until stub_release(), as if threads ran them */
    STUB_QUEUE,  /* the same, as if they waited: service_withdraw() ends those that are abandoned */
    STUB_REFUSE  /* service_submit() refuses it as overloaded */
};
void stub_mode(struct service *service, enum stub_mode mode);

/* Answers the operations that are held. */
void stub_release(struct service *service);

/* Operations submitted so far, and held now. */
long stub_submitted(struct service *service);
long stub_held(struct service *service);
/* Held operations that service_withdraw() ended so far. */
long stub_withdrawn(struct service *service);

/* The last operation's question. */
void stub_last(struct service *service, struct op *ret);

/*
 * POSTs are answered 201, other requests 200, with {"order_id":"o1","id","other","amount",
 * "request"}. Exceptions:
 *
 * - a key "replay..." is marked as a replay
 *
 * - a user "sold-out" gets that problem
 *
 * - OP_GUARDS gets a body of STUB_LONG_BYTES
 */
enum { STUB_LONG_BYTES = 300000 };

#endif
