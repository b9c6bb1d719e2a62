/*
 * A TCP proxy in front of a loopback server, for network faults: it loses, holds, delays or drops
 * data. A "piece" is what one read of the socket returns. A client that writes one command at a
 * time and waits for its answer sends one command in a piece.
 * Threading: one thread uses a proxy at a time.
 */
#ifndef SANDBOX_PROXY_H
#define SANDBOX_PROXY_H

#include <stdbool.h>
#include <stdint.h>

struct proxy;

/* Listens on a free loopback port, in its own thread. NULL on failure. */
struct proxy *proxy_open(int server_port);
void proxy_close(struct proxy *proxy);
int proxy_port(const struct proxy *proxy);

/* Loses the server's answer to the nth piece (1: the next) from a client that contains text: the
 * command is done, but no client learns of it. nth 0: no more. Then the connection is
 * - PROXY_CUT: cut
 * - PROXY_SILENCE: kept, without any further answer
 * - PROXY_HALF: cut after half of the answer */
enum proxy_then { PROXY_CUT, PROXY_SILENCE, PROXY_HALF };
void proxy_lose_answer(struct proxy *proxy, const char *text, int nth, enum proxy_then then);
/* Loses the nth piece itself and cuts the connection: the command is never done. */
void proxy_lose_request(struct proxy *proxy, const char *text, int nth);
/* How many answers and requests were lost this way. */
int proxy_lost(struct proxy *proxy);

/* While on, drops everything that the server sends on connections that have sent text (its pushed
 * messages). The connections stay. */
void proxy_mute(struct proxy *proxy, const char *text, bool on);
/* How many pieces were dropped this way. */
int proxy_muted(struct proxy *proxy);

/* Holds the nth piece (1: the next) from a client that contains text, and everything that this
 * client sends after it, until proxy_let_go(). nth 0: no more. */
void proxy_hold(struct proxy *proxy, const char *text, int nth);
/* How many clients are held now. */
int proxy_held(struct proxy *proxy);
/* Sends held data to the server, even if its client has hung up since: it arrives late. */
void proxy_let_go(struct proxy *proxy);

/* Closes the connections of held clients. Their held data still goes to the server with
 * proxy_let_go(). */
void proxy_hang_up(struct proxy *proxy);

/* Delays each later piece by this much, in both directions. 0: no delay. */
void proxy_delay(struct proxy *proxy, int64_t delay_ms);

/* A partition in one direction: while on, data in this direction is dropped. */
enum proxy_way { PROXY_TO_SERVER, PROXY_TO_CLIENT };
void proxy_drop(struct proxy *proxy, enum proxy_way way, bool on);
/* How many pieces were dropped this way, in both directions. */
int proxy_dropped(struct proxy *proxy);

/* Cuts every connection and returns once they are cut. */
void proxy_cut(struct proxy *proxy);

#endif
