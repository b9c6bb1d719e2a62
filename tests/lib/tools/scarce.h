/*
 * Simulates memory that runs out: the nth allocation fails. A call counts as an allocation if it is
 * refused without memory: malloc(), calloc(), realloc(), strdup(), asprintf(), open_memstream(),
 * getline(), fopen(), pthread_create(), poll() and ppoll(). It covers this program's own calls, not
 * those inside shared libraries. The linker inserts it
 * (tests/tests.mk). Any thread.
 */
#ifndef TEST_SCARCE_H
#define TEST_SCARCE_H

#include <stdbool.h>

/* Makes the nth allocation from now on fail. goes_on: all later ones fail, too. */
void scarce_from(int nth, bool goes_on);
/* Lets allocations succeed again. Returns how many failed. */
int scarce_end(void);

#endif
