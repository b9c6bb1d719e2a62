/* The live page: the files of app/page/web, built into the binary. */
#ifndef PAGE_H
#define PAGE_H

#include <stddef.h>

struct page_file {
    const char *name; /* as in /web/NAME */
    const char *type; /* Content-Type */
    const char *text;
    size_t bytes;
};

/* Finds a file by its name; "" is the page itself. NULL: there is none. */
const struct page_file *page_find(const char *name);

/* What the page may load: its own files, its own service, nothing else. */
#define PAGE_POLICY                                                                                \
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; " \
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

#endif
