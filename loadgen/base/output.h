/* Files that a command line names, in folders that are made when they are missing; "-": stdout. */
#ifndef OUTPUT_H
#define OUTPUT_H

#include <jansson.h>
#include <stdio.h>

/* When the program ends, whatever its status: 1 with a message if not all of stdout was written.
 * Once, at the start: argp ends it after --help. */
void output_check_at_exit(const char *program);
/* Before the work: can each of n files be written? None is changed or left behind; NULL: not
 * wanted. Returns 0, or -1 after a message about the first that cannot. */
int output_check_files(const char *program, const char *const *files, size_t n);
/* program: the name in the message on stderr. Returns NULL when it cannot be written. */
FILE *output_open(const char *program, const char *path);
/* Returns 0, or -1 when not all of it was written. stdout is left to the
 * above. */
int output_close(const char *program, const char *path, FILE *out);
/* json is freed; NULL: there was no memory for it. Returns 0, or -1 when not all of it was written.
 */
int output_json(const char *program, const char *path, json_t *json);
/* "Reports: a.json, a.html": which of n files were written; NULL: none, "-": told already. */
void output_tell(FILE *out, const char *const *files, size_t n);

#endif
