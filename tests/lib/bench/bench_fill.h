/* Fills the SQLite file of a stopped service with many rows, copied from rows that the service
 * wrote. Each function exits with 1 unless the store's audit then passes. */
#ifndef TEST_BENCH_FILL_H
#define TEST_BENCH_FILL_H

/* Copies item "1" to items "2" ... "n". Item "1" must have no orders. */
void bench_fill_items(const char *file, long n);
/* Adds n sales of item "1": ledger rows, paid orders, stored answers; reduces its stock. At least
 * one order of it must exist. */
void bench_fill_past(const char *file, long n);

#endif
