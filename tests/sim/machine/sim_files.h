/*
 * Descriptors of the simulated processes: lock files beside a database (the locks of fcntl(2), and
 * a byte of content), eventfds, and sockets to simulated servers (sim_net.h).
 */
#ifndef SIM_FILES_H
#define SIM_FILES_H

/* The process has ended: the kernel closes what it had open. */
void sim_files_kill(int group);
void sim_files_begin(void); /* no files, nothing open */

#endif
