/* What the codec offers, with the annotations that `pebble sfi stubs` makes bindings from. */
#ifndef CODEC_H
#define CODEC_H

#include <pebble_plugin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint32_t checksum_t;

/* Its state is not for others' threads to see: a stack of its own. */
PBL_PORTAL(np) checksum_t checksum(const void *bytes PBL_R(count), size_t count);

/* Run lengths: bytes written, or -1 if there is no room. */
long pack(const uint8_t *from PBL_R(count), size_t count, uint8_t *to PBL_W(room), size_t room);
long unpack(const uint8_t *from PBL_R(count), size_t count, uint8_t *to PBL_W(room), size_t room);

/* Pointers to one. */
void mean(const double *samples PBL_R(count), uint32_t count, double *result PBL_W(1));

/* Texts in and out. */
bool knows(const char *format PBL_STRING);
const char *describe(int level) PBL_STRING;

/* How often a length can be halved until it is 1. With a bug: if it is no power of two, that never ends. */
uint32_t halvings(uint32_t length);

/* From now on every call counts here. */
void watch(uint64_t *calls PBL_O(1));

#endif
