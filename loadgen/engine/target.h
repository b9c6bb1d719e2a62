/* The socket address of a target's server. Parsing: load_target_parse(). */
#ifndef TARGET_H
#define TARGET_H

#include "load.h"

#include <sys/socket.h>

struct target_address {
    struct sockaddr_storage storage;
    socklen_t length;
};

/* target comes from load_target_parse(). If its address cannot be used any more, target_socket()
 * fails. */
void target_address(const struct load_target *target, struct target_address *ret);
/* A non-blocking TCP or unix socket for it, or -1 with errno. */
int target_socket(const struct target_address *address);

#endif
