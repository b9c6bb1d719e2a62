/*
 * jansson 2.14 is not safe without memory: its reader overlooks a failed allocation, and reads
 * beyond the text (lex_save() in load.c). A program that reads large answers ends instead.
 */
#ifndef JSON_MEMORY_H
#define JSON_MEMORY_H

/* From now on, a failed allocation of jansson ends the program: a message, exit status 1. Before
 * jansson's first use. program: borrowed. */
void json_memory_or_end(const char *program);

#endif
