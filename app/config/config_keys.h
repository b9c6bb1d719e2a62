/* The list of all settings, for flags, environment, file and --print-config. */
#ifndef CONFIG_KEYS_H
#define CONFIG_KEYS_H

#include "config.h"

#include <stdio.h>

enum config_type {
    CONFIG_TEXT,   /* char[size] */
    CONFIG_NUMBER, /* int64_t */
    CONFIG_SWITCH, /* bool: on|off */
    CONFIG_SYNC,   /* bool: full|normal */
    CONFIG_SOURCE, /* bool: lock|database */
    CONFIG_FLAG    /* bool, off by default; as a flag it takes no value */
};

struct config_key {
    const char *name; /* flag; in the environment SECKILL_ and upper case with '_' for '-' */
    enum config_type type;
    size_t offset; /* in struct config */
    size_t size;
    int64_t min, max;
    const char *fallback; /* the default, as text */
    const char *meaning;
};

enum { CONFIG_KEYS_MAX = 40, CONFIG_VALUE_MAX = CONFIG_TEXT_MAX - 1, CONFIG_MESSAGE_MAX = 1024 };

extern const struct config_key config_keys[];
extern const size_t config_n_keys;

/* Where a value comes from. One that is later in this list wins. */
enum config_source { CONFIG_DEFAULT, CONFIG_FILE, CONFIG_ENVIRONMENT, CONFIG_FROM_FLAG };

/* The values as text, before they are converted. */
struct config_draft {
    char value[CONFIG_KEYS_MAX][CONFIG_VALUE_MAX + 1];
    enum config_source source[CONFIG_KEYS_MAX];
    char message[CONFIG_MESSAGE_MAX]; /* why the last call failed */
};

/* Each returns 0, or -1 with draft->message. */
void config_draft_defaults(struct config_draft *draft);
int config_draft_set(struct config_draft *draft, size_t key, const char *value,
                     enum config_source source);
int config_draft_file(struct config_draft *draft, const char *path); /* config_file.c */
int config_draft_environment(struct config_draft *draft, char **environment);
int config_draft_finish(struct config_draft *draft, struct config *ret);
/* Prints the settings, without passwords. */
void config_draft_print(const struct config_draft *draft, FILE *out);

/* Index of the key called name[0..length), or -1. */
int config_key_find(const char *name, size_t length);

#endif
