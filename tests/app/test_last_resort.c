/* A process that would wait for ever ends in its time. */
#include "last_resort.h"
#include "process.h"
#include "tests.h"

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AFTER_MS = 1100 }; /* a second, and some of the next */

TEST_THAT(a_process_that_waits_for_ever_ends)
{
    int err[2], status = 0;
    char text[256] = "";
    assert_int_equal(pipe(err), 0);
    const int64_t began_ms = test_now_ms();
    const pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(err[1], STDERR_FILENO);
        close(err[0]);
        close(err[1]);
        last_resort_after(AFTER_MS);
        for (;;)
            pause();
    }
    close(err[1]);
    assert_true(read(err[0], text, sizeof text - 1) > 0);
    close(err[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(test_now_ms() - began_ms >= AFTER_MS);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 1);
    assert_non_null(strstr(text, "level=error event=stop-forced"));
}
