/* Files that belong to a program: named on its command line, beside it as in build/, or in
 * BESIDE_INSTALLED, where `make install` puts those that are no commands. */
#ifndef BESIDE_H
#define BESIDE_H

#include <stddef.h>

#define BESIDE_INSTALLED "../lib/seckilld/" /* from the folder of the programs */

/* The path of the file: given, or (given NULL) `name` in the folder of this program, or `name` in
 * BESIDE_INSTALLED. `name` is a short constant. NULL after a message on stderr when it cannot be
 * accessed as mode (R_OK, X_OK) asks. flag: names the option that gives it, for the message; NULL:
 * none does. */
const char *beside(const char *program, const char *name, const char *flag, const char *given,
                   int mode, char *buffer, size_t size);

#endif
