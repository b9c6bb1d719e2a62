/* A TCP proxy in front of a loopback server that loses answers on demand. */
#ifndef TEST_PROXY_H
#define TEST_PROXY_H

#include <stdbool.h>

struct proxy;

/* Listens on a free loopback port, in a thread of its own. NULL on failure. */
struct proxy *proxy_open(int server_port);
void proxy_close(struct proxy *proxy);
int proxy_port(const struct proxy *proxy);

/* From now on, the server's answer to the nth piece (1: the next) that a client sends containing
 * text is swallowed whole: what was asked is done, nobody learns of it. Then the connection is cut,
 * or kept in silence. nth 0: no more of this. */
enum proxy_then { PROXY_CUT, PROXY_SILENCE };
void proxy_lose_answer(struct proxy *proxy, const char *text, int nth, enum proxy_then then);
/* Connections that have lost an answer so. */
int proxy_lost(struct proxy *proxy);

/* Swallows all that the server says on connections that have sent text (its pushed messages), until
 * told otherwise; the connections stay. */
void proxy_mute(struct proxy *proxy, const char *text, bool on);
/* Pieces swallowed so. */
int proxy_muted(struct proxy *proxy);

/* Cuts every connection. */
void proxy_cut(struct proxy *proxy);

#endif
