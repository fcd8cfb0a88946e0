/* From the first instruction to main, and out again; arguments and environment; memory for the C library. */
#include "internal.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

void __libc_init_array(void);
int main(int argc, char **argv, char **environment);

char **environ;

char __alone;
extern char __pebble_exports_bytes[];

/* How many strings there are before an empty one, or the end of the start-up page, whose last byte is 0. */
static unsigned long count(const char *strings) {
    const char *end = __startup(STARTUP_END);
    unsigned long number = 0;
    for (; strings < end && *strings != 0; strings += strlen(strings) + 1)
        number++;
    return number;
}

/* Fills the array with so many strings and a null pointer; where they end. */
static char *point(char **array, unsigned long number, char *next) {
    for (unsigned long i = 0; i < number; i++) {
        array[i] = next;
        next += strlen(next) + 1;
    }
    array[number] = NULL;
    return next;
}

__attribute__((noreturn)) void __pebble_start(void) {
    unsigned long argc = *(unsigned long *)__startup(STARTUP_ARGC);
    char *argv[argc + 1];
    char *variables = point(argv, argc, __startup(STARTUP_ARGS));
    unsigned long number = count(variables);
    char *environment[number + 1];
    point(environment, number, variables);
    environ = environment;
    unsigned long exports = (unsigned long)__pebble_exports_bytes;
    __asm__("" : "+r"(exports)); /* no compiler believes that something is at address 0 */
    __alone = exports == 0;
    __libc_init_array();
    errno = 0; /* as the standard wants it */
    exit(main((int)argc, argv, environment));
}

int __lost[3];

/* Who has lost what it said has not succeeded. Where it had nobody else to tell why, the process server does. */
void _exit(int status) {
    int error = __lost[2] != 0 ? __lost[2] : status == 0 ? __lost[1] : 0;
    unsigned long word = error != 0 && status == 0 ? EXIT_FAILURE : (unsigned long)status & 0xffffffff;
    for (;;)
        portal_call(SYS_EXIT, word | (unsigned long)error << 32);
}

void *sbrk(ptrdiff_t bytes) { return (void *)__checked(portal_call(SYS_SBRK, bytes)); }

int get_asid(void) { return (int)portal_call(SYS_GET_ASID).value; }

int get_thread_id(void) { return (int)portal_call(SYS_GET_THREAD_ID).value; }

/* For abort: the only process that can be signalled is oneself. That fault is told with registers and stack, an exit is not. */
pid_t getpid(void) { return get_asid(); }

__attribute__((noinline)) int kill(pid_t pid, int signal) {
    if (pid == getpid()) {
        if (signal == SIGABRT)
            PEBBLE_ABORT();
        _exit(128 + signal);
    }
    errno = EPERM;
    return -1;
}

/* An abort that no handler takes is a fault as well (flags.toml has the linker call this for raise). */
int __real_raise(int signal);
int __wrap_raise(int number) {
    if (number == SIGABRT) {
        void (*handler)(int) = signal(SIGABRT, SIG_DFL);
        if (handler == SIG_DFL)
            kill(getpid(), SIGABRT);
        signal(SIGABRT, handler);
    }
    return __real_raise(number);
}
