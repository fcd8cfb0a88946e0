/* Calls `right` of the module that is named: in a fresh instance, on another thread, after a reset. */
#include <pebble_host.h>
#include <pthread.h>
#include <stdio.h>

static void *call(void *right) {
    pbl_outcome o = pbl_call((pbl_portal *)right);
    if (o.status)
        printf("%s\n", pbl_why(o));
    else
        printf("%lu\n", (unsigned long)o.value);
    return NULL;
}

int main(int argc, char **argv) {
    pbl_imports *imports = pbl_imports_new();
    pbl_imports_add_system_calls(imports);
    pbl_module *module = argc > 1 ? pbl_module_open(argv[1], imports) : NULL;
    pbl_instance *instance = module ? pbl_instance_new(module) : NULL;
    pbl_portal *right = instance ? pbl_portal_open(instance, "right", NULL) : NULL;
    pthread_t thread;
    if (!right) {
        printf("%s\n", argc > 1 ? pbl_error() : "which module?");
        return 1;
    }
    call(right);
    if (pthread_create(&thread, NULL, call, right) || pthread_join(thread, NULL) || pbl_instance_reset(instance))
        return 1;
    call(right);
    return 0;
}
