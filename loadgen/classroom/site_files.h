/* The files of a site in memory: read once, so that no request reaches the disk. */
#ifndef SITE_FILES_H
#define SITE_FILES_H

#include <stddef.h>

enum {
    SITE_FILES_MAX = 600,
    SITE_BYTES_MAX = 64 * 1024 * 1024, /* of all files */
    SITE_DEPTH_MAX = 4,                /* folders in folders */
    SITE_PATH_MAX = 512,
    SITE_MESSAGE_MAX = 700
};

struct site_file {
    char *path; /* from the folder: "zh/index.html" */
    const char *type;
    void *bytes;
    size_t size;
};

struct site_files {
    struct site_file files[SITE_FILES_MAX];
    size_t n, bytes;
};

/* Reads the pages, scripts and styles of a folder that `loadgen site` has made. Other files, hidden
 * ones and symbolic links are left out. Returns 0, or -1 with message: it cannot be read, has no
 * index.html, or is beyond a bound. Either way site_files_free() frees it. */
int site_files_read(struct site_files *site, const char *folder, char message[SITE_MESSAGE_MAX]);
void site_files_free(struct site_files *site);
/* NULL: there is none. path: without a leading '/'. */
const struct site_file *site_files_find(const struct site_files *site, const char *path);

#endif
