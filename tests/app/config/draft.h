/* A draft of the settings, and a file of them. */
#ifndef DRAFT_H
#define DRAFT_H

#include "config_keys.h"
#include "tests.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/test_config.XXXXXX";
static struct config_draft draft;
static struct config config;

static inline int make_file(void **state)
{
    (void)state;
    int fd = mkstemp(path);
    if (fd >= 0)
        close(fd);
    return fd >= 0 ? 0 : -1;
}

static inline int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

static inline size_t key_of(const char *name)
{
    int key = config_key_find(name, strlen(name));
    assert_true(key >= 0);
    return (size_t)key;
}

static inline int set(const char *name, const char *value)
{
    return config_draft_set(&draft, key_of(name), value, CONFIG_FROM_FLAG);
}

#endif
