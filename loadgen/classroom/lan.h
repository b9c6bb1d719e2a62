/* The address at which a class finds this machine. */
#ifndef LAN_H
#define LAN_H

#include <stdbool.h>

enum { LAN_HOST_MAX = 256, LAN_MESSAGE_MAX = 400, LAN_DEFAULT_PORT = 8090 };

/* A host and a port, as a URL and a Host header have them: "192.0.2.2:8090", "[fd00::2]:8090". */
struct lan_address {
    char host[LAN_HOST_MAX]; /* without brackets */
    int port;                /* 0: any free one */
};

/* given: HOST:PORT, HOST, [V6]:PORT, or NULL for the first address of this machine that other
 * machines reach, IPv4 before IPv6, at LAN_DEFAULT_PORT. 0, or -1 with message. */
int lan_choose(const char *given, struct lan_address *ret, char message[LAN_MESSAGE_MAX]);
/* A listening socket of this address alone, not blocking; address->port becomes the port that it
 * has. -1 with message. */
int lan_listen(struct lan_address *address, char message[LAN_MESSAGE_MAX]);
/* "HOST:PORT", with brackets around IPv6. short_form: without the port 80. */
void lan_text(const struct lan_address *address, bool short_form, char *ret, int size);

#endif
