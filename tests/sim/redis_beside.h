/* A Redis of the simulation beside a real one, without the simulated world: what the tests need
 * that compare the two. redis_beside.c also stands in for the world's calls: the model's clock is
 * the machine's, and what it publishes or writes is told to nobody. */
#ifndef SIM_REDIS_BESIDE_H
#define SIM_REDIS_BESIDE_H

#include <hiredis/hiredis.h>
#include <stddef.h>

/* An answer as text, cut at size. Of an error only the code: the rest differs from version to
 * version. Returns how many bytes. */
size_t redis_text(const redisReply *reply, char *to, size_t size);

#endif
