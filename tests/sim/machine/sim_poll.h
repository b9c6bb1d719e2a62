/* poll(2) and ppoll(2) on the descriptors of the simulated kernel. Each kind has a range of them.
 */
#ifndef SIM_POLL_H
#define SIM_POLL_H

#include <stdint.h>

/* ready: which of the events are there, and POLLHUP. */
void sim_poll_add(int first, int n, short (*ready)(int fd, short events));
/* Something has changed for who polls this descriptor. */
void sim_poll_wake(int fd);

/* What is there now, of these events. */
short sim_poll_ready(int fd, short events);
/* Until something has changed for any descriptor. */
void sim_poll_wait(int64_t until_us);

#endif
