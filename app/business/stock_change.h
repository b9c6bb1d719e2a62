/* Why the pieces of an item change, other than by orders. */
#ifndef STOCK_CHANGE_H
#define STOCK_CHANGE_H

#include <stdbool.h>
#include <stddef.h>

/* As a shop's accountant lists them. The ledger has the name in `reason`. */
struct stock_reason {
    const char *name;
    bool comes, goes; /* a positive delta, a negative one */
};
extern const struct stock_reason stock_reasons[];
extern const size_t n_stock_reasons;

#endif
