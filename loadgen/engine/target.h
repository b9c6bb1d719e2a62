/* Where a target's server listens, as the socket calls want it. Parsing: load_target_parse(). */
#ifndef TARGET_H
#define TARGET_H

#include "load.h"

#include <sys/socket.h>

struct target_address {
    struct sockaddr_storage storage;
    socklen_t length;
};

/* target comes from load_target_parse(). Where its address can no longer be used, target_socket()
 * fails. */
void target_address(const struct load_target *target, struct target_address *ret);
/* A non-blocking TCP or unix socket for it, or -1 with errno. */
int target_socket(const struct target_address *address);

#endif
