/* seckilld without the gathering of the log's writes: SQLite's own VFS writes them. */
#include "sqlite.h"

const char *log_gathering_vfs(void)
{
    return NULL;
}
