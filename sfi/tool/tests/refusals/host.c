/* host PLUGIN: does everything again and again, while the kernel refuses it memory: the first time at the first request, then at the second, and so on,
 * until all of it is done. The process lives on; whatever does not work says why. */
#define _GNU_SOURCE
#include <errno.h>
#include <pebble_host.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Requests until one is refused; negative: none is. And whether all after it are. */
static long left = -1;
static int lasting, happened;

static int refused(void) {
    if (left < 0)
        return 0;
    if (left > 0) {
        left--;
        return 0;
    }
    if (!lasting)
        left = -1;
    happened = 1;
    errno = ENOMEM;
    return 1;
}

void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
    return refused() ? MAP_FAILED : (void *)syscall(SYS_mmap, at, bytes, protection, flags, file, offset);
}

void *mmap64(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
    return mmap(at, bytes, protection, flags, file, offset);
}

int mprotect(void *at, size_t bytes, int protection) {
    /* Taking rights away is never refused for want of memory by itself. */
    return protection && refused() ? -1 : (int)syscall(SYS_mprotect, at, bytes, protection);
}

int memfd_create(const char *name, unsigned flags) {
    return refused() ? -1 : (int)syscall(SYS_memfd_create, name, flags);
}

int ftruncate(int file, off_t bytes) {
    return refused() ? -1 : (int)syscall(SYS_ftruncate, file, bytes);
}

int ftruncate64(int file, off_t bytes) {
    return ftruncate(file, bytes);
}

static _Alignas(4096) unsigned char picture[4096];

/* What does not work, or NULL. */
static const char *all(const char *path) {
    static char why[1000];
    const char *failed = "pbl_imports_new";
    pbl_imports *imports = pbl_imports_new();
    pbl_module *module = pbl_module_open(path, imports);
    pbl_instance *plugin = module ? pbl_instance_new(module) : NULL;
    pbl_portal *sum = plugin ? pbl_portal_open(plugin, "sum_of_squares", "npi") : NULL;
    pbl_portal *crash = sum ? pbl_portal_open(plugin, "crash", NULL) : NULL;
    pbl_portal *brighten = crash ? pbl_portal_open(plugin, "brighten", "smwii") : NULL;
    pbl_region *region = brighten ? pbl_region_new(5000) : NULL;
    pbl_lent *lent = region ? pbl_lend(picture, sizeof picture, 1) : NULL;
    if (!lent) {
        failed = strcpy(why, pbl_error());
    } else {
        pbl_outcome first = pbl_call(sum, 10), second = {0, 0}, third = {0, 0};
        if (first.status)
            failed = strcpy(why, pbl_why(first));
        else if ((second = pbl_call(brighten, pbl_lent_word(lent), sizeof picture, 1)).status)
            failed = strcpy(why, pbl_why(second));
        else if (pbl_region_share(region, plugin, 1) == 0)
            failed = strcpy(why, pbl_error());
        else if ((third = pbl_call(crash, 0)).status != PBL_FAULT)
            failed = third.status ? strcpy(why, pbl_why(third)) : "no fault";
        else if (pbl_instance_reset(plugin))
            failed = strcpy(why, pbl_error());
        else if ((first = pbl_call(sum, 10)).status)
            failed = strcpy(why, pbl_why(first));
        else
            failed = first.value == 385 ? NULL : "a wrong sum";
    }
    if (lent)
        pbl_lent_end(lent);
    pbl_region_free(region);
    pbl_portal_free(brighten);
    pbl_portal_free(crash);
    pbl_portal_free(sum);
    pbl_instance_free(plugin);
    pbl_module_free(module);
    pbl_imports_free(imports);
    return failed;
}

/* After all that was tried twice. */
static int forks(void) {
    pid_t child = fork();
    if (!child)
        _exit(0);
    int status = 1;
    return waitpid(child, &status, 0) != child || status;
}

struct round {
    const char *path, *why;
    long refuse;
};

/* Each in a thread of its own, that has no stacks yet. */
static void *begin(void *argument) {
    struct round *round = argument;
    left = round->refuse;
    happened = 0;
    round->why = all(round->path);
    left = -1;
    return NULL;
}

int main(int count, char **arguments) {
    lasting = count > 2;
    for (long refuse = 0; refuse < 1000; refuse++) {
        struct round round = {arguments[1], NULL, refuse};
        pthread_t thread;
        if (pthread_create(&thread, NULL, begin, &round))
            return 2;
        pthread_join(thread, NULL);
        printf("%ld: %s\n", refuse, round.why ? round.why : "done");
        fflush(stdout);
        if (!happened)
            return round.why ? 1 : forks();
    }
    return 3;
}
