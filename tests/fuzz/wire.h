/*
 * The other end of every connection is the input: a program that includes wire.c has a connect(2)
 * that always reaches it. No server, no port, no thread. The functions of this harness's process:
 * connect, poll, ppoll, recv, setsockopt.
 *
 * The input is cut into pieces by the bytes 0x1e 0x1f. The client gets the next piece when it waits
 * for one and nothing is there. A piece that ends with 0x1e 0x1e ends its connection. After the
 * last piece every connection ends, so no wait takes time.
 */
#ifndef WIRE_H
#define WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WIRE_NEXT "\x1e\x1f"
#define WIRE_END  "\x1e\x1e"

/* From here on connections get these bytes. Each gets the pieces of preamble (may be NULL) first.
 */
void wire_begin(const uint8_t *input, size_t size, const char *preamble, size_t preamble_size);
/* All pieces of the input were sent. */
bool wire_is_over(void);
/* Ends all connections. */
void wire_end(void);

#endif
