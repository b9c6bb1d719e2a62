/*
 * A store on power_vfs.h through several processes, for the tests of power cuts: its changes, which
 * of them were acknowledged, images of possible power cuts, and the check of an image.
 */
#ifndef TESTS_DB_POWER_WORLD_H
#define TESTS_DB_POWER_WORLD_H

#include "db_audit.h"
#include "fixture.h"
#include "power_vfs.h"

enum {
    ACCOUNTS = 6,
    CHANGES = 400, /* per world, at most */
    TAKEN = 20     /* images per life, at most */
};

struct taken {
    struct power_image image;
    bool told[CHANGES];
    uint64_t event;
};

struct world {
    char folder[64], file[96], image_file[96];
    bool shared, normal; /* normal: not each commit is flushed, see db_options.sync */
    db *store;           /* of the active process */
    db_reader *reader;
    db *other_store; /* of the other sharer, if any */
    db_reader *other_reader;
    bool told[CHANGES]; /* the change was acknowledged or found stored: it must stay */
    int n_changes;
    struct taken taken[TAKEN];
    int n_taken, one_in; /* one_in: on average every nth moment is taken as an image */
    uint64_t images, told_in_images, kills, outlived, cuts, refused, unknown;
};

static struct world world;

/* -- images ----------------------------------------------------------------------------------- */

static inline void take_image(void)
{
    struct taken *taken = &world.taken[world.n_taken++];
    taken->image = power_cut(world.file);
    taken->event = power.events;
    memcpy(taken->told, world.told, sizeof world.told);
}

static inline void tell(int change)
{
    pthread_mutex_lock(&power_mutex);
    world.told[change] = true;
    pthread_mutex_unlock(&power_mutex);
}

static inline int count_bad_resource(void *arg, const db_audit_row *row)
{
    *(int *)arg += !row->ok;
    return 0;
}

/* The defect of an opened image; NULL: none. */
static inline const char *look_at(db_reader *reader, const char *file, const struct taken *taken)
{
    static char lost[64];
    sqlite3 *handle;
    sqlite3_stmt *statement;
    int bad = 0;
    assert_int_equal(SQLITE_OK, sqlite3_open(file, &handle));
    const bool whole =
        sqlite3_prepare_v2(handle, "PRAGMA integrity_check", -1, &statement, NULL) == SQLITE_OK &&
        sqlite3_step(statement) == SQLITE_ROW &&
        strcmp((const char *)sqlite3_column_text(statement, 0), "ok") == 0;
    sqlite3_finalize(statement);
    sqlite3_close(handle);
    if (!whole)
        return "malformed";
    if (db_audit(reader, NULL, count_bad_resource, &bad, NULL) != DB_OK || bad != 0)
        return "the audit finds damage";
    for (int i = 0, gone = -1; i < CHANGES; i++) {
        char key[16];
        db_answer answer;
        snprintf(key, sizeof key, "k%d", i);
        if (!taken->told[i])
            continue;
        world.told_in_images++;
        const bool there = db_read_answer(reader, key, &answer) == DB_OK;
        if (world.normal ? there && gone >= 0 : !there) {
            snprintf(lost, sizeof lost, "k%d, which was told%s, is gone", world.normal ? gone : i,
                     world.normal ? " before one that is there" : "");
            return lost;
        }
        if (!there)
            gone = i;
    }
    return NULL;
}

static inline db_options options_of(const char *url)
{
    return (db_options){.url = url,
                        .sync = world.normal ? DB_SYNC_NORMAL : DB_SYNC_FULL,
                        .shared_file = world.shared,
                        .log_pages = 6,
                        .busy_ms = 50};
}

static inline const char *look_at_image(const struct taken *taken)
{
    static db_error error;
    char url[112];
    db *store;
    db_reader *reader;
    const char *wrong = error.message;
    snprintf(url, sizeof url, "sqlite:%s", world.image_file);
    power_restore(&taken->image, world.image_file);
    const db_options options = options_of(url);
    if (db_open(&options, &store, &error) == DB_OK) {
        assert_int_equal(DB_OK, db_reader_open(store, &reader, NULL));
        wrong = look_at(reader, world.image_file, taken);
        db_reader_close(reader);
        db_close(store);
    }
    power_forget(world.image_file);
    world.images++;
    return wrong;
}

/* The defect that the next start would find after a power cut now; NULL: none. */
static inline const char *look_after_cut(void)
{
    world.n_taken = 0;
    take_image();
    const char *wrong = look_at_image(&world.taken[0]);
    power_image_free(&world.taken[0].image);
    return wrong;
}

/* -- a life ----------------------------------------------------------------------------------- */

static inline bool open_store(void)
{
    char url[112];
    snprintf(url, sizeof url, "sqlite:%s", world.file);
    const db_options options = options_of(url);
    if (db_open(&options, &world.store, NULL) != DB_OK)
        return false;
    if (db_reader_open(world.store, &world.reader, NULL) == DB_OK)
        return true;
    db_close(world.store);
    return false;
}

/* Makes the other sharer the active process. */
static inline void switch_store(void)
{
    db *store = world.store;
    db_reader *reader = world.reader;
    world.store = world.other_store;
    world.reader = world.other_reader;
    world.other_store = store;
    world.other_reader = reader;
}

/* Marks all stored changes as told, as clients learn them by repeating their keys. */
static inline void tell_what_is_stored(void)
{
    for (int i = 0; i < world.n_changes; i++) {
        char key[16];
        db_answer answer;
        snprintf(key, sizeof key, "k%d", i);
        if (db_read_answer(world.reader, key, &answer) == DB_OK)
            tell(i);
    }
}

static inline db_status work_accounts(db_tx *tx, void *arg)
{
    (void)arg;
    db_status status = DB_OK;
    for (int i = 0; i < ACCOUNTS && status == DB_OK; i++) {
        db_account account = {.initial_balance = 1000};
        snprintf(account.id, sizeof account.id, "a%d", i);
        status = db_tx_reset_account(tx, &account, "none", "test");
    }
    return status;
}

/* Makes n changes in one commit, each of another account. */
static inline void change(int n)
{
    struct change changes[ACCOUNTS];
    db_job jobs[ACCOUNTS];
    char keys[ACCOUNTS][16];
    const int first = world.n_changes;
    for (int i = 0; i < n; i++) {
        char id[16];
        snprintf(id, sizeof id, "a%d", i);
        snprintf(keys[i], sizeof keys[i], "k%d", first + i);
        changes[i] = (struct change){
            .delta = -1, .txn_id = keys[i], .how.expected_version = -1, .with_answer = true};
        if (db_read_account(world.reader, id, &changes[i].account) != DB_OK)
            return;
        jobs[i] = (db_job){.work = work_change, .arg = &changes[i]};
    }
    world.n_changes += n;
    db_run_many(world.store, jobs, (size_t)n);
    for (int i = 0; i < n; i++) {
        if (jobs[i].status == DB_OK)
            tell(first + i);
        else if (jobs[i].status == DB_UNKNOWN)
            world.unknown++;
        else
            world.refused++;
    }
}

static inline void close_store(void)
{
    db_reader_close(world.reader);
    db_close(world.store);
    world.store = NULL;
    world.reader = NULL;
}

/* Closes the killed process and continues with the other one. */
static inline void outlive(void)
{
    char lock[120];
    close_store();
    switch_store();
    power_thaw();
    snprintf(lock, sizeof lock, "%s-lock", world.file);
    if (power.slip == SLIP_NOT_MARKED)
        assert_int_equal(0, truncate(lock, 0));
    world.outlived++;
}

/* Creates a store with accounts and closes it cleanly. */
static inline void start_world(bool shared)
{
    power.victim = NULL;
    world.n_changes = 0;
    memset(world.told, 0, sizeof world.told);
    world.shared = shared;
    assert_true(open_store());
    assert_int_equal(DB_OK, db_run(world.store, work_accounts, NULL, NULL));
    close_store();
    power_thaw();
    power.victim = world.file;
}

/* -- the folder ------------------------------------------------------------------------------ */

static inline int make_folder(void **state)
{
    (void)state;
    memset(&world, 0, sizeof world);
    snprintf(world.folder, sizeof world.folder, "/var/tmp/test-power-XXXXXX");
    if (mkdtemp(world.folder) == NULL)
        return -1;
    snprintf(world.file, sizeof world.file, "%s/store.db", world.folder);
    snprintf(world.image_file, sizeof world.image_file, "%s/image.db", world.folder);
    return 0;
}

static inline int remove_folder(void **state)
{
    (void)state;
    const char *const files[] = {world.file, world.image_file};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char lock[120];
        snprintf(lock, sizeof lock, "%s-lock", files[i]);
        unlink(lock);
        unlink(files[i]); /* the store makes it; what is in it is on the model of a disk */
    }
    return rmdir(world.folder);
}

#endif
