/* The guard of memcached contends with pymemcache. */
#include "contest.h"
#include "lock_world.h"
#include "tests.h"

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONTEST("add_and_cas_of_pymemcache_and_ours_exclude_each_other", "memcached",
                .peer = CONTEST_PYTHON " pymemcache"),
    };
    world = &family_memcached;
    return cmocka_run_group_tests(tests, world_open, world_close);
}
