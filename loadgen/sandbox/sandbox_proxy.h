/*
 * A TCP proxy in front of a loopback server, for faults on the way: it loses, holds, delays or
 * swallows what passes. A "piece" is what one read of the socket gives; clients that write a
 * command at a time and wait for its answer send one command in a piece.
 * Threading: one thread uses a proxy at a time.
 */
#ifndef SANDBOX_PROXY_H
#define SANDBOX_PROXY_H

#include <stdbool.h>
#include <stdint.h>

struct proxy;

/* Listens on a free loopback port, in a thread of its own. NULL on failure. */
struct proxy *proxy_open(int server_port);
void proxy_close(struct proxy *proxy);
int proxy_port(const struct proxy *proxy);

/* From now on, the server's answer to the nth piece (1: the next) that a client sends containing
 * text is swallowed: what was asked is done, nobody learns of it. Then the connection is cut, or
 * kept in silence, or cut after half of the answer has come through. nth 0: no more of this. */
enum proxy_then { PROXY_CUT, PROXY_SILENCE, PROXY_HALF };
void proxy_lose_answer(struct proxy *proxy, const char *text, int nth, enum proxy_then then);
/* The nth piece itself is swallowed and the connection cut: what was asked is never done. */
void proxy_lose_request(struct proxy *proxy, const char *text, int nth);
/* Connections that have lost an answer or a request so. */
int proxy_lost(struct proxy *proxy);

/* Swallows all that the server says on connections that have sent text (its pushed messages), until
 * told otherwise; the connections stay. */
void proxy_mute(struct proxy *proxy, const char *text, bool on);
/* Pieces swallowed so. */
int proxy_muted(struct proxy *proxy);

/* Keeps the nth piece (1: the next) that a client sends containing text, and all that this client
 * sends after it, from the server, until proxy_let_go(). nth 0: no more of this. */
void proxy_hold(struct proxy *proxy, const char *text, int nth);
/* Clients that are held so now. */
int proxy_held(struct proxy *proxy);
/* What was held goes to the server, even if its client has hung up meanwhile: it arrives late. */
void proxy_let_go(struct proxy *proxy);

/* The clients that are held find their connections closed; what is held of them still goes to the
 * server with proxy_let_go(). */
void proxy_hang_up(struct proxy *proxy);

/* Each piece that comes from now on arrives so much later, in both directions. 0: no delay. */
void proxy_delay(struct proxy *proxy, int64_t delay_ms);

/* A partition in one direction: what comes that way is swallowed while on. */
enum proxy_way { PROXY_TO_SERVER, PROXY_TO_CLIENT };
void proxy_drop(struct proxy *proxy, enum proxy_way way, bool on);
/* Pieces swallowed so, in both directions. */
int proxy_dropped(struct proxy *proxy);

/* Cuts every connection; when it returns, they are. */
void proxy_cut(struct proxy *proxy);

#endif
