/*
 * Descriptors of the simulated processes: lock files beside a database (the locks of fcntl(2), and
 * a byte of content), eventfds, and sockets to simulated servers (sim_net.h).
 */
#ifndef SIM_FILES_H
#define SIM_FILES_H

#include <stdbool.h>
#include <stdint.h>

enum { SIM_FD_FIRST = 1000000, SIM_FDS_MAX = 256, SIM_LOCK_BYTES = 2 };

enum sim_fd_kind { SIM_FD_FREE, SIM_FD_LOCK_FILE, SIM_FD_EVENT, SIM_FD_SOCKET };

struct sim_fd {
    enum sim_fd_kind kind;
    int group;
    char path[192];              /* of a lock file */
    short locks[SIM_LOCK_BYTES]; /* F_UNLCK, F_RDLCK, F_WRLCK */
    uint64_t count;              /* of an eventfd */
    void *socket;
};

/* -1: none is free. */
int sim_fd_new(enum sim_fd_kind kind);
struct sim_fd *sim_fd_find(int fd); /* NULL: not ours */
/* The process has ended: the kernel closes what it had open. */
void sim_files_kill(int group);
/* A power cut: locks are gone, contents are not. */
void sim_files_begin(void);

#endif
