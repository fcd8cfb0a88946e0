/* A host that calls a plugin which it does not trust: host PLUGIN */
#include <pebble_host.h>
#include <stdio.h>
#include <string.h>

/* What the last call of this thread died of. */
static void tell(const char *what) {
    pbl_fault fault;
    if (pbl_fault_take(&fault)) {
        /* Without debug information (cc -g) the file is empty. */
        const char *slash = strrchr(fault.file, '/');
        printf("%s: cause %u in %s at %s:%u\n", what, fault.cause, fault.function, slash ? slash + 1 : fault.file, fault.line);
    }
}

int main(int argc, char **argv) {
    pbl_imports *imports = pbl_imports_new();
    pbl_module *module = argc > 1 ? pbl_module_open(argv[1], imports) : NULL;
    if (!module) {
        fprintf(stderr, "%s\n", argc > 1 ? pbl_error() : "which plugin?");
        return 1;
    }
    pbl_instance *plugin = pbl_instance_new(module);
    /* The plugin asks for words alone here; what it gets of ours, `w`, we say ourselves. */
    pbl_portal *sum = pbl_portal_open(plugin, "sum_of_squares", NULL);
    pbl_portal *brighten = pbl_portal_open(plugin, "brighten", "smwii");
    pbl_portal *crash = pbl_portal_open(plugin, "crash", NULL);
    pbl_portal *hang = pbl_portal_open(plugin, "hang", NULL);
    if (!sum || !brighten || !crash || !hang) {
        fprintf(stderr, "%s\n", pbl_error());
        return 1;
    }
    printf("sum of squares: %lu\n", (unsigned long)pbl_call(sum, 10).value);

    /* Memory is lent without copying; after the call the plugin cannot reach it. */
    pbl_region *picture = pbl_region_new(4096);
    unsigned char *pixels = pbl_region_address(picture);
    memset(pixels, 100, 4096);
    pbl_call(brighten, pixels, 4096, 50);
    printf("a pixel: %d\n", pixels[0]);

    if (pbl_call(crash, 0).status == PBL_FAULT)
        tell("crash survived");
    printf("poisoned: %s\n", pbl_call(sum, 10).status == PBL_OK ? "no" : "yes");
    pbl_instance_reset(plugin);
    if (pbl_call_within(hang, 20000, NULL, 0).status == PBL_FAULT)
        tell("hang survived");
    pbl_instance_reset(plugin);
    printf("as good as new: %lu\n", (unsigned long)pbl_call(sum, 10).value);
    return 0;
}
