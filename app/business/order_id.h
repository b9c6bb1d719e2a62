/* Ids of orders: they sort by time and are unique across instances. */
#ifndef ORDER_ID_H
#define ORDER_ID_H

#include <stdint.h>

enum { ORDER_ID_LENGTH = 26 };

/* 10 digits of milliseconds since 1970, 8 random ones of this process, 8 that count, in Crockford's
 * base 32; the layout of a ULID: https://github.com/ulid/spec */
void order_id_make(char ret[ORDER_ID_LENGTH + 1], int64_t now_wall_us);

#endif
