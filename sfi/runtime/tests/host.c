/* A C program that uses fault domains; its arguments are a module, a program that writes a file, and a directory. */
#include "pebble_host.h"
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static uint64_t host0(uint64_t constant, pbl_caller caller, uint64_t a, uint64_t b) {
    (void)caller;
    return constant + a + b;
}

#define CHECK(what) \
    do { \
        if (!(what)) { \
            printf("line %d: %s: %s\n", __LINE__, #what, pbl_error()); \
            return 1; \
        } \
    } while (0)

static jmp_buf out;

static uint64_t leaves(void) { longjmp(out, 1); }

static void *resets(void *instance) { return (void *)(intptr_t)pbl_instance_reset((pbl_instance *)instance); }

/* A jump of the process's over domains' frames: the call stays outstanding for others, and leaves nothing for the thread that has jumped. */
static int jumps_over(const char *file) {
    pbl_imports *imports = pbl_imports_new();
    CHECK(pbl_imports_add(imports, "host0", "sm", (void *)leaves, 0) == 0);
    pbl_imports_be_lenient(imports);
    pbl_module *module = pbl_module_open(file, imports);
    pbl_instance *outer = pbl_instance_new(module), *left = pbl_instance_new(module), *other = pbl_instance_new(module);
    CHECK(pbl_instance_connect(outer, "host0", left, "callback", "npii") == 0);
    pbl_portal *callback = pbl_portal_open(outer, "callback", "sm"), *add = pbl_portal_open(left, "add", "smii");
    pbl_portal *elsewhere = pbl_portal_open(other, "add", "smii");
    CHECK(callback && add && elsewhere);
    /* More than a thread may have at a time; the second time with a limit that is over when the third begins. */
    for (volatile int round = 0; round < 3; round++) {
        for (volatile int i = 0; i < 120; i++)
            if (!setjmp(out)) {
                pbl_call(callback, 0);
                CHECK(!"it comes back");
            }
        CHECK(pbl_call(elsewhere, 1, 2).value == 3 && pbl_call(add, 40, 2).value == 42);
        if (round == 1 && !setjmp(out)) {
            pbl_call_within(callback, 20000, NULL, 0);
            CHECK(!"it comes back");
        }
        clock_t begin = clock();
        while (round == 1 && clock() - begin < CLOCKS_PER_SEC / 10)
            CHECK(pbl_call(elsewhere, 1, 2).value == 3);
        CHECK(pbl_instance_reset(other) == 0);
        pthread_t thread;
        void *done;
        CHECK(pthread_create(&thread, NULL, resets, left) == 0 && pthread_join(thread, &done) == 0 && (intptr_t)done < 0);
        CHECK(pbl_instance_reset(outer) == 0 && pbl_instance_reset(left) == 0);
        CHECK(pbl_call(elsewhere, 1, 2).value == 3 && pbl_call(add, 40, 2).value == 42);
        usleep(30000);
        CHECK(pbl_instance_poisoned(outer) == 0 && pbl_instance_poisoned(other) == 0);
    }
    /* Without end, out of a domain that the process calls. */
    pbl_portal *straight = pbl_portal_open(left, "callback", "sm");
    for (volatile int i = 0; i < 3000; i++)
        if (!setjmp(out)) {
            pbl_call(straight, 0);
            CHECK(!"it comes back");
        }
    CHECK(pbl_call(add, 40, 2).value == 42 && pbl_instance_reset(left) == 0);
    return 0;
}

/* The program opens the second word that it is given, and writes the third's first four bytes: without arguments these are its variables. */
static int runs(const char *program, const char *directory) {
    const char *none[] = {NULL};
    pbl_policy *policy = pbl_policy_new();
    CHECK(pbl_policy_directory(policy, "/data", directory, 1) == 0);
    CHECK(pbl_policy_variable(policy, "/data/variable") == 0 && pbl_policy_variable(policy, "text") == 0);
    CHECK(pbl_run(program, none, policy, 10000000) == 4);
    CHECK(pbl_run_limited(program, none, policy, (pbl_limit){0, 10000000}) == 4);
    pbl_policy_fence(policy);
    int before = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(before >= 0);
    CHECK(pbl_run(program, none, policy, 0) == 4);
    CHECK(socket(AF_UNIX, SOCK_STREAM, 0) < 0 && errno == EPERM);
    CHECK(pbl_run("/nowhere", none, policy, 0) == -1 && strstr(pbl_error(), "cannot read"));
    pbl_policy_free(policy);
    return 0;
}

/* perf's file has the functions of instances from then on. */
static int is_named(pbl_module *module) {
    char path[64], text[4096];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
    unlink(path); /* Of a process that had this number before. */
    pbl_name_instances();
    pbl_instance_free(pbl_instance_new(module));
    FILE *map = fopen(path, "r");
    CHECK(map);
    text[fread(text, 1, sizeof text - 1, map)] = 0;
    fclose(map);
    unlink(path);
    CHECK(strstr(text, "`add\n"));
    return 0;
}

int main(int argc, char **argv) {
    CHECK(argc == 4);
    pbl_segment_at_zero();
    pbl_imports *imports = pbl_imports_new();
    CHECK(pbl_module_open("/nowhere", imports) == NULL && strstr(pbl_error(), "cannot read"));
    CHECK(pbl_module_open(argv[1], imports) == NULL && strstr(pbl_error(), "host0"));
    CHECK(pbl_imports_add(imports, "host0", "smcaiix", (void *)host0, 1000) < 0 && strstr(pbl_error(), "column 7"));
    CHECK(pbl_imports_add(imports, "host0", "smcaii", (void *)host0, 1000) == 0);
    pbl_imports_be_lenient(imports);
    pbl_module *module = pbl_module_open(argv[1], imports);
    CHECK(module);
    pbl_instance *plugin = pbl_instance_new(module);
    CHECK(plugin && pbl_instance_base(plugin) == 0);
    pbl_portal *add = pbl_portal_open(plugin, "add", "smii"), *store = pbl_portal_open(plugin, "store", "npii");
    pbl_portal *callback = pbl_portal_open(plugin, "callback", "smii"), *spin = pbl_portal_open(plugin, "spin", NULL);
    CHECK(add && store && callback && spin);
    pbl_outcome sum = pbl_call(add, 40, 2);
    CHECK(sum.status == PBL_OK && sum.value == 42);
    pbl_outcome (*typed)(int, long) = (pbl_outcome(*)(int, long))pbl_portal_entry(add);
    CHECK(typed(1, 2).value == 3);
    CHECK(pbl_call(callback, 1, 2).value == 1004);
    pbl_outcome stored = pbl_call(store, 16, 1);
    CHECK(stored.status == PBL_FAULT);
    CHECK(strstr(pbl_why(stored), "in store+0x0 at ") && !strcmp(pbl_why(stored), pbl_error()));
    pbl_fault fault;
    CHECK(pbl_region_new(0) == NULL && strstr(pbl_error(), "one byte at least"));
    CHECK(pbl_fault_take(&fault) && !pbl_fault_take(NULL));
    CHECK(fault.cause == PBL_CAUSE_MEMORY && fault.address == pbl_instance_base(plugin) + 16);
    CHECK(!strcmp(fault.function, "store") && strstr(fault.file, "basic.s") && fault.line > 0);
    CHECK(pbl_instance_poisoned(plugin) == PBL_CAUSE_MEMORY && pbl_instance_reset(plugin) == 0);
    CHECK(pbl_call_within(spin, 10000, NULL, 0).status == PBL_FAULT);
    CHECK(pbl_fault_take(&fault) && fault.cause == PBL_CAUSE_DEADLINE && !strstr(fault.text, "earlier"));
    CHECK(pbl_call(add, 40, 2).status == PBL_FAULT && pbl_fault_take(&fault) && fault.cause == PBL_CAUSE_DEADLINE);
    CHECK(strstr(fault.text, "poisoned by an earlier fault: deadline passed; add has not run"));
    CHECK(pbl_instance_reset(plugin) == 0);
    pbl_limit none = {0, 0}, processor = {0, 10000};
    CHECK(pbl_call_by(add, none, 40, 2).value == 42 && pbl_call_by(add, processor, 40, 2).value == 42);
    CHECK(pbl_call_by(spin, processor).status == PBL_FAULT && pbl_fault_take(&fault) && fault.cause == PBL_CAUSE_DEADLINE);
    CHECK(fault.instance == pbl_instance_number(plugin) && pbl_instance_reset(plugin) == 0);
    pbl_region *region = pbl_region_new(4096);
    pbl_portal *lent = pbl_portal_open(plugin, "store", "smwi");
    CHECK(region && lent && pbl_call(lent, pbl_region_address(region), 7).status == PBL_OK);
    CHECK(*(uint64_t *)pbl_region_address(region) == 7);
    pbl_portal *open[] = {add, store, callback, spin, lent};
    for (int i = 0; i < 5; i++) pbl_portal_free(open[i]);
    pbl_region_free(region);
    pbl_instance_free(plugin);
    if (is_named(module))
        return 1;
    pbl_module_free(module);
    pbl_imports_free(imports);
    if (jumps_over(argv[1]) || runs(argv[2], argv[3]))
        return 1;
    puts("all is well");
    return 0;
}
