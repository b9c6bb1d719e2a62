/* The service with its page in a real browser, on private servers. */
#ifndef PAGE_RIG_H
#define PAGE_RIG_H

#include "browser.h"
#include "shop.h"

enum {
    PAGE_WAIT_MS = 60000, /* for what must come, whatever else the machine does */
    PAGE_SALE_MS = 100000 /* for the end of a sale */
};

/* The one of a test binary. */
extern struct page_rig {
    struct shop shop;
    struct browser browser;
} page;

/* One service without lanes and with these further arguments, NULL-terminated ("--demo", "--lab");
 * further ones: shop_instance(). 0 or -1; page_close() is due either way. */
int page_open(const char *const *args);
/* Group set-ups of cmocka: with --demo and --lab, with --lab alone; and with what `loadgen serve`
 * starts, which is then the service, and ends the other one. */
int page_open_demo(void **state);
int page_open_lab(void **state);
int page_open_serve(void **state);
/* Group tear-down: 0, or -1 when a service did not end well, which also means that a sanitizer
 * complained. */
int page_close(void **state);

/* Loads a page of the service ("/?lang=en", "/web/steps.html") and waits until it is ready and
 * hears from the service. False: it was not within PAGE_WAIT_MS. */
bool page_go(const char *path);

/* Clicks, or chooses a value in, the first element that the selector names. */
void page_click(const char *selector);
void page_choose(const char *selector, const char *value);

/* Waits for the end of a sale, which is this expression in the page's script (ENDED). False: it did
 * not come within PAGE_SALE_MS; what the page says instead is printed. */
bool page_sold(const char *ended);

/* Does the ith pane tell of its fault what this regular expression wants? If not, what it tells is
 * printed. */
bool page_told(int i, const char *words);

/* Presses "Save as a file", and opens what the page hands over as a file. False: it did not come.
 */
bool page_open_saved(void);

/* Keeps build/page/NAME.png: how all of the page looks in a window of this size, which stays.
 * False: its charts did not follow within PAGE_WAIT_MS. */
bool page_picture(const char *name, int width, int height);

/* -- in the page's script ------------------------------------------------------------------------
 */

#define PANE(i) "document.querySelectorAll('.pane')[" #i "]"
/* One of its numbers ("lost", "sold"), and whether it tells of its fault what the expression wants.
 */
#define FIGURE(i, name)                                                                            \
    "Number(" PANE(i) ".querySelector('[data-is=" name "]').textContent.replace(/,/g, ''))"
#define TOLD(i, words) "/" words "/.test(" PANE(i) ".querySelector('.told').textContent)"

/* The run is over; and both of its sales have a verdict. */
#define CAN_SAVE "!document.getElementById('save').disabled"
#define ENDED                                                                                      \
    CAN_SAVE " && [...document.querySelectorAll('.pane')].every("                                  \
             "pane => /good|bad/.test(pane.dataset.state) && "                                     \
             "/[✓✗]/.test(pane.querySelector('.verdict').textContent))"

/* What is told when a holder was held, by whatever fault, and another one passed it. */
#define HELD        "held just before its write"
#define INTERRUPTED HELD ".*got in, read and decided.*(It wrote|read again, and wrote)"

#endif
