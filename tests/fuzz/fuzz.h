/* What the harnesses share. A harness is one file that gives the input to the real code, and aborts
 * if what comes out contradicts a second opinion. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t size);

/* libFuzzer closes the standard error for the noise of what is fuzzed. */
static int fuzz_stderr = -1;
__attribute__((constructor)) static void fuzz_keep_stderr(void)
{
    fuzz_stderr = dup(STDERR_FILENO);
}

/* Ends the program: the input is a finding. */
#define FUZZ_CHECK(claim)                                                                          \
    ((claim) ? (void)0                                                                             \
             : (dprintf(fuzz_stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #claim), abort()))

/* A copy of exactly this size, so that the address sanitizer sees a read beyond it. */
static inline char *fuzz_copy(const void *bytes, size_t size)
{
    char *copy = malloc(size > 0 ? size : 1);
    FUZZ_CHECK(copy != NULL);
    if (size > 0)
        memcpy(copy, bytes, size);
    return copy;
}

/* The same with a NUL at its end. */
static inline char *fuzz_text(const void *bytes, size_t size)
{
    char *text = malloc(size + 1);
    FUZZ_CHECK(text != NULL);
    if (size > 0)
        memcpy(text, bytes, size);
    text[size] = '\0';
    return text;
}

/* Takes the input's first byte; 0 when it is empty. */
static inline uint8_t fuzz_byte(const uint8_t **input, size_t *size)
{
    if (*size == 0)
        return 0;
    (*size)--;
    return *(*input)++;
}

#endif
