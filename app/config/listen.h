/* The address of --listen: parses it, tests for loopback, opens the listening socket. */
#ifndef LISTEN_H
#define LISTEN_H

#include <stdbool.h>
#include <stddef.h>

enum { LISTEN_HOST_MAX = 255, LISTEN_MESSAGE_MAX = 512 };

struct listen_address {
    char host[LISTEN_HOST_MAX + 1]; /* name or numeric address, without brackets */
    int port;                       /* 0: any free one */
};

/* Splits "host:port" or "[v6]:port". Returns 0, or -1 with a message. */
int listen_parse(const char *text, struct listen_address *ret, char *message, size_t size);

/* True if every address of the host is a loopback address. */
bool listen_is_loopback(const struct listen_address *address);

/* Binds and listens, non-blocking; *ret_port is the port in use. Returns the socket, or -1 with a
 * message. */
int listen_open(const struct listen_address *address, int *ret_port, char *message, size_t size);

#endif
