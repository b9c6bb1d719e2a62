/*
 * Memory that runs out: the Nth piece that the program under test asks for is refused, and so is a
 * poll(2) or ppoll(2), for which the kernel wants some (ENOMEM). Concerns this program's own
 * malloc(), calloc(), realloc(), strdup(), poll() and ppoll(), not those inside shared libraries;
 * the linker puts them in (see SCARCE_T in the Makefile). Any thread.
 */
#ifndef TEST_SCARCE_H
#define TEST_SCARCE_H

#include <stdbool.h>

/* The nth piece from now on is refused; with goes_on each one after it, too. */
void scarce_from(int nth, bool goes_on);
/* There is plenty again. Returns how many pieces were refused. */
int scarce_end(void);

#endif
