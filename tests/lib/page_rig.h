/* The service with its page in a real browser, on private servers. */
#ifndef PAGE_RIG_H
#define PAGE_RIG_H

#include "browser.h"
#include "shop.h"

enum { PAGE_WAIT_MS = 60000 }; /* for what must come, whatever else the machine does */

struct page_rig {
    struct shop shop;
    struct browser browser;
};

/* One service without lanes and with these further arguments, NULL-terminated ("--demo", "--lab");
 * further ones: shop_instance(). 0 or -1; page_close() is due either way. */
int page_open(struct page_rig *rig, const char *const *args);
/* The same with what `loadgen serve` starts: it is the rig's service, and ends the other one. */
int page_open_serve(struct page_rig *rig);
/* 0, or -1 when a service did not end well, which also means that a sanitizer complained. */
int page_close(struct page_rig *rig);

/* Loads a page of the service ("/?lang=en", "/web/steps.html") and waits until it is ready and
 * hears from the service. False: it was not within PAGE_WAIT_MS. */
bool page_go(struct page_rig *rig, const char *path);

/* Clicks, or chooses a value in, the first element that the selector names. */
void page_click(struct page_rig *rig, const char *selector);
void page_choose(struct page_rig *rig, const char *selector, const char *value);

/* Does the ith pane tell of its fault what this regular expression wants? If not, what it tells is
 * printed. */
bool page_told(struct page_rig *rig, int i, const char *words);

/* Presses "Save as a file", and opens what the page hands over as a file. False: it did not come.
 */
bool page_open_saved(struct page_rig *rig);

/* Keeps build/page/NAME.png: how all of the page looks in a window of this size, which stays.
 * False: its charts did not follow within PAGE_WAIT_MS. */
bool page_picture(struct page_rig *rig, const char *name, int width, int height);

#endif
