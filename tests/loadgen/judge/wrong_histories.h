/* Wrong histories, each with the checkers that have to find it. The language is history_text.h's.
 */
#ifndef WRONG_HISTORIES_H
#define WRONG_HISTORIES_H

#include <stddef.h>

#define AUDIT(rows) "{\"resources\":[" rows "]}"
#define ROW_WITH(name, initial, current, sum, sold, more)                                          \
    "{\"resource\":\"" name "\",\"initial\":" #initial ",\"current\":" #current                    \
    ",\"ledger_sum\":" #sum ",\"sold\":" #sold ",\"oversold\":0,\"lost_updates\":0,"               \
    "\"lost_amount\":0" more ",\"forks\":[]}"
#define ROW(name, initial, current, sum, sold)                                                     \
    ROW_WITH(name, initial, current, sum, sold, ",\"duplicates\":0,\"broken\":0")
#define ITEM_AUDIT(current, sold) AUDIT(ROW("item:a", 10, current, -sold, sold))

#define ITEM     "item a 10 v1\n"
#define LIMITED  "item a 10 v1 limit 2\n"
#define ACCOUNTS "account x 1000 v1\naccount y 1000 v1\n"

static const struct wrong_history {
    const char *name, *text, *found_by;
    const char *audit; /* NULL: none */
} wrong_histories[] = {
    /* -- seen to pass as "Holds" once -- */
    {"a gap in the versions with nothing unknown",
     ITEM "1-5 k1 buy 1 a: 10>9 v2\n6-9 k2 buy 1 a: 9>8 v4", "order", ITEM_AUDIT(8, 2)},
    {"a refused order that took effect",
     ITEM "1-5 k1 buy 1 a: user-limit\n"
          "6-9 k2 buy 1 a: 9>8 v3",
     "order", ITEM_AUDIT(8, 2)},
    {"a refused order that took effect, without a version in between",
     ITEM "1-5 k1 buy 1 a: user-limit\n6-9 k2 buy 1 a: 9>8 v2", "order", NULL},
    {"a first change that read another value than the first",
     ITEM "1-5 k1 buy 1 a: 7>6 v2\n6-9 k2 buy 1 a: 6>5 v3", "order", ITEM_AUDIT(8, 2)},
    {"fences 5, 0, 3",
     ITEM "1-2 k1 buy 1 a: 10>9 v2 f5\n3-4 k2 buy 1 a: 9>8 v3 f0\n5-6 k3 buy 1 a: 8>7 v4 f3",
     "fence", ITEM_AUDIT(7, 3)},
    {"all refused as sold out and nothing accepted",
     ITEM "1-5 k1 buy 1 a: sold-out\n1-6 k2 buy 1 a: sold-out\n7-9 k3 buy 1 a: sold-out", "order",
     ITEM_AUDIT(10, 0)},
    {"refused for funds after a credit was acknowledged",
     ACCOUNTS "1-5 k1 add 500 x: 1000>1500 v2\n6-9 k2 add -1200 x: insufficient-funds", "order",
     AUDIT(ROW("account:x", 1000, 1500, 500, 0) "," ROW("account:y", 1000, 1000, 0, 0))},
    {"a debit that misses an acknowledged credit",
     ACCOUNTS "1-5 k1 add 500 x: 1000>1500 v2\n6-9 k2 add -200 x: 1000>800 v3", "order", NULL},
    {"a debit that misses an acknowledged credit, and its version",
     ACCOUNTS "1-5 k1 add 500 x: 1000>1500 v2\n6-9 k2 add -200 x: 1000>800 v2", "set", NULL},
    {"sold out while 9 of 10 remain", ITEM "1-5 k1 buy 1 a: 10>9 v2\n6-9 k2 buy 1 a: sold-out",
     "order", ITEM_AUDIT(9, 1)},
    {"an audit that says duplicates=3", ITEM "1-5 k1 buy 1 a: 10>9 v2", "audit",
     AUDIT(ROW_WITH("item:a", 10, 9, -1, 1, ",\"duplicates\":3,\"broken\":0"))},
    {"an audit that says broken=1", ITEM "1-5 k1 buy 1 a: 10>9 v2", "audit",
     AUDIT(ROW_WITH("item:a", 10, 9, -1, 1, ",\"duplicates\":0,\"broken\":1"))},
    /* Only k1 and k2, of which none is the last change, are out of order. */
    {"answered before another was asked, and yet after it, in the middle of others",
     ITEM "1-5 k1 buy 1 a: 9>8 v3\n6-20 k2 buy 1 a: 10>9 v2\n"
          "1-40 k3 buy 1 a: 8>7 v4\n1-40 k4 buy 1 a: 7>6 v5",
     "order", ITEM_AUDIT(6, 4)},
    {"the same with one change between the two",
     ITEM "1-5 k1 buy 1 a: 8>7 v4\n6-20 k2 buy 1 a: 10>9 v2\n"
          "1-40 k3 buy 1 a: 9>8 v3\n1-40 k4 buy 1 a: 7>6 v5",
     "order", NULL},
    {"refused for funds by a balance that was never so low",
     ACCOUNTS "1-9 k1 add -500 x: 1000>500 v2\n1-9 k2 add -400 x: 500>100 v3\n"
              "1-9 k3 add -100 x: insufficient-funds",
     "order", NULL},
    /* -- changes -- */
    {"one version made twice", ITEM "1-5 k1 buy 1 a: 10>9 v2\n1-6 k2 buy 1 a: 10>9 v2", "set",
     NULL},
    {"one order id given twice", ITEM "1-5 k1 buy 1 a: 10>9 v2 id o1\n1-6 k2 buy 1 a: 9>8 v3 id o1",
     "set", NULL},
    {"a change that read what was no longer there",
     ACCOUNTS "1-5 k1 add -200 x: 1000>800 v2\n1-6 k2 add -300 x: 1000>700 v3", "order", NULL},
    {"two lost updates whose amounts cancel each other",
     ACCOUNTS "1-5 k1 add 200 x: 1000>1200 v2\n1-6 k2 add -200 x: 1000>800 v3\n"
              "1-7 k3 add 200 x: 800>1000 v4\n1-8 k4 add -200 x: 1200>1000 v5",
     "order", AUDIT(ROW("account:x", 1000, 1000, 0, 0) "," ROW("account:y", 1000, 1000, 0, 0))},
    {"the second of two asked one after the other comes first",
     ITEM "1-5 k1 buy 1 a: 9>8 v3\n6-9 k2 buy 1 a: 10>9 v2", "order", NULL},
    {"a first version that leaves one out", ITEM "1-5 k1 buy 1 a: 10>9 v3", "order", NULL},
    {"a version below the first", ITEM "1-5 k1 buy 1 a: 10>9 v1", "order", NULL},
    {"a stock below zero", "item a 1 v1\n1-5 k1 buy 2 a: 1>-1 v2", "stock", NULL},
    {"two pieces ordered, one taken off", ITEM "1-5 k1 buy 2 a: 10>9 v2", "order stock", NULL},
    {"read another value and wrote the right one", ITEM "1-5 k1 buy 1 a: 7>9 v2", "order stock",
     NULL},
    {"a balance below zero", ACCOUNTS "1-5 k1 add -2000 x: 1000>-1000 v2", "bank", NULL},
    {"more sold than there was", "item a 1 v1\n1-5 k1 buy 1 a: 1>0 v2\n1-6 k2 buy 1 a: 1>0 v3",
     "stock", NULL},
    /* -- unknown outcomes -- */
    {"one unknown for a gap of two", ITEM "1-5 k1 buy 1 a: lost\n6-9 k2 buy 1 a: 8>7 v4", "order",
     NULL},
    {"an unknown of another amount",
     ACCOUNTS "1-5 k1 add -100 x: lost\n6-9 k2 add -1 x: 950>949 v3", "order", NULL},
    {"an unknown that was asked after the gap it would fill",
     ITEM "1-5 k1 buy 1 a: 9>8 v3\n6-9 k2 buy 1 a: lost", "order", NULL},
    {"a request that was never sent took effect",
     ITEM "1-5 k1 buy 1 a: unsent\n6-9 k2 buy 1 a: 9>8 v3", "order", NULL},
    {"an unknown that happened for one and not for a later one",
     ITEM "1-5 k1 buy 1 a: lost\n6-9 k2 read a: 9 v2\n10-12 k3 read a: 10 v1", "order", NULL},
    {"more stored than acknowledged and unknown", ITEM "1-5 k1 buy 1 a: lost", "stock",
     ITEM_AUDIT(8, 2)},
    /* -- reads -- */
    {"a read that misses an acknowledged order",
     ITEM "1-5 k1 buy 1 a: 10>9 v2\n6-9 k2 read a: 10 v1", "order", NULL},
    {"a read that knows an order before it was asked",
     ITEM "1-4 k1 read a: 9 v2\n5-9 k2 buy 1 a: 10>9 v2", "order", NULL},
    {"reads that go back",
     ITEM "1-20 k1 buy 1 a: 10>9 v2\n3-5 k2 read a: 9 v2\n"
          "6-9 k3 read a: 10 v1",
     "order", NULL},
    {"a read of a value that never was",
     ACCOUNTS "1-5 k1 add -200 x: 1000>800 v2\n1-9 k2 read x: 900", "order", NULL},
    {"a read of one version with the value of another",
     ITEM "1-5 k1 buy 1 a: 10>9 v2\n1-9 k2 read a: 10 v2", "order", NULL},
    /* -- refusals -- */
    {"sold out before the last piece was sold",
     "item a 2 v1\n1-3 k1 buy 1 a: 2>1 v2\n4-6 k2 buy 1 a: sold-out\n7-9 k3 buy 1 a: 1>0 v3",
     "order", NULL},
    {"the limit of a user passed", LIMITED "1-5 k1 buy 2 a u1: 10>8 v2\n1-6 k2 buy 1 a u1: 8>7 v3",
     "order", NULL},
    {"the limit of a user refused too early",
     LIMITED "1-5 k1 buy 1 a u1: 10>9 v2\n1-6 k2 buy 1 a u1: user-limit", "order", NULL},
    /* -- keys -- */
    {"the second answer to a key differs",
     ITEM "1-5 k1 buy 1 a: 10>9 v2 id o1\n6-9 k1 buy 1 a: 9>8 v3 id o2", "idempotence", NULL},
    {"refused after it was accepted", ITEM "1-5 k1 buy 1 a: 10>9 v2\n6-9 k1 buy 1 a: sold-out",
     "idempotence", NULL},
    {"one key took effect twice",
     ITEM "1-5 k1 buy 1 a: 10>9 v2\n6-9 k1 buy 1 a: 10>9 v2\n10-12 k2 buy 1 a: 8>7 v4", "order",
     NULL},
    /* -- transfers -- */
    {"a transfer that takes more than it moves", ACCOUNTS "1-5 k1 move 300 x y: 1000>600 v2",
     "bank", NULL},
    {"a transfer that did not arrive",
     ACCOUNTS "1-5 k1 move 300 x y: 1000>700 v2\n6-9 k2 add -100 y: 1000>900 v2", "order", NULL},
    {"a transfer that arrived twice",
     ACCOUNTS "1-5 k1 move 300 x y: 1000>700 v2\n6-9 k2 read y: 1600 v3", "order", NULL},
    {"a refused transfer that arrived",
     ACCOUNTS "1-5 k1 move 3000 x y: insufficient-funds\n6-9 k2 read y: 4000 v2", "order", NULL},
    {"half of a transfer whose answer was lost", ACCOUNTS "1-5 k1 move 300 x y: lost", "bank",
     AUDIT(ROW("account:x", 1000, 700, -300, 0) "," ROW("account:y", 1000, 1000, 0, 0))},
    /* -- orders -- */
    {"a cancelled order whose piece did not come back",
     ITEM "1-5 k1 buy 1 a: 10>9 v2\n6-9 k2 cancel o-k1: ok\n10-12 k3 read a: 9 v2", "order", NULL},
    {"an order paid and cancelled",
     ITEM "1-5 k1 buy 1 a: 10>9 v2\n6-9 k2 cancel o-k1: ok\n10-12 k3 pay o-k1: ok", "set", NULL},
    {"a paid order that was not debited",
     ITEM ACCOUNTS "1-5 k1 buy 1 a x: 10>9 v2 amount 300\n6-9 k2 pay o-k1: ok\n"
                   "10-12 k3 add -1 x: 1000>999 v2",
     "order", NULL},
    /* -- the audit -- */
    {"acknowledged and not stored", ITEM "1-5 k1 buy 1 a: 10>9 v2", "stock", ITEM_AUDIT(10, 0)},
    {"stored and not taken off", ITEM "1-5 k1 buy 1 a: 10>9 v2", "stock",
     AUDIT(ROW("item:a", 10, 10, 0, 1))},
    {"an audit whose ledger does not add up", ITEM "1-5 k1 buy 1 a: 10>9 v2", "audit",
     AUDIT(ROW("item:a", 10, 9, -2, 1))},
    {"an audit that knows another beginning", ITEM "1-5 k1 buy 1 a: 10>9 v2", "audit",
     AUDIT(ROW("item:a", 11, 10, -1, 1))},
    {"an audit that does not know the item", ITEM "1-5 k1 buy 1 a: 10>9 v2", "audit", AUDIT("")},
};
enum { N_WRONG_HISTORIES = sizeof wrong_histories / sizeof *wrong_histories };

#endif
