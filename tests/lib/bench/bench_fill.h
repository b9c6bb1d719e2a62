/* A store with a past: rows written straight into the SQLite file of a service that is not running,
 * as copies of what the service itself has written. Each dies unless the store's audit then finds
 * everything in order. */
#ifndef TEST_BENCH_FILL_H
#define TEST_BENCH_FILL_H

/* Item "1" becomes items "1" to "n". Nothing may have been sold of it. */
void bench_fill_items(const char *file, long n);
/* Item "1" was sold n times more: ledger, paid orders, stored answers, stock. One order of it must
 * be there. */
void bench_fill_past(const char *file, long n);

#endif
