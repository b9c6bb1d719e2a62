/* Bytes that grow at the end and are taken from the front. {0}: none; free(bytes.at). */
#ifndef SIM_BYTES_H
#define SIM_BYTES_H

#include <stddef.h>

struct sim_bytes {
    char *at;
    size_t n, size;
};

void sim_bytes_add(struct sim_bytes *bytes, const char *from, size_t n);
void sim_bytes_take(struct sim_bytes *bytes, size_t n);

#endif
