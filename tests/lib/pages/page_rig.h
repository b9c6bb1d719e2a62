/* The service with its page in a real browser, on private servers. */
#ifndef PAGE_RIG_H
#define PAGE_RIG_H

#include "browser.h"
#include "shop.h"

enum {
    PAGE_WAIT_MS = 60000, /* for what must come, even on a busy machine */
    PAGE_SALE_MS = 100000 /* for the end of a sale */
};

/* One per test binary. */
extern struct page_rig {
    struct shop shop;
    struct browser browser;
} page;

/* Opens one service without lanes and with these further arguments, NULL-terminated ("--demo",
 * "--lab"). For further instances: shop_instance(). 0 or -1; call page_close() in both cases. */
int page_open(const char *const *args);
/* Group set-ups of cmocka:
 * - page_open_demo(): with --demo and --lab
 * - page_open_lab(): with --lab alone
 * - page_open_serve(): `loadgen serve` starts the service and ends it */
int page_open_demo(void **state);
int page_open_lab(void **state);
int page_open_serve(void **state);
/* Group tear-down: 0, or -1 if a service failed or a sanitizer reported an error in it. */
int page_close(void **state);

/* Loads a page of the service ("/?lang=en", "/web/steps.html") and waits until it is ready and
 * receives events of the service. False: not within PAGE_WAIT_MS. */
bool page_go(const char *path);

/* Clicks the first element of the selector, or chooses a value in it. */
void page_click(const char *selector);
void page_choose(const char *selector, const char *value);

/* Waits until this expression (ENDED) is true in the page: the sale has ended. False: not within
 * PAGE_SALE_MS; the page's text is then printed. */
bool page_sold(const char *ended);

/* True if the ith pane's text about its fault matches this regular expression. If it does not, the
 * text is printed. */
bool page_told(int i, const char *words);

/* Presses "Save as a file" and opens the file that the page saves. False: there was no file. */
bool page_open_saved(void);

/* Saves a picture of the whole page in a window of this size as build/page/NAME.png. The window
 * keeps the size. False: the charts were not redrawn within PAGE_WAIT_MS. */
bool page_picture(const char *name, int width, int height);

/* -- in the page's script ------------------------------------------------------------------------
 */

#define PANE(i) "document.querySelectorAll('.pane')[" #i "]"
/* FIGURE: one of its numbers ("lost", "sold"). TOLD: its text about the fault matches. */
#define FIGURE(i, name)                                                                            \
    "Number(" PANE(i) ".querySelector('[data-is=" name "]').textContent.replace(/,/g, ''))"
#define TOLD(i, words) "/" words "/.test(" PANE(i) ".querySelector('.told').textContent)"

/* CAN_SAVE: the run is over. ENDED: both of its sales have a verdict, too. */
#define CAN_SAVE "!document.getElementById('save').disabled"
#define ENDED                                                                                      \
    CAN_SAVE " && [...document.querySelectorAll('.pane')].every("                                  \
             "pane => /good|bad/.test(pane.dataset.state) && "                                     \
             "/[✓✗]/.test(pane.querySelector('.verdict').textContent))"

/* The text after a fault stopped a holder and another request entered meanwhile. */
#define HELD "held just before its write"
#define INTERRUPTED                                                                                \
    HELD ".*got in and wrote.*(It wrote|read again, and wrote|late write was refused)"

#endif
