/*
 * pebble_host.h: fault domains in a C program.
 *
 * A module made by `pebble sfi cc` is loaded and verified, made into instances, and called through portals. Whatever it does, each call
 * comes back: status 0 and a value, or a status that says why there is none.
 *
 *     pbl_imports *imports = pbl_imports_new();
 *     pbl_module *module = pbl_module_open("plugin.pbl", imports);
 *     pbl_instance *plugin = pbl_instance_new(module);
 *     pbl_portal *add = pbl_portal_open(plugin, "add", "smii");
 *     pbl_outcome sum = pbl_call(add, 1, 2);
 *     if (sum.status) puts(pbl_why(sum));
 *
 * Functions that return a pointer return NULL on failure, those that return int a negative number; pbl_error() says why. Of a call pbl_why() does.
 * All functions may be called by any thread (what is freed is nobody's any more: by the last that uses it); pbl_error() and faults are the calling thread's. A portal keeps its instance, an instance its module.
 */
#ifndef PEBBLE_HOST_H
#define PEBBLE_HOST_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pbl_imports pbl_imports;
typedef struct pbl_module pbl_module;
typedef struct pbl_instance pbl_instance;
typedef struct pbl_portal pbl_portal;
typedef struct pbl_policy pbl_policy;
typedef struct pbl_region pbl_region;

/* What a call returns. The value means nothing unless the status is PBL_OK. */
typedef struct {
    uint64_t value;
    uint64_t status;
} pbl_outcome;

enum {
    PBL_OK = 0,
    PBL_FAULT = 1,    /* the module did something wrong, or ran out of time: see pbl_fault_take */
    PBL_NO_STACK = 2, /* no stack for this thread in the instance */
    PBL_NOT_LENT = 3, /* a window could not be lent */
    PBL_REENTERED = 4, /* called by a signal handler that has interrupted a domain, a portal or this library on its thread */
    PBL_NO_CLOCK = 5  /* there is a deadline, and no thread could be started to watch it: nothing has run */
};

enum pbl_cause {
    PBL_CAUSE_MEMORY = 1,
    PBL_CAUSE_ARITHMETIC,
    PBL_CAUSE_INSTRUCTION,
    PBL_CAUSE_RETURN_STACK,
    PBL_CAUSE_DATA_STACK,
    PBL_CAUSE_DEADLINE,
    PBL_CAUSE_CANCELLED,
    PBL_CAUSE_IMPORT,
    PBL_CAUSE_LONGJMP,
    PBL_CAUSE_EXIT,
    PBL_CAUSE_ABORT,
    PBL_CAUSE_NESTING,
    PBL_CAUSE_CHECK,
    PBL_CAUSE_LIMIT
};

/* Why the last call of this thread did not end by itself. If the instance was poisoned before (pbl_instance_poisoned), that is the cause, the
 * text says "poisoned by an earlier fault", and the function is the one that was to be called: it has not run. If a call
 * nested in this one, or on another thread, poisoned it meanwhile, that is the cause, and the text says "in another call". If a deadline
 * or a cancellation has ended the call while it was in another instance, that is the one named, with the place in it (pbl_instance_number says which). */
typedef struct {
    uint32_t cause;
    int32_t signal;
    uint32_t instance;
    uint32_t line;       /* 0 if there is no debug information */
    uint64_t at;         /* where it was executing: an address of the module's file */
    uint64_t address;    /* what it touched; for PBL_CAUSE_CHECK, what it would have */
    char module[128];
    char function[128];
    uint64_t offset;     /* in the function */
    char file[256];
    char text[512];      /* all this in one line */
    int32_t status;      /* what it has called exit with, for PBL_CAUSE_EXIT */
    uint32_t rest;
} pbl_fault;

/* The last error of this thread, never NULL. The text is the thread's own: valid until the thread's next call that fails, pbl_why or pbl_fault_take, or its end. */
const char *pbl_error(void);

/* Functions for modules to import. `function` gets one argument for each letter of `spec`, `c` being `constant`, `a` the caller, a pbl_caller. */
typedef const void *pbl_caller;
pbl_imports *pbl_imports_new(void);
void pbl_imports_free(pbl_imports *);
int pbl_imports_add(pbl_imports *, const char *name, const char *spec, const void *function, uint64_t constant);
/* What the C library of the domain needs of the process: `pbl_syscall`, within each instance's policy. */
int pbl_imports_add_system_calls(pbl_imports *);
/* Calls of imports that nobody provides become faults, instead of errors of pbl_module_open. */
void pbl_imports_be_lenient(pbl_imports *);
/* Modules of level write, which can read all of the process's memory, are refused; so are modules with instructions that read a clock of the
 * processor's (cc -fpbl-no-timer makes them without). */
void pbl_imports_demand_full(pbl_imports *);
void pbl_imports_demand_no_timer(pbl_imports *);

/* Parses, verifies, links. */
pbl_module *pbl_module_open(const char *path, const pbl_imports *);
pbl_module *pbl_module_load(const char *name, const void *bytes, size_t length, const pbl_imports *);
void pbl_module_free(pbl_module *);

/* A fresh one. Constructors of the module's global objects have run (so they do after a reset); they may take ten seconds, or so many microseconds. */
pbl_instance *pbl_instance_new(pbl_module *);
pbl_instance *pbl_instance_new_within(pbl_module *, uint64_t microseconds);
/* The instance goes when its portals have gone too. */
void pbl_instance_free(pbl_instance *);
/* As new; no call may be outstanding but those that this thread has left by longjmp. Portals stay; shared regions are gone from its segment
 * (pbl_region_share again). What other threads want of it meanwhile waits. */
int pbl_instance_reset(pbl_instance *);
/* Ends every call in it, from any thread. A call that waits for one into another instance comes back too: that instance has 10 ms of processor time to
 * answer, and is ended (poisoned) like this one if it does not. */
void pbl_instance_cancel(pbl_instance *);
/* As faults name it. */
uint32_t pbl_instance_number(const pbl_instance *);
/* 0, or the cause for which no call gets in until it is reset. */
int pbl_instance_poisoned(const pbl_instance *);
uint64_t pbl_instance_base(const pbl_instance *);
/* Copies between the process and the instance; -1 if the memory is not the instance's. */
int pbl_instance_read(const pbl_instance *, uint64_t at, void *to, size_t bytes);
int pbl_instance_write(const pbl_instance *, uint64_t at, const void *from, size_t bytes);
/* Once. Without it the instance has memory, clock and random numbers, as a new policy gives. -1 if it has more memory already than the policy allows:
 * then no call gets in any more (PBL_CAUSE_LIMIT). */
int pbl_instance_grant(pbl_instance *, const pbl_policy *);
/* Lets an import of one instance lead directly to an export of another. */
int pbl_instance_connect(pbl_instance *, const char *import, pbl_instance *to, const char *export_name, const char *spec);

/* For functions that a module calls. */
uint32_t pbl_caller_number(pbl_caller);
int pbl_caller_read(pbl_caller, uint64_t at, void *to, size_t bytes);
int pbl_caller_write(pbl_caller, uint64_t at, const void *from, size_t bytes);

/* A door to an exported function, by a portal specification ("" or NULL: the module's own, if only words cross by that: a module cannot ask itself
 * for memory of the host's, objects or identities). */
pbl_portal *pbl_portal_open(pbl_instance *, const char *name, const char *spec);
pbl_portal *pbl_portal_open_with(pbl_instance *, const char *name, const char *spec, uint64_t constant);

/* How far the window of an argument (counted from 0) reaches; without one it ends with the page. */
typedef struct {
    uint32_t argument;
    uint32_t count; /* the argument that counts, PBL_BYTES (only size does) or PBL_TEXT (to the NUL) */
    uint64_t size;  /* bytes of each */
} pbl_extent;
#define PBL_BYTES UINT32_MAX
#define PBL_TEXT (UINT32_MAX - 1)
pbl_portal *pbl_portal_open_over(pbl_instance *, const char *name, const char *spec, const pbl_extent *, size_t count);
void pbl_portal_free(pbl_portal *);

/* The portal's code. It may be cast to a function with an argument for each word of the specification. */
typedef pbl_outcome (*pbl_entry)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
pbl_entry pbl_portal_entry(const pbl_portal *);

/* pbl_call(portal, words...): up to six words. */
#define PBL_CALL6(p, a, b, c, d, e, f, ...) \
    (pbl_portal_entry(p)((uint64_t)(a), (uint64_t)(b), (uint64_t)(c), (uint64_t)(d), (uint64_t)(e), (uint64_t)(f)))
#define pbl_call(...) PBL_CALL6(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
/* Ends with PBL_FAULT after so many microseconds; wherever it is then, as with pbl_instance_cancel. 0 is a time that is over at once, not the lack of a limit: a
 * short call may come back all the same. */
pbl_outcome pbl_call_within(const pbl_portal *, uint64_t microseconds, const uint64_t *words, size_t count);
/* How long a call may take, in microseconds; 0 is no limit. Processor time is the calling thread's: it does not count while others have the processor, nor while the
 * call waits. With both, what is over first ends the call. */
typedef struct {
    uint64_t clock_us;
    uint64_t processor_us;
} pbl_limit;
pbl_outcome pbl_call_limited(const pbl_portal *, pbl_limit, const uint64_t *words, size_t count);

/* pbl_call_by(portal, limit, words...): up to six words; without a limit it is pbl_call. So the bindings call that `pebble sfi stubs` makes. */
static inline pbl_outcome pbl_call_words(const pbl_portal *portal, pbl_limit limit, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f) {
    const uint64_t words[6] = {a, b, c, d, e, f};
    return limit.clock_us | limit.processor_us ? pbl_call_limited(portal, limit, words, 6) : pbl_portal_entry(portal)(a, b, c, d, e, f);
}
#define PBL_CALL_BY6(p, limit, a, b, c, d, e, f, ...) \
    pbl_call_words(p, limit, (uint64_t)(a), (uint64_t)(b), (uint64_t)(c), (uint64_t)(d), (uint64_t)(e), (uint64_t)(f))
#define pbl_call_by(...) PBL_CALL_BY6(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)

/* Why the call that this thread has just made has no value, in one line, valid as long as that of pbl_error; what the fault was can still be taken. */
const char *pbl_why(pbl_outcome);
/* 1 and the fault of this thread's last call, once; or 0. */
int pbl_fault_take(pbl_fault *);

/* Memory that can be lent to domains as windows without copying ("w" read-write, "r" read-only, "o" for longer). */
pbl_region *pbl_region_new(size_t bytes);
void pbl_region_free(pbl_region *);
void *pbl_region_address(const pbl_region *);
/* At the same offset in each segment that it is mapped into; the offset, or 0. */
uint64_t pbl_region_share(pbl_region *, pbl_instance *, int writable);

/* A loan for one call, of memory wherever it lies: what is in a region is lent itself, the rest through a copy. What the call has
 * written to a writable one is there after pbl_lent_end. */
typedef struct pbl_lent pbl_lent;
pbl_lent *pbl_lend(const void *memory, size_t bytes, int writable);
uint64_t pbl_lent_word(const pbl_lent *); /* for the portal */
void pbl_lent_end(pbl_lent *);
/* The text at an address of the domain's; -1 if there is none, or no room for it. */
int pbl_instance_text(const pbl_instance *, uint64_t at, char *to, size_t room);

pbl_policy *pbl_policy_new(void);
void pbl_policy_free(pbl_policy *);
int pbl_policy_directory(pbl_policy *, const char *name, const char *path, int writable);
void pbl_policy_standard_files(pbl_policy *);
/* All that an instance may have: image, stacks (12 MiB each), heap, mappings; 2 GiB if nothing is said. */
void pbl_policy_memory(pbl_policy *, uint64_t bytes);
/* "sleep"; "connect=HOST:PORT" and "listen=HOST:PORT", for stream sockets, with port 0 for every port. */
int pbl_policy_allow(pbl_policy *, const char *what);
/* For programs (pbl_run): a variable of the environment, "NAME=VALUE", one more with each call; and a second fence (Landlock and seccomp) around the thread
 * that runs them and those that it starts, which stays when the program has ended. It is a wall if the process has no other thread by then; without
 * Landlock a policy with directories or single ports cannot be fenced. */
int pbl_policy_variable(pbl_policy *, const char *variable);
void pbl_policy_fence(pbl_policy *);

/* Runs a program (a module with main) to its end, in an instance of its own. The arguments begin with its name, and NULL is behind the last; 0 microseconds
 * are no limit. What it has exited with, or -1 if it has not, with pbl_error(). */
int pbl_run(const char *path, const char *const *arguments, const pbl_policy *, uint64_t microseconds);
int pbl_run_limited(const char *path, const char *const *arguments, const pbl_policy *, pbl_limit);

/* From now on instances are made known to gdb and perf (/tmp/perf-PID.map, which stays when the process has ended), as with PEBBLE_SFI_DEBUG=1. */
void pbl_name_instances(void);

/* A process with signal handlers of its own for SIGSEGV, SIGBUS, SIGFPE, SIGILL and SIGTRAP, installed later than these, hands faults to this first: 1 if it
 * was a domain's. With pbl_leave_handlers_alone before the first instance no handler is installed at all.
 * Handlers for other signals want SA_ONSTACK: without it they run on the stack of the domain that they interrupt, on which the module may have left too little. */
int pbl_handle_signal(int signal, void *siginfo, void *ucontext);
void pbl_leave_handlers_alone(void);

/* Before the first instance: the first one's segment is to lie at address zero, where its accesses cost nothing more than a process's own.
 * It takes the lowest 4 GiB of the address space, so that null pointers of the process's own lead into it from offset 0x10000 on. If the
 * process uses some of the lowest 12 GiB itself, nothing changes. */
void pbl_segment_at_zero(void);

#ifdef __cplusplus
}
#endif
#endif
