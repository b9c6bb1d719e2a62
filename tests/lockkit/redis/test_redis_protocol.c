/* Encoded commands equal those of hiredis; numbers in them equal those of printf. */
#include "digits.h"
#include "redis_guard.h"
#include "redis_protocol.h"
#include "tests.h"

#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 120, WORD_MAX = 2000 };

static void assert_same(int n, const char **words)
{
    char *expected;
    lk_redis_encoded encoded;
    int length = redisFormatCommandArgv(&expected, n, words, NULL);
    assert_true(length > 0);
    assert_true(lk_redis_encode(&encoded, n, words));
    assert_int_equal(encoded.length, length);
    assert_memory_equal(encoded.bytes, expected, encoded.length);
    lk_redis_encoded_free(&encoded);
    redisFreeCommand(expected);
}

TEST_THAT(words_of_every_length_are_framed_as_hiredis_does)
{
    static char word[WORD_MAX + 1];
    for (size_t length = 0; length <= WORD_MAX; length++) { /* beyond the buffer on the stack */
        memset(word, 'x', length);
        word[length] = '\0';
        assert_same(2, (const char *[]){"GET", word});
    }
}

TEST_THAT(many_words_are_framed_as_hiredis_does)
{
    const char *words[WORDS_MAX];
    for (int n = 1; n <= WORDS_MAX; n++) {
        words[n - 1] = n % 3 == 0 ? "" : "lock:item:1";
        assert_same(n, words);
    }
}

TEST_THAT(usual_commands_need_no_heap)
{
    lk_redis_encoded encoded;
    static const char sha[] = "0123456789012345678901234567890123456789";
    assert_true(
        lk_redis_encode(&encoded, 7,
                        (const char *[]){"EVALSHA", sha, "2", "lock:account:12345",
                                         "{lock:account:12345}:fence", "client:1:1", "30000"}));
    assert_ptr_equal(encoded.bytes, encoded.own);
    lk_redis_encoded_free(&encoded);
}

static void assert_same_digits(uint64_t number)
{
    char expected[LK_REDIS_NUMBER_MAX], written[LK_REDIS_NUMBER_MAX];
    snprintf(expected, sizeof expected, "%" PRIu64, number);
    *lk_put_digits(written, number, 10) = '\0';
    assert_string_equal(written, expected);
    snprintf(expected, sizeof expected, "%" PRIx64, number);
    *lk_put_digits(written, number, 16) = '\0';
    assert_string_equal(written, expected);
    snprintf(expected, sizeof expected, "%" PRId64, (int64_t)number);
    assert_string_equal(lk_redis_number(written, (int64_t)number), expected);
}

TEST_THAT(numbers_are_written_as_printf_does)
{
    for (int bits = 0; bits < 64; bits++) {
        uint64_t number = UINT64_C(1) << bits;
        assert_same_digits(number - 1);
        assert_same_digits(number);
        assert_same_digits(0 - number);
    }
    for (uint64_t number = 1; number < UINT64_MAX / 10; number *= 10) {
        assert_same_digits(number - 1);
        assert_same_digits(number);
    }
}
