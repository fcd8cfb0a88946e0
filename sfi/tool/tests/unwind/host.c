/* host PLUGIN enter|out|astray: two frames of its own, then the plugin's. */
#include <pebble_host.h>
#include <stdio.h>

static pbl_portal *enter;

static __attribute__((noinline)) unsigned long outer(pbl_portal *portal) {
    pbl_outcome result = pbl_call(portal, 0);
    return result.value + 1;
}

static unsigned long called_back(unsigned long where) {
    return outer(enter) + where;
}

int main(int argc, char **argv) {
    pbl_imports *imports = pbl_imports_new();
    pbl_imports_add(imports, "pbl_host", "smi", called_back, 0);
    pbl_module *module = argc > 2 ? pbl_module_open(argv[1], imports) : NULL;
    pbl_instance *plugin = module ? pbl_instance_new(module) : NULL;
    enter = plugin ? pbl_portal_open(plugin, "enter", NULL) : NULL;
    pbl_portal *named = plugin ? pbl_portal_open(plugin, argv[2], NULL) : NULL;
    if (!enter || !named) {
        fprintf(stderr, "%s\n", pbl_error());
        return 1;
    }
    return outer(named) == 0;
}
