/*
 * The rows of the store: items, accounts, orders, answers of idempotency keys, the ledger.
 *
 * Values are signed 64-bit integers in minor units or pieces. Times are Unix microseconds. All text
 * is in fixed arrays, so a row is copied by assignment and nothing of it is to be freed.
 */
#ifndef DB_ROWS_H
#define DB_ROWS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    DB_ID_MAX = 64,       /* item, account, user, order id */
    DB_RESOURCE_MAX = 72, /* "account:" + id */
    DB_GUARD_MAX = 24,
    DB_INSTANCE_MAX = 32,
    DB_KEY_MAX = 320,    /* idempotency key, with its caller: "NAME<TAB>KEY" */
    DB_REASON_MAX = 128, /* the caller's words in the ledger */
    DB_REFERENCE_MAX = 64,
    DB_HASH_LENGTH = 64,  /* hex digits of a SHA-256 */
    DB_REQUEST_MAX = 320, /* canonical text of a request, see db_answer */
    DB_BODY_MAX = 1023,   /* stored answer */
    DB_MESSAGE_MAX = 256,
    DB_EXPIRED_MAX = 256, /* orders returned by one db_read_expired() */
    DB_KEYS_MAX = 128,    /* asked by one db_find_answers() or db_read_bought() */
    DB_JOBS_MAX = 64,     /* works of one db_run_many() */
    DB_BUSY_MS_MAX = 3600000
};

typedef struct db_item {
    char id[DB_ID_MAX + 1];
    char guard[DB_GUARD_MAX + 1]; /* "" : the service's default */
    int64_t initial_stock, stock;
    int64_t price;          /* minor units for one piece */
    int64_t per_user_limit; /* pieces in live or paid orders; 0: none */
    int64_t reserve_s;      /* an unpaid order is closed after this */
    bool fence;             /* check fences on write */
    int64_t version;        /* rises by 1 with each accepted change; a fork when it does not */
    int64_t last_fence;
    int64_t epoch; /* rises with each reset (PUT): older orders and ledger rows are history */
    char chain[DB_HASH_LENGTH + 1]; /* hash of its last ledger row; "": it has none */
} db_item;

typedef struct db_account {
    char id[DB_ID_MAX + 1];
    char guard[DB_GUARD_MAX + 1];
    int64_t initial_balance, balance;
    bool fence;
    int64_t version, last_fence, epoch;
    char chain[DB_HASH_LENGTH + 1];
} db_account;

/* reserved -> paid | cancelled | closed (by the scheduled task), paid -> refunded; nothing leaves
 * cancelled, closed and refunded. */
typedef enum db_order_state {
    DB_RESERVED,
    DB_PAID,
    DB_CANCELLED,
    DB_CLOSED,
    DB_REFUNDED
} db_order_state;
const char *db_order_state_text(db_order_state state);

typedef struct db_order {
    char id[DB_ID_MAX + 1];
    char item_id[DB_ID_MAX + 1], user_id[DB_ID_MAX + 1];
    int64_t quantity, amount; /* amount = quantity * price at the time of the order */
    db_order_state state;
    int64_t version; /* of the order row */
    int64_t item_epoch;
    int64_t created_us, expires_us;
    int64_t last_fence;
    bool limited; /* its item has a limit per user: db_read_bought() counts it */
} db_order;

/* What an idempotency key led to. request is the canonical text of what was asked ("order item=1
 * user=u42 quantity=1"): same key + same text replays, other text is refused by the caller. */
typedef struct db_answer {
    char key[DB_KEY_MAX + 1];
    char request[DB_REQUEST_MAX + 1];
    int32_t http_status; /* 100 to 599; 0 when read: another one has been written there */
    char body[DB_BODY_MAX + 1];
    int64_t at_us;
} db_answer;

/* What a ledger row is: FIRST(name, text) for the first kind, NEXT(name, text) for each other. */
#define DB_KIND_MAP(FIRST, NEXT)                                                                   \
    FIRST(ORDER, "order")              /* pieces reserved for an order */                          \
    NEXT(PAYMENT, "payment")           /* of an order: the buyer's account to shop:revenue */      \
    NEXT(REFUND, "refund")             /* of a paid order: its money, and its pieces */            \
    NEXT(CANCELLATION, "cancellation") /* pieces that the buyer gave back */                       \
    NEXT(EXPIRY, "expiry")             /* pieces of a reservation that ended unpaid */             \
    NEXT(CHANGE, "change")             /* money paid in or out: against shop:cash */               \
    NEXT(TRANSFER, "transfer")         /* money between two accounts */                            \
    NEXT(RESET, "reset")     /* a row created or begun anew: money against shop:equity */          \
    NEXT(RESTOCK, "restock") /* pieces that came or were lost */                                   \
    NEXT(SETTING, "setting") /* other terms, without a movement */

typedef enum db_kind {
#define DB_KIND_ENUM(name, text) DB_KIND_##name,
    DB_KIND_MAP(DB_KIND_ENUM, DB_KIND_ENUM)
#undef DB_KIND_ENUM
        DB_KINDS
} db_kind;
const char *db_kind_text(db_kind kind);

/* The shop's own sides of a movement of money. They have no stored balance, so no payment waits for
 * another one. The audit sums their rows. */
#define DB_SHOP_REVENUE "shop:revenue"
#define DB_SHOP_CASH    "shop:cash"
#define DB_SHOP_EQUITY  "shop:equity"

/* One accepted change. Unharmed, version_before of a resource's rows counts up without gap or
 * repetition; two rows with one version_before are a fork, and a fork is a lost update. */
typedef struct db_ledger_row {
    int64_t id; /* given by the store, in commit order (PostgreSQL: of each resource) */
    char resource[DB_RESOURCE_MAX + 1]; /* "item:1", "account:12345", "shop:revenue" */
    char txn_id[DB_KEY_MAX + 1];        /* the idempotency key, or "task\t...",
                                           "reset\t...", "setting\t..." */
    db_kind kind;
    char order_id[DB_ID_MAX + 1];          /* "": about no order */
    char counterpart[DB_RESOURCE_MAX + 1]; /* where the money went or came from; "": stock */
    char reason[DB_REASON_MAX + 1], reference[DB_REFERENCE_MAX + 1]; /* the caller's; may be "" */
    int64_t delta, before, after, version_before;
    int64_t fence; /* 0: unfenced */
    int64_t epoch;
    char guard[DB_GUARD_MAX + 1];
    char instance[DB_INSTANCE_MAX + 1];
    int64_t at_us;                 /* by the store's clock: db_tx_now_us() */
    char hash[DB_HASH_LENGTH + 1]; /* db_ledger_seal() */
} db_ledger_row;

/* Makes the row's hash from all its other members but id, and from the hash of the row before it.
 * chain: that one's hash, then this one's. Two rows with one predecessor are two heirs: a fork.
 * The predecessor is the last row of the same resource; of a shop's row, the other leg of its
 * transaction. The hash is the SHA-256 of a text that README.md describes. */
void db_ledger_seal(db_ledger_row *row, char chain[DB_HASH_LENGTH + 1]);
/* The hash alone, to check it. predecessor: a hash, or '' for the first row. */
void db_ledger_hash(const db_ledger_row *row, const char *predecessor,
                    char ret[DB_HASH_LENGTH + 1]);
/* The shop's leg of a sealed row of an account, sealed: the counterpart gets what the account
 * lost. delta is not INT64_MIN. */
void db_ledger_shop_leg(const db_ledger_row *row, db_ledger_row *ret);

#endif
