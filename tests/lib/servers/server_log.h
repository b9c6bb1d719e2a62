/* What a server of the sandbox has printed. */
#ifndef TEST_SERVER_LOG_H
#define TEST_SERVER_LOG_H

#include "sandbox_process.h"

/* Its first 16 KiB; "": nothing yet. Valid until the next call; for one thread. */
const char *server_log(const struct sandbox_server *server);

#endif
