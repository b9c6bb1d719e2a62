/* The list of guards, and opening a guard by name. */
#include "providers.h"
#include "tests.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

TEST_THAT(an_unknown_guard_is_refused_with_the_known_names)
{
    const char *const unknown[] = {"redis-tokens", "", NULL};
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++) {
        lk_client *client = NULL;
        lk_error error;
        assert_int_equal(lk_open(unknown[i], NULL, NULL, &client, &error), LK_INVALID);
        assert_int_equal(error.status, LK_INVALID);
        assert_null(client);
        for (size_t n = 0; lk_provider_at(n); n++)
            assert_non_null(strstr(error.message, lk_provider_at(n)->name));
    }
    lk_client *client;
    assert_int_equal(lk_open("no-such-guard", NULL, NULL, &client, NULL), LK_INVALID);
}

TEST_THAT(each_guard_is_found_by_its_name_and_tells_what_it_is)
{
    static const char *const names[] = {"mutex",           "redis-setnx",     "redis-setnx-expire",
                                        "redis-set",       "redis-getset",    "redis-token",
                                        "redis-reentrant", "redis-fair",      "redis-readwrite",
                                        "redis-semaphore", "sql-unique",      "sql-unique-forever",
                                        "pg-advisory",     "pg-advisory-xact"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const lk_provider_info *info = lk_provider_find(names[i]);
        assert_non_null(info);
        assert_string_equal(info->name, names[i]);
        assert_true(strlen(info->algorithm) > 10 && strlen(info->guarantee) > 10);
        assert_true(strlen(info->weakness) > 10 && strlen(info->source) > 10);
    }
    assert_null(lk_provider_find("redis"));
    assert_null(lk_provider_at(100));
}

/* The core relies on these rules. */
TEST_THAT(claims_and_functions_agree)
{
    for (size_t i = 0; lk_providers[i]; i++) {
        const lk_provider *provider = lk_providers[i];
        assert_ptr_equal(lk_provider_builtin(provider->info.name), provider);
        uint32_t caps = provider->info.caps;
        assert_true(caps < 1u << LK_CAP_COUNT);
        assert_non_null(provider->open);
        assert_non_null(provider->close);
        assert_non_null(provider->try_acquire);
        assert_non_null(provider->release);
        assert_true(!(caps & LK_CAP_RENEW) || (provider->renew && (caps & LK_CAP_LEASE)));
        /* ZooKeeper's fence is the server's own count of changes, which no client can raise. */
        assert_true(!(caps & LK_CAP_FENCE) || provider->raise_fence ||
                    strncmp(provider->info.name, "zk-", 3) == 0);
        assert_true(!(caps & LK_CAP_WAKES) || provider->wait);
        assert_int_equal((caps & LK_CAP_SESSION) != 0, provider->alive != NULL);
        assert_true(!(caps & LK_CAP_ATOMIC_LEASE) || (caps & LK_CAP_LEASE));
        assert_true(!provider->wait_end || provider->wait);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(provider->info.name, lk_providers[j]->info.name);
    }
    assert_null(lk_provider_builtin("none"));
    assert_null(lk_provider_builtin(NULL));
}

TEST_THAT(each_capability_has_its_own_bit_and_name)
{
    const lk_cap_info *caps = lk_cap_list();
    uint32_t seen = 0;
    for (size_t i = 0; i < LK_CAP_COUNT; i++) {
        assert_int_equal(caps[i].bit, 1u << i);
        assert_true(strlen(caps[i].name) > 0 && strlen(caps[i].text) > 0);
        seen |= caps[i].bit;
    }
    assert_int_equal(seen, (1u << LK_CAP_COUNT) - 1);
    assert_int_equal(caps[LK_CAP_INDEX_FENCE].bit, LK_CAP_FENCE);
}

TEST_THAT(every_outcome_and_cause_has_a_text)
{
    for (lk_status status = LK_OK; status <= LK_NO_MEMORY; status++)
        assert_true(strlen(lk_status_text(status)) > 1);
    for (lk_loss loss = LK_LOSS_EXPIRED; loss <= LK_LOSS_MAX_HOLD; loss++)
        assert_true(strlen(lk_loss_text(loss)) > 1);
    assert_string_equal(lk_status_text((lk_status)99), "no such status");
    assert_string_equal(lk_loss_text((lk_loss)99), "no such cause");
    assert_string_equal(lk_pending_text((lk_pending)99), "no such state");
}

/* Tokens are made of these numbers, so parent and child must not draw the same ones. */
TEST_THAT(a_forked_child_draws_other_random_numbers_than_its_parent)
{
    const lk_env *env = lk_env_system();
    int ends[2];
    uint64_t of_child, of_parent;
    env->sleep_us(env->ctx, 0); /* what is over is not waited for */
    env->sleep_us(env->ctx, -1);
    env->random(env->ctx);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        uint64_t value = env->random(env->ctx);
        _exit(write(ends[1], &value, sizeof value) == (ssize_t)sizeof value ? 0 : 1);
    }
    assert_int_equal(read(ends[0], &of_child, sizeof of_child), sizeof of_child);
    of_parent = env->random(env->ctx);
    assert_true(of_child != of_parent);
    assert_int_equal(waitpid(child, NULL, 0), child);
    close(ends[0]);
    close(ends[1]);
}
