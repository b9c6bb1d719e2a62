/* The address at which a class finds this machine, and its picture. */
#include "lan.h"
#include "qr_svg.h"
#include "tests.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

TEST_THAT(a_text_that_no_code_holds_has_no_picture)
{
    static char text[8000];
    memset(text, 'x', sizeof text - 1);
    assert_null(qr_svg(text));
}

TEST_THAT(an_address_is_told_or_refused)
{
    static const char *const wrong[] = {
        "",        ":80",  "a b:80", "host:",    "host:x", "host:70000",
        "host:-1", "[::1", "[::1]x", "host:1:2", "[]:80"};
    struct lan_address address;
    char message[LAN_MESSAGE_MAX], text[300];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(lan_choose(wrong[i], &address, message), -1);
    assert_int_equal(lan_choose("[fd00::2]:80", &address, message), 0);
    lan_text(&address, false, text, sizeof text);
    assert_string_equal(text, "[fd00::2]:80");
    lan_text(&address, true, text, sizeof text);
    assert_string_equal(text, "[fd00::2]");
    assert_int_equal(lan_choose("192.0.2.2", &address, message), 0);
    assert_int_equal(address.port, LAN_DEFAULT_PORT);
}

/* Whatever addresses this machine has. */
TEST_THAT(without_an_address_one_of_this_machine_is_taken)
{
    struct lan_address address;
    char message[LAN_MESSAGE_MAX] = "";
    if (lan_choose(NULL, &address, message) != 0) {
        assert_non_null(strstr(message, "no address that others reach; name one"));
        return;
    }
    assert_int_equal(address.port, LAN_DEFAULT_PORT);
    assert_int_not_equal(strncmp(address.host, "127.", 4), 0);
    assert_string_not_equal(address.host, "::1");
    address.port = 0;
    int fd = lan_listen(&address, message);
    if (fd < 0)
        fail_msg("%s", message);
    assert_true(address.port > 0);
    close(fd);
}
