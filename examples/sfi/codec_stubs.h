/* Made from codec.h by `pebble sfi stubs`: change that, not this.
 * Every function returns PBL_OK or why there is no result; results and pbl_error() are as pebble_host.h says. */
#ifndef CODEC_STUBS_H
#define CODEC_STUBS_H

#include <pebble_host.h>
#include <stdbool.h>
#include <string.h>

typedef struct {
    pbl_instance *instance;
    pbl_limit limit; /* of each call: none, unless it is set */
    pbl_portal *checksum;
    pbl_portal *pack;
    pbl_portal *unpack;
    pbl_portal *mean;
    pbl_portal *knows;
    pbl_portal *describe;
    pbl_portal *halvings;
    pbl_portal *watch;
} codec_stubs;

static inline void codec_unbind(codec_stubs *stubs_) {
    pbl_portal_free(stubs_->checksum);
    pbl_portal_free(stubs_->pack);
    pbl_portal_free(stubs_->unpack);
    pbl_portal_free(stubs_->mean);
    pbl_portal_free(stubs_->knows);
    pbl_portal_free(stubs_->describe);
    pbl_portal_free(stubs_->halvings);
    pbl_portal_free(stubs_->watch);
    memset(stubs_, 0, sizeof *stubs_);
}

/* Opens the portals into an instance, which must outlive them: 0, or -1 and pbl_error() says why. */
static inline int codec_bind(codec_stubs *stubs_, pbl_instance *instance_) {
    memset(stubs_, 0, sizeof *stubs_);
    stubs_->instance = instance_;
    static const pbl_extent checksum_[] = {{0, 1, 1}};
    stubs_->checksum = pbl_portal_open_over(instance_, "checksum", "npri", checksum_, 1);
    if (!stubs_->checksum)
        goto failed_;
    static const pbl_extent pack_[] = {{0, 1, 1}, {2, 3, 1}};
    stubs_->pack = pbl_portal_open_over(instance_, "pack", "smriwi", pack_, 2);
    if (!stubs_->pack)
        goto failed_;
    static const pbl_extent unpack_[] = {{0, 1, 1}, {2, 3, 1}};
    stubs_->unpack = pbl_portal_open_over(instance_, "unpack", "smriwi", unpack_, 2);
    if (!stubs_->unpack)
        goto failed_;
    static const pbl_extent mean_[] = {{0, 1, 8}, {2, PBL_BYTES, 8}};
    stubs_->mean = pbl_portal_open_over(instance_, "mean", "smriw", mean_, 2);
    if (!stubs_->mean)
        goto failed_;
    static const pbl_extent knows_[] = {{0, PBL_TEXT, 1}};
    stubs_->knows = pbl_portal_open_over(instance_, "knows", "smr", knows_, 1);
    if (!stubs_->knows)
        goto failed_;
    stubs_->describe = pbl_portal_open(instance_, "describe", "smi");
    if (!stubs_->describe)
        goto failed_;
    stubs_->halvings = pbl_portal_open(instance_, "halvings", "smi");
    if (!stubs_->halvings)
        goto failed_;
    static const pbl_extent watch_[] = {{0, PBL_BYTES, 8}};
    stubs_->watch = pbl_portal_open_over(instance_, "watch", "smo", watch_, 1);
    if (!stubs_->watch)
        goto failed_;
    return 0;
failed_:
    codec_unbind(stubs_);
    return -1;
}

/* checksum_t checksum(const void *bytes, size_t count) */
static inline int codec_checksum(const codec_stubs *stubs_, uint32_t *result_, const void *bytes, size_t count) {
    pbl_outcome outcome_ = {0, PBL_NOT_LENT};
    pbl_lent *bytes_lent_ = pbl_lend(bytes, (size_t)count * 1, 0);
    if (bytes_lent_)
        outcome_ = pbl_call_by(stubs_->checksum, stubs_->limit, pbl_lent_word(bytes_lent_), count);
    pbl_lent_end(bytes_lent_);
    if (result_ && outcome_.status == PBL_OK)
        *result_ = (uint32_t)outcome_.value;
    return (int)outcome_.status;
}

/* long pack(const uint8_t *from, size_t count, uint8_t *to, size_t room) */
static inline int codec_pack(const codec_stubs *stubs_, int64_t *result_, const uint8_t *from, size_t count, uint8_t *to, size_t room) {
    pbl_outcome outcome_ = {0, PBL_NOT_LENT};
    pbl_lent *from_lent_ = pbl_lend(from, (size_t)count * 1, 0);
    pbl_lent *to_lent_ = pbl_lend(to, (size_t)room * 1, 1);
    if (from_lent_ && to_lent_)
        outcome_ = pbl_call_by(stubs_->pack, stubs_->limit, pbl_lent_word(from_lent_), count, pbl_lent_word(to_lent_), room);
    pbl_lent_end(to_lent_);
    pbl_lent_end(from_lent_);
    if (result_ && outcome_.status == PBL_OK)
        *result_ = (int64_t)outcome_.value;
    return (int)outcome_.status;
}

/* long unpack(const uint8_t *from, size_t count, uint8_t *to, size_t room) */
static inline int codec_unpack(const codec_stubs *stubs_, int64_t *result_, const uint8_t *from, size_t count, uint8_t *to, size_t room) {
    pbl_outcome outcome_ = {0, PBL_NOT_LENT};
    pbl_lent *from_lent_ = pbl_lend(from, (size_t)count * 1, 0);
    pbl_lent *to_lent_ = pbl_lend(to, (size_t)room * 1, 1);
    if (from_lent_ && to_lent_)
        outcome_ = pbl_call_by(stubs_->unpack, stubs_->limit, pbl_lent_word(from_lent_), count, pbl_lent_word(to_lent_), room);
    pbl_lent_end(to_lent_);
    pbl_lent_end(from_lent_);
    if (result_ && outcome_.status == PBL_OK)
        *result_ = (int64_t)outcome_.value;
    return (int)outcome_.status;
}

/* void mean(const double *samples, uint32_t count, double *result) */
static inline int codec_mean(const codec_stubs *stubs_, const double *samples, uint32_t count, double *result) {
    pbl_outcome outcome_ = {0, PBL_NOT_LENT};
    pbl_lent *samples_lent_ = pbl_lend(samples, (size_t)count * 8, 0);
    pbl_lent *result_lent_ = pbl_lend(result, 8, 1);
    if (samples_lent_ && result_lent_)
        outcome_ = pbl_call_by(stubs_->mean, stubs_->limit, pbl_lent_word(samples_lent_), count, pbl_lent_word(result_lent_));
    pbl_lent_end(result_lent_);
    pbl_lent_end(samples_lent_);
    return (int)outcome_.status;
}

/* bool knows(const char *format) */
static inline int codec_knows(const codec_stubs *stubs_, bool *result_, const char *format) {
    pbl_outcome outcome_ = {0, PBL_NOT_LENT};
    pbl_lent *format_lent_ = pbl_lend(format, format ? strlen(format) + 1 : 1, 0);
    if (format_lent_)
        outcome_ = pbl_call_by(stubs_->knows, stubs_->limit, pbl_lent_word(format_lent_));
    pbl_lent_end(format_lent_);
    if (result_ && outcome_.status == PBL_OK)
        *result_ = (bool)(outcome_.value & 0xff);
    return (int)outcome_.status;
}

/* const char *describe(int level) */
static inline int codec_describe(const codec_stubs *stubs_, char *result_, size_t room_, int32_t level) {
    pbl_outcome outcome_ = {0, PBL_NOT_LENT};
    outcome_ = pbl_call_by(stubs_->describe, stubs_->limit, level);
    if (outcome_.status == PBL_OK && pbl_instance_text(stubs_->instance, outcome_.value, result_, room_) < 0)
        return -1;
    return (int)outcome_.status;
}

/* uint32_t halvings(uint32_t length) */
static inline int codec_halvings(const codec_stubs *stubs_, uint32_t *result_, uint32_t length) {
    pbl_outcome outcome_ = {0, PBL_NOT_LENT};
    outcome_ = pbl_call_by(stubs_->halvings, stubs_->limit, length);
    if (result_ && outcome_.status == PBL_OK)
        *result_ = (uint32_t)outcome_.value;
    return (int)outcome_.status;
}

/* void watch(uint64_t *calls) */
static inline int codec_watch(const codec_stubs *stubs_, uint64_t *calls) {
    pbl_outcome outcome_ = {0, PBL_NOT_LENT};
    outcome_ = pbl_call_by(stubs_->watch, stubs_->limit, (uintptr_t)calls);
    return (int)outcome_.status;
}

#endif
