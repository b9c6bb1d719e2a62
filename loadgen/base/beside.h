/* Files that belong to a program: named on its command line, or beside it. */
#ifndef BESIDE_H
#define BESIDE_H

#include <stddef.h>

/* The path of the file: given, or (given NULL) `name` in the folder of this program. NULL after a
 * message on stderr when it cannot be accessed as mode (R_OK, X_OK) asks. flag: names the option
 * that gives it, for the message; NULL: none does. */
const char *beside(const char *program, const char *name, const char *flag, const char *given,
                   int mode, char *buffer, size_t size);

#endif
