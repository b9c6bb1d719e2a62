#include "site_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *type_of(const char *name)
{
    static const struct {
        const char *end, *type;
    } types[] = {{".html", "text/html; charset=utf-8"},
                 {".css", "text/css; charset=utf-8"},
                 {".js", "text/javascript; charset=utf-8"},
                 {".json", "application/json"},
                 {".svg", "image/svg+xml"},
                 {".png", "image/png"}};
    const char *end = strrchr(name, '.');
    for (size_t i = 0; end != NULL && i < sizeof types / sizeof *types; i++)
        if (strcmp(end, types[i].end) == 0)
            return types[i].type;
    return NULL;
}

static int fail(char *message, const char *what, const char *path)
{
    snprintf(message, SITE_MESSAGE_MAX, "%s: %.500s", what, path);
    return -1;
}

/* All of an open file into *file. */
static int read_all(int fd, size_t size, struct site_file *file)
{
    file->bytes = malloc(size + 1);
    while (file->bytes != NULL && file->size < size) {
        ssize_t n = read(fd, (char *)file->bytes + file->size, size - file->size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        file->size += (size_t)n;
    }
    return file->bytes != NULL ? 0 : -1;
}

static int add_file(struct site_files *site, int fd, const char *path, char *message)
{
    struct stat stat;
    if (fstat(fd, &stat) != 0)
        return fail(message, strerror(errno), path);
    if (!S_ISREG(stat.st_mode))
        return 0;
    if (site->n == SITE_FILES_MAX || (size_t)stat.st_size > SITE_BYTES_MAX - site->bytes)
        return fail(message, "this is too large for a site", path);
    struct site_file *file = &site->files[site->n++];
    file->type = type_of(path);
    file->path = strdup(path);
    if (file->path == NULL || read_all(fd, (size_t)stat.st_size, file) != 0)
        return fail(message, "cannot read", path);
    site->bytes += file->size;
    return 0;
}

static int add_folder(struct site_files *site, int fd, const char *path, int depth, char *message);

/* at: the folder. A file of another kind, or one that is hidden or a link, is no part of a site. */
static int add_entry(struct site_files *site, int at, const char *path, const char *name, int depth,
                     char *message)
{
    char inner[SITE_PATH_MAX];
    struct stat stat;
    if (name[0] == '.' || fstatat(at, name, &stat, AT_SYMLINK_NOFOLLOW) != 0 ||
        (!S_ISDIR(stat.st_mode) && (!S_ISREG(stat.st_mode) || type_of(name) == NULL)))
        return 0;
    if (snprintf(inner, sizeof inner, "%s%s%s", path, path[0] != '\0' ? "/" : "", name) >=
        (int)sizeof inner)
        return fail(message, "the path is too long", name);
    int fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return fail(message, strerror(errno), inner);
    if (S_ISDIR(stat.st_mode))
        return add_folder(site, fd, inner, depth + 1, message);
    int failed = add_file(site, fd, inner, message);
    close(fd);
    return failed;
}

/* Closes fd. */
static int add_folder(struct site_files *site, int fd, const char *path, int depth, char *message)
{
    int failed = 0;
    DIR *folder = depth <= SITE_DEPTH_MAX ? fdopendir(fd) : NULL;
    if (folder == NULL) {
        close(fd);
        return fail(message, "cannot read this folder of a site", path);
    }
    for (struct dirent *entry; failed == 0 && (entry = readdir(folder)) != NULL;)
        failed = add_entry(site, dirfd(folder), path, entry->d_name, depth, message);
    closedir(folder);
    return failed;
}

int site_files_read(struct site_files *site, const char *folder, char message[SITE_MESSAGE_MAX])
{
    memset(site, 0, sizeof *site);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return fail(message, strerror(errno), folder);
    if (add_folder(site, fd, "", 0, message) != 0)
        return -1;
    if (site_files_find(site, "index.html") == NULL)
        return fail(message, "there is no index.html (make site makes one)", folder);
    return 0;
}

void site_files_free(struct site_files *site)
{
    for (size_t i = 0; i < site->n; i++) {
        free(site->files[i].path);
        free(site->files[i].bytes);
    }
    site->n = 0;
}

const struct site_file *site_files_find(const struct site_files *site, const char *path)
{
    for (size_t i = 0; i < site->n; i++)
        if (strcmp(site->files[i].path, path) == 0)
            return &site->files[i];
    return NULL;
}
