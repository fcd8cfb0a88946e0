/* A host in C that uses the codec by its bindings: codec_host MODULE */
#include "codec_stubs.h"
#include <stdio.h>
#include <stdlib.h>

static int sorry(const char *what) {
    fprintf(stderr, "%s: %s\n", what, pbl_error());
    return 1;
}

int main(int argc, char **argv) {
    static uint8_t picture[100000], packed[2000], again[sizeof picture];
    codec_stubs codec;
    pbl_module *module = argc > 1 ? pbl_module_open(argv[1], NULL) : NULL;
    pbl_instance *instance = module ? pbl_instance_new(module) : NULL;
    if (!instance || codec_bind(&codec, instance) < 0)
        return sorry("no codec");
    pbl_region *counter = pbl_region_new(sizeof(uint64_t));
    if (!counter || codec_watch(&codec, pbl_region_address(counter)))
        return sorry("watch");
    memset(picture + 30000, 7, 50000);

    /* Any memory will do: what is in no region goes by a copy. */
    int64_t used, length;
    uint32_t before, after;
    if (codec_pack(&codec, &used, picture, sizeof picture, packed, sizeof packed) ||
        codec_unpack(&codec, &length, packed, (size_t)used, again, sizeof again) ||
        codec_checksum(&codec, &before, picture, sizeof picture) || codec_checksum(&codec, &after, again, sizeof again))
        return sorry("codec");
    printf("packed: %ld, unpacked: %ld, %s\n", (long)used, (long)length, before == after ? "the same" : "DIFFERENT");

    const double samples[] = {1, 2, 6};
    double mean;
    bool runs, waves;
    char text[40];
    if (codec_mean(&codec, samples, 3, &mean) || codec_knows(&codec, &runs, "runs") || codec_knows(&codec, &waves, "waves") ||
        codec_describe(&codec, text, sizeof text, 9))
        return sorry("codec");
    printf("mean: %g, knows runs: %d, waves: %d, describes itself: %s\n", mean, runs, waves, text);
    if (codec_describe(&codec, text, 4, 9) < 0 && codec_describe(&codec, text, sizeof text, -1) < 0)
        printf("no text: %s\n", pbl_error());

    /* From here on each call has so much processor time, which a busy machine does not shorten. */
    codec.limit.processor_us = 20000;
    uint32_t halvings;
    pbl_fault fault;
    if (codec_halvings(&codec, &halvings, 64) == PBL_OK && codec_halvings(&codec, NULL, 3) == PBL_FAULT && pbl_fault_take(&fault) &&
        fault.cause == PBL_CAUSE_DEADLINE && fault.instance == pbl_instance_number(instance))
        printf("halvings: %u, and one call was ended in %s\n", halvings, fault.function);
    printf("calls: %d\n", (int)*(uint64_t *)pbl_region_address(counter));

    codec_unbind(&codec);
    pbl_instance_free(instance);
    pbl_module_free(module);
    pbl_region_free(counter);
    return 0;
}
