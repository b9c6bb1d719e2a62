/*
 * Histories as short text, one operation a line:
 *
 *   item a 10 v1 limit 2            initial state of a resource; version and limit are optional
 *   account x 1000 v1
 *   1-5 k1 buy 1 a: 10>9 v2 f7      asked at 1, answered at 5: read 10, wrote 9, version 2, fence 7
 *   1-5 k2 buy 1 a u3: sold-out     of user u3, refused; users and order ids are made from the key
 *   1-5 k3 add -200 x: 1000>800 v2
 *   1-5 k4 move 300 x y: 1000>700 v3
 *   1-5 k5 read a: 9 v2
 *   1-5 k6 cancel o-k1: ok          or pay
 *   1-5 k7 buy 1 a: lost            or unsent; 1-? : no answer is in the file
 *   1-5 k8 buy 1 a: 10>9 v2 id o9   with this order id; amount 300: at this price
 *   1-5 k9 move 9 x y: 9>0 v2 to 4  which made version 4 of y
 */
#ifndef TEST_HISTORY_TEXT_H
#define TEST_HISTORY_TEXT_H

#include "check.h"

/* Writes it as a history file, as a run does. False: a line has none of these forms. */
bool history_text_write(const char *text, const char *path);
/* Writes it and reads it back. Fails the test on an error. */
void history_text_read(const char *text, struct history *ret);

enum { HISTORY_CHECKERS_MAX = 16 };
/* Runs all checkers on it. audit: an answer of GET /v1/audit, or NULL. */
enum check_verdict history_text_check(const char *text, const char *audit,
                                      struct check_result ret[HISTORY_CHECKERS_MAX]);
/* "order set": the checkers that found a breach. Static, until the next call. */
const char *history_text_finders(const struct check_result *results);

#endif
