/* The files of web/, which are in the program. */
#ifndef WEB_FILES_H
#define WEB_FILES_H

#include <stddef.h>

/* Files that each site has as they are: NULL past the last. */
const char *web_asset(size_t i);
/* NULL: there is none of this name. NUL-terminated. */
const char *web_find(const char *name);

#endif
