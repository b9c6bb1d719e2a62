/*
 * Simulates memory that runs out: the nth allocation fails. poll(2) and ppoll(2) count as
 * allocations, as the kernel may return ENOMEM for them. It covers this program's own malloc(),
 * calloc(), realloc(), strdup(), poll() and ppoll(), not calls inside shared libraries. The linker
 * inserts it (see SCARCE_T in the Makefile). Any thread.
 */
#ifndef TEST_SCARCE_H
#define TEST_SCARCE_H

#include <stdbool.h>

/* Makes the nth allocation from now on fail. goes_on: all later ones fail, too. */
void scarce_from(int nth, bool goes_on);
/* Lets allocations succeed again. Returns how many failed. */
int scarce_end(void);

#endif
