#include "follow_command.h"
#include "beside.h"
#include "classroom.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

static void greet(const struct classroom *classroom)
{
    printf("The class follows at %s\n" FOLLOW_READY
           ", for this machine and its key alone (Chinese: /zh/index.html):\n  %s\n",
           classroom_url(classroom), classroom_presenter_url(classroom));
    fflush(stdout);
}

int follow_command(const struct options *options)
{
    char path[4096], message[CLASSROOM_MESSAGE_MAX];
    struct classroom *classroom;
    sigset_t ends;
    int signal;
    const char *site =
        beside("loadgen", "site", "--site", options->site, R_OK | X_OK, path, sizeof path);
    if (site == NULL)
        return EXIT_FAILURE;
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &ends, NULL); /* also in the thread that serves */
    if (classroom_open(site, options->follow, NULL, &classroom, message) != 0) {
        fprintf(stderr, "loadgen: %s\n", message);
        return EXIT_FAILURE;
    }
    greet(classroom);
    sigwait(&ends, &signal);
    classroom_close(classroom);
    return EXIT_SUCCESS;
}
