#include "sim_archive.h"
#include "archive.h"
#include "sim_disk.h"
#include "sim_files.h"
#include "sim_threads.h"
#include "sim_world.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS                                                                                    \
    "id, resource, epoch, txn_id, delta, before, after, version_before, fence, guard, instance,"   \
    " kind, order_id, counterpart, reason, reference, at_us, hash"

enum { STEPS = 9 /* a kill comes within 2^STEPS steps */, SOON = 7, AGO_US = 400000 };

const char sim_archive[] = "/archive";

static struct {
    bool begun, running, ended;
    bool aim; /* it is killed soon after a flush of the file's folder */
    int group;
    int64_t kill_in, before_us; /* steps, 0: not at all; rows from before it are moved */
    db_status status;
    archive_moved moved;
    db_error error;
} archive;

void sim_archive_new(void)
{
    memset(&archive, 0, sizeof archive);
}

bool sim_archive_begun(void)
{
    return archive.begun;
}

static void *live(void *arg)
{
    char url[64];
    (void)arg;
    snprintf(url, sizeof url, "sqlite:%s", sim_store);
    const db_options options = {.url = url, .shared_file = sim_world.is.instances > 1};
    archive.status =
        archive_move(&options, archive.before_us, sim_archive, &archive.moved, &archive.error);
    archive.ended = true;
    archive.running = false;
    sim_wake(&archive, INT32_MAX);
    return NULL;
}

static void end_process(void)
{
    const int group = archive.group;
    archive.running = false;
    archive.kill_in = 0;
    sim_disk_kill(group);
    sim_files_kill(group);
    sim_wake(&archive, INT32_MAX);
    sim_kill(group);
}

void sim_archive_kill(void)
{
    if (!archive.running)
        return;
    sim_tell("the archive is killed");
    end_process();
}

void sim_archive_at_step(int group)
{
    if (archive.running && group == archive.group && archive.kill_in > 0 && --archive.kill_in == 0)
        sim_archive_kill();
}

void sim_archive_flushed(void)
{
    if (archive.running && archive.aim && sim_group() == archive.group)
        archive.kill_in = 1 + sim_below(1u << sim_below(SOON + 1));
}

static void run(int64_t before_us, int64_t kill_in, bool aim)
{
    if (sim_world.last_group + 1 == SIM_GROUPS_MAX)
        abort();
    archive.begun = archive.running = true;
    archive.ended = false;
    archive.group = ++sim_world.last_group;
    archive.before_us = before_us;
    archive.kill_in = kill_in;
    archive.aim = aim;
    archive.moved = (archive_moved){.rows = 0};
    archive.error = (db_error){.status = DB_OK};
    sim_tell("an archive begins");
    sim_spawn(archive.group, "archive", live, NULL);
    while (archive.running)
        sim_wait(&archive, SIM_FOREVER);
    if (!archive.ended)
        return;
    end_process();
    sim_tell("the archive has moved %lld rows: %s", (long long)archive.moved.rows,
             archive.status == DB_OK ? archive.moved.held : archive.error.message);
    if (archive.moved.rows > 0)
        sim_count(SIM_ARCHIVED);
    if (archive.moved.finished > 0)
        sim_count(SIM_ARCHIVE_RESUMED);
}

bool sim_archive_run(void)
{
    if (archive.running)
        return false;
    const int64_t now_us = sim_wall_begin_us + sim_now_us();
    const uint32_t how = sim_below(3);
    run(sim_one_in(2) ? now_us : now_us - sim_below(AGO_US),
        how == 0 ? 1 + sim_below(1u << sim_below(STEPS + 1)) : 0, how == 1);
    if (!archive.ended)
        sim_count(SIM_ARCHIVE_KILLED);
    return !archive.ended;
}

void sim_archive_finish(void)
{
    if (!archive.begun)
        return;
    run(sim_wall_begin_us + sim_now_us(), 0, false);
    if (archive.status != DB_OK)
        sim_broken("an archive that was begun does not end: %s", archive.error.message);
}

/* -- the judge --------------------------------------------------------------------------------- */

static const struct {
    const char *what, *sql;
} rules[] = {
    {"a row is in the store and in the archive",
     "SELECT resource || ' ' || id FROM main.ledger WHERE id IN (SELECT id FROM archived.ledger)"},
    {"a part in the archive is not out of the store",
     "SELECT part FROM archived.parts p WHERE NOT EXISTS (SELECT 1 FROM archives a WHERE a.part ="
     " p.part AND a.n = p.n AND a.last_id = p.last_id AND a.digest = p.digest)"},
    {"a part out of the store is not in the archive",
     "SELECT part FROM archives WHERE part NOT IN (SELECT part FROM archived.parts)"},
    {"a part has other rows than it says",
     "SELECT part FROM archived.parts p WHERE n <> (SELECT count(*) FROM archived.ledger l WHERE"
     " l.part = p.part)"},
    {"what is carried is not the sum of the rows that were moved",
     "SELECT m.resource FROM (SELECT resource, sum(delta) AS total FROM archived.ledger GROUP BY"
     " resource) m LEFT JOIN carried c ON c.resource = m.resource"
     " WHERE c.resource IS NULL OR c.total <> m.total"
     " UNION ALL SELECT resource FROM carried WHERE resource NOT IN (SELECT resource FROM"
     " archived.ledger)"},
    {"a movement of money is in the archive by half",
     "SELECT txn_id FROM archived.ledger WHERE counterpart <> '' GROUP BY txn_id"
     " HAVING count(*) <> 2 OR sum(delta) <> 0"},
};

static void apply(sqlite3 *store, const char *what, const char *sql)
{
    sqlite3_stmt *statement = NULL;
    int code = sqlite3_prepare_v2(store, sql, -1, &statement, NULL);
    if (code == SQLITE_OK && (code = sqlite3_step(statement)) == SQLITE_ROW)
        sim_broken("%s: %s", what, (const char *)sqlite3_column_text(statement, 0));
    else if (code != SQLITE_DONE)
        sim_broken("the judge cannot read the archive: %s", sqlite3_errmsg(store));
    sqlite3_finalize(statement);
}

void sim_archive_judge(sqlite3 *store)
{
    static const char attach[] = "PRAGMA temp_store = memory; ATTACH '/archive' AS archived";
    static const char unite[] =
        "CREATE TEMP TABLE ledger AS SELECT " COLUMNS " FROM main.ledger UNION ALL SELECT " COLUMNS
        " FROM archived.ledger";
    if (!archive.begun)
        return;
    if (sqlite3_exec(store, attach, NULL, NULL, NULL) != SQLITE_OK) {
        sim_broken("the judge cannot open the archive: %s", sqlite3_errmsg(store));
        return;
    }
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        apply(store, rules[i].what, rules[i].sql);
    if (sqlite3_exec(store, unite, NULL, NULL, NULL) != SQLITE_OK)
        sim_broken("the judge cannot read the archive: %s", sqlite3_errmsg(store));
}
