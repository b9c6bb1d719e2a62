/* The room: who is in it, where the presenter is, and what counts as a vote. */
#include "room.h"
#include "tests.h"

#include <stdio.h>
#include <string.h>

static struct room room;

static int empty(void **state)
{
    (void)state;
    return room_init(&room);
}

static struct room_client *enter(const char *address)
{
    return room_enter(&room, NULL, address, 0);
}

static int counted(void)
{
    int n = 0;
    for (int i = 0; i < room.choices; i++)
        n += room.counts[i];
    return n;
}

static void fill_all_places(void)
{
    for (int i = 0; i < ROOM_CLIENTS_MAX; i++) {
        char address[32];
        snprintf(address, sizeof address, "10.0.%d.%d", i / 250, i % 250);
        assert_non_null(enter(address));
    }
}

TEST_FIXTURE(empty, NULL);

TEST_THAT(a_full_room_refuses_until_somebody_has_gone)
{
    fill_all_places();
    assert_null(enter("10.1.0.1"));
    assert_null(room_enter(&room, NULL, "10.1.0.1", ROOM_GONE_MS));
    struct room_client *first = &room.clients[0];
    char id[ROOM_ID_MAX];
    snprintf(id, sizeof id, "%s", first->id);
    for (int i = 0; i < ROOM_CLIENTS_MAX; i++)
        if (i != 7)
            room.clients[i].seen_ms = ROOM_GONE_MS;
    assert_ptr_equal(room_enter(&room, NULL, "10.1.0.1", ROOM_GONE_MS + 1), &room.clients[7]);
    assert_string_equal(first->id, id);
    assert_int_equal(room.n_clients, ROOM_CLIENTS_MAX);
}

TEST_THAT(an_address_has_few_clients)
{
    for (int i = 0; i < ROOM_PER_ADDRESS_MAX; i++)
        assert_non_null(enter("10.0.0.1"));
    assert_null(enter("10.0.0.1"));
    assert_non_null(enter("10.0.0.2"));
    assert_non_null(room_enter(&room, NULL, "10.0.0.1", ROOM_GONE_MS + 1));
}

TEST_THAT(a_cookie_counts_at_its_own_address_only)
{
    const struct room_client *one = enter("10.0.0.1");
    assert_ptr_equal(room_enter(&room, one->id, "10.0.0.1", 1), one);
    assert_ptr_not_equal(room_enter(&room, one->id, "10.0.0.2", 1), one);
    assert_ptr_not_equal(room_enter(&room, "made-up", "10.0.0.1", 1), one);
}

TEST_THAT(who_has_not_asked_for_a_while_does_not_follow)
{
    enter("10.0.0.1");
    room_enter(&room, NULL, "10.0.0.2", ROOM_HERE_MS);
    assert_int_equal(room_followers(&room, ROOM_HERE_MS), 2);
    assert_int_equal(room_followers(&room, ROOM_HERE_MS + 1), 1);
}

TEST_THAT(only_a_place_of_a_site_is_a_position)
{
    static const char *const pages[] = {"",
                                        "index.html?x",
                                        "../index.html",
                                        "lesson/../x.html",
                                        "//evil.example/.html",
                                        "lesson/.html",
                                        "lesson/A.html",
                                        "matrix.html",
                                        "http://x/lesson/a.html"};
    const uint32_t seq = room.seq;
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++)
        assert_false(room_move(&room, pages[i], "late", 0));
    assert_false(room_move(&room, "index.html", "<b>", 0));
    assert_false(room_move(&room, "index.html", "", 0));
    assert_false(room_move(&room, "index.html", "late", -1));
    assert_false(room_move(&room, "index.html", "late", ROOM_STEP_MAX + 1));
    assert_false(room.shown);
    assert_true(room.seq == seq);
    assert_true(room_move(&room, "index.html", "late", 3));
    assert_true(room_move(&room, "lesson/lost-update.html", "redis-set.no-watchdog", 0));
    assert_true(room.seq == seq + 2);
}

TEST_THAT(two_votes_of_one_client_count_once)
{
    struct room_client *one = enter("10.0.0.1"), *other = enter("10.0.0.2");
    assert_true(room_ask(&room, "late", 4));
    assert_true(room_vote(&room, one, room.round, 1));
    assert_true(room_vote(&room, one, room.round, 2));
    assert_true(room_vote(&room, one, room.round, 2));
    assert_int_equal(counted(), 1);
    assert_int_equal(room.counts[2], 1);
    assert_true(room_vote(&room, other, room.round, 2));
    assert_int_equal(room.counts[2], 2);
}

TEST_THAT(only_the_open_question_takes_votes)
{
    struct room_client *one = enter("10.0.0.1");
    assert_false(room_vote(&room, one, 0, 0));
    assert_true(room_ask(&room, "late", 3));
    assert_false(room_vote(&room, one, room.round, 3));
    assert_false(room_vote(&room, one, room.round, -1));
    assert_false(room_vote(&room, one, room.round + 1, 0));
    assert_true(room_vote(&room, one, room.round, 0));
    assert_true(room_close(&room));
    assert_false(room_close(&room));
    assert_false(room_vote(&room, one, room.round, 1));
    assert_int_equal(room.counts[0], 1);
    room_clear(&room);
    assert_false(room_vote(&room, one, room.round, 1));
}

TEST_THAT(a_question_that_is_asked_again_starts_at_zero)
{
    struct room_client *one = enter("10.0.0.1");
    assert_false(room_ask(&room, "late", 1));
    assert_false(room_ask(&room, "late", ROOM_CHOICES_MAX + 1));
    assert_true(room_ask(&room, "late", 2));
    assert_true(room_vote(&room, one, room.round, 1));
    const uint32_t before = room.round;
    assert_true(room_ask(&room, "late", 2));
    assert_int_equal(counted(), 0);
    assert_false(room_vote(&room, one, before, 1));
    assert_true(room_vote(&room, one, room.round, 0));
    assert_int_equal(counted(), 1);
}

/* The counts would tell a phone what to vote for. */
TEST_THAT(a_client_sees_the_counts_once_the_question_is_closed)
{
    struct room_client *one = enter("10.0.0.1");
    assert_true(room_ask(&room, "late", 2));
    assert_true(room_vote(&room, one, room.round, 1));
    json_t *open = room_told(&room, one), *overview = room_overview(&room, 0);
    assert_null(json_object_get(json_object_get(open, "question"), "counts"));
    assert_int_equal(json_integer_value(json_object_get(json_object_get(open, "question"), "mine")),
                     1);
    assert_int_equal(json_integer_value(json_array_get(
                         json_object_get(json_object_get(overview, "question"), "counts"), 1)),
                     1);
    room_close(&room);
    json_t *closed = room_told(&room, one);
    assert_int_equal(
        json_array_size(json_object_get(json_object_get(closed, "question"), "counts")), 2);
    json_decref(open);
    json_decref(overview);
    json_decref(closed);
}
