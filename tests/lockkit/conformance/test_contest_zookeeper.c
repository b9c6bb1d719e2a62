/* ZooKeeper guards contend with kazoo and Apache Curator, as lockkit/guards/README.md promises. */
#include "contest.h"
#include "lock_world.h"
#include "tests.h"

#define SEQUENTIAL "zk-sequential", .name = "/lockkit/sequential/" CONTEST_KEY
#define READWRITE  "zk-readwrite", .name = "/lockkit/readwrite/" CONTEST_KEY

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONTEST("curators_mutex_and_zk_sequential_exclude_each_other", SEQUENTIAL,
                .peer = CONTEST_JAVA " mutex"),
        CONTEST("curators_writer_and_ours_exclude_each_other", READWRITE,
                .peer = CONTEST_JAVA " writer"),
        CONTEST("curators_writer_and_our_reader_exclude_each_other", READWRITE,
                .peer = CONTEST_JAVA " writer", .mode = LK_SHARED),
        CONTEST("curators_reader_and_our_writer_exclude_each_other", READWRITE,
                .peer = CONTEST_JAVA " reader", .peer_reads = true),
        CONTEST("kazoos_lock_given_our_names_and_zk_sequential_exclude_each_other", SEQUENTIAL,
                .peer = CONTEST_PYTHON " kazoo"),
        CONTEST("kazoos_writer_given_our_names_and_ours_exclude_each_other", READWRITE,
                .peer = CONTEST_PYTHON " kazoo-writer"),
        CONTEST("kazoos_writer_given_our_names_and_our_reader_exclude_each_other", READWRITE,
                .peer = CONTEST_PYTHON " kazoo-writer", .mode = LK_SHARED),
        CONTEST("kazoos_reader_given_our_names_and_our_writer_exclude_each_other", READWRITE,
                .peer = CONTEST_PYTHON " kazoo-reader", .peer_reads = true),
        CONTEST("kazoos_lock_as_it_comes_walks_in", SEQUENTIAL,
                .peer = CONTEST_PYTHON " kazoo-as-it-comes", .walks_in = true),
        CONTEST("kazoos_writer_as_it_comes_walks_in", READWRITE,
                .peer = CONTEST_PYTHON " kazoo-writer-as-it-comes", .walks_in = true),
        CONTEST("kazoos_reader_as_it_comes_walks_in", READWRITE,
                .peer = CONTEST_PYTHON " kazoo-reader-as-it-comes", .peer_reads = true,
                .walks_in = true),
    };
    world = &family_zookeeper;
    return cmocka_run_group_tests(tests, world_open, world_close);
}
