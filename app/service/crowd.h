/*
 * How many operations of one item, account, order or user the service has at once, so that none of
 * them fills the queue of all others.
 *
 * A count-min sketch: a name is counted in one place of each of two rows, and its number is the
 * smaller one (G. Cormode, S. Muthukrishnan: "An Improved Data Stream Summary", J. Algorithms 55,
 * 2005). It is never too small. It is too large only for a name that meets crowded names in both
 * rows; the places come from a random seed, so strangers cannot aim at them.
 *
 * Threading: any thread.
 */
#ifndef CROWD_H
#define CROWD_H

#include <stdbool.h>
#include <stdint.h>

struct crowd;

struct crowd *crowd_open(void); /* NULL without memory */
void crowd_close(struct crowd *crowd);

/* Counts one more of this name ("item:1"). False: there are max of it already, nothing is counted.
 * *ret_place is for crowd_leave(). */
bool crowd_enter(struct crowd *crowd, const char *kind, const char *name, uint32_t max,
                 uint64_t *ret_place);
void crowd_leave(struct crowd *crowd, uint64_t place);

#endif
