#include "torture_books.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct torture_entry *torture_books_find(const struct torture_books *books, const char *key)
{
    struct torture_entry *entry = NULL;
    HASH_FIND_STR(books->entries, key, entry);
    return entry;
}

static struct torture_entry *add(struct torture_books *books, const char *key, const char *path)
{
    struct torture_entry *entry = calloc(1, sizeof *entry);
    if (entry != NULL) {
        entry->key = strdup(key);
        entry->path = strdup(path);
    }
    if (entry != NULL && entry->key != NULL && entry->path != NULL) {
        HASH_ADD_KEYPTR(hh, books->entries, entry->key, strlen(entry->key), entry);
        if (entry->hh.tbl != NULL)
            return entry;
    }
    if (entry != NULL) {
        free(entry->key);
        free(entry->path);
    }
    free(entry);
    return NULL;
}

bool torture_is_decided(int status, const char *type)
{
    const char *slash = strrchr(type, '/');
    bool running = status == 409 && slash != NULL && strcmp(slash, "/in-flight") == 0;
    return status == 201 || status == 200 || (status == 409 && !running);
}

/* 503 and 429: not now. */
static bool is_odd(int status, bool running)
{
    return !running && status != 503 && status != 429 && status != 408;
}

static void note_answer(struct torture_entry *entry, int status, json_t *body)
{
    const char *type = json_string_value(json_object_get(body, "type"));
    if (!torture_is_decided(status, type != NULL ? type : "")) {
        if (is_odd(status, status == 409) && entry->odd_status == 0)
            entry->odd_status = status;
        return;
    }
    if (entry->status == 0) {
        entry->status = status;
        entry->answer = json_incref(body);
    } else if (entry->status != status || !json_equal(entry->answer, body)) {
        entry->differing++;
    }
}

/* Returns 0, or -1 without memory. */
static int note(struct torture_books *books, const json_t *line)
{
    const char *event = json_string_value(json_object_get(line, "event"));
    const char *key = json_string_value(json_object_get(line, "key"));
    const char *path = json_string_value(json_object_get(line, "path"));
    if (event == NULL || key == NULL)
        return 0;
    struct torture_entry *entry = torture_books_find(books, key);
    if (strcmp(event, "invoke") == 0 && path != NULL && json_object_get(line, "body") != NULL) {
        if (entry == NULL && (entry = add(books, key, path)) == NULL)
            return -1;
        entry->sent++;
    } else if (strcmp(event, "complete") == 0 && entry != NULL) {
        int status = (int)json_integer_value(json_object_get(line, "status"));
        if (status != 0)
            note_answer(entry, status, json_object_get(line, "body"));
    }
    return 0;
}

static int read_lines(FILE *file, struct torture_books *books, char *message, size_t size)
{
    char *text = NULL;
    size_t room = 0, number = 0;
    ssize_t length;
    int result = 0;
    while (result == 0 && (length = getline(&text, &room, file)) > 0) {
        json_t *line = json_loads(text, 0, NULL);
        number++;
        if (line == NULL && text[length - 1] == '\n') {
            snprintf(message, size, "line %zu of the books is no JSON", number);
            result = -1;
        } else if (line != NULL && note(books, line) != 0) {
            snprintf(message, size, "no memory for the books");
            result = -1;
        }
        json_decref(line);
    }
    free(text);
    return result;
}

int torture_books_read(const char *path, struct torture_books *ret, char *message, size_t size)
{
    memset(ret, 0, sizeof *ret);
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        snprintf(message, size, "%s: %s", path, strerror(errno));
        return -1;
    }
    int result = read_lines(file, ret, message, size);
    fclose(file);
    for (const struct torture_entry *entry = ret->entries; entry != NULL; entry = entry->hh.next) {
        ret->attempts += (size_t)entry->sent;
        ret->decided += entry->status != 0;
        ret->undecided += entry->status == 0;
    }
    return result;
}

void torture_books_free(struct torture_books *books)
{
    struct torture_entry *entry, *next;
    HASH_ITER(hh, books->entries, entry, next)
    {
        HASH_DEL(books->entries, entry);
        json_decref(entry->answer);
        free(entry->key);
        free(entry->path);
        free(entry);
    }
    *books = (struct torture_books){0};
}
