/* Ids of orders: they sort by time, are unique across instances, and cannot be guessed. */
#ifndef ORDER_ID_H
#define ORDER_ID_H

#include <stdint.h>

enum { ORDER_ID_LENGTH = 26 };

/* 10 digits of milliseconds since 1970 and 16 digits (80 bits) from getrandom(2), in Crockford's
 * base 32: a ULID, https://github.com/ulid/spec */
void order_id_make(char ret[ORDER_ID_LENGTH + 1], int64_t now_wall_us);

#endif
