/* Atomic access to sixteen bytes, and to what has any other size: what compilers call of libatomic. The process's threads may all be in one instance,
 * so it is really atomic: sixteen bytes by the processor, others under a lock. */
#include <stddef.h>
#include <string.h>

typedef unsigned __int128 word;

static word exchange_if(volatile void *p, word old, word new) {
    unsigned long low = (unsigned long)old, high = (unsigned long)(old >> 64);
    __asm__ volatile("lock cmpxchg16b %0"
                     : "+m"(*(volatile word *)p), "+a"(low), "+d"(high)
                     : "b"((unsigned long)new), "c"((unsigned long)(new >> 64))
                     : "cc");
    return (word)high << 64 | low;
}

static _Bool replace(volatile void *p, word *expected, word new) {
    word found = exchange_if(p, *expected, new);
    _Bool same = found == *expected;
    *expected = found;
    return same;
}

/* Compilers know these names, and other types for them. */
#define NAME(name) __asm__(name)
word load_16(const volatile void *p, int order) NAME("__atomic_load_16");
word load_16(const volatile void *p, int order) { return exchange_if((volatile void *)p, 0, 0); }

#define CHANGE(name, symbol, value, result)                           \
    word name(volatile void *p, word by, int order) NAME(symbol);     \
    word name(volatile void *p, word by, int order) {                 \
        word old = exchange_if(p, 0, 0);                              \
        while (!replace(p, &old, value)) {}                           \
        return result;                                                \
    }
CHANGE(exchange_16, "__atomic_exchange_16", by, old)
CHANGE(add_16, "__atomic_fetch_add_16", old + by, old)
CHANGE(sub_16, "__atomic_fetch_sub_16", old - by, old)
CHANGE(and_16, "__atomic_fetch_and_16", old &by, old)
CHANGE(or_16, "__atomic_fetch_or_16", old | by, old)
CHANGE(xor_16, "__atomic_fetch_xor_16", old ^ by, old)
CHANGE(nand_16, "__atomic_fetch_nand_16", ~(old & by), old)
CHANGE(added_16, "__atomic_add_fetch_16", old + by, old + by)
CHANGE(less_16, "__atomic_sub_fetch_16", old - by, old - by)
CHANGE(anded_16, "__atomic_and_fetch_16", old &by, old &by)
CHANGE(ored_16, "__atomic_or_fetch_16", old | by, old | by)
CHANGE(xored_16, "__atomic_xor_fetch_16", old ^ by, old ^ by)
CHANGE(nanded_16, "__atomic_nand_fetch_16", ~(old & by), ~(old & by))

void store_16(volatile void *p, word new, int order) NAME("__atomic_store_16");
void store_16(volatile void *p, word new, int order) { exchange_16(p, new, order); }
_Bool compare_16(volatile void *p, void *expected, word new, int success, int failure) NAME("__atomic_compare_exchange_16");
_Bool compare_16(volatile void *p, void *expected, word new, int success, int failure) { return replace(p, expected, new); }
word value_16(volatile void *p, word old, word new) NAME("__sync_val_compare_and_swap_16");
word value_16(volatile void *p, word old, word new) { return exchange_if(p, old, new); }
_Bool bool_16(volatile void *p, word old, word new) NAME("__sync_bool_compare_and_swap_16");
_Bool bool_16(volatile void *p, word old, word new) { return exchange_if(p, old, new) == old; }

/* Any size: one lock for all, held for one copy. */
static unsigned char held;
static void hold(void) {
    while (__atomic_test_and_set(&held, __ATOMIC_ACQUIRE)) __builtin_ia32_pause();
}
static void let_go(void) { __atomic_clear(&held, __ATOMIC_RELEASE); }

void load_any(size_t n, const volatile void *from, void *to, int order) NAME("__atomic_load");
void load_any(size_t n, const volatile void *from, void *to, int order) { hold(), memcpy(to, (const void *)from, n), let_go(); }
void store_any(size_t n, volatile void *to, void *from, int order) NAME("__atomic_store");
void store_any(size_t n, volatile void *to, void *from, int order) { hold(), memcpy((void *)to, from, n), let_go(); }
void exchange_any(size_t n, volatile void *at, void *new, void *old, int order) NAME("__atomic_exchange");
void exchange_any(size_t n, volatile void *at, void *new, void *old, int order) {
    hold(), memcpy(old, (void *)at, n), memcpy((void *)at, new, n), let_go();
}
_Bool compare_any(size_t n, volatile void *at, void *expected, void *new, int success, int failure) NAME("__atomic_compare_exchange");
_Bool compare_any(size_t n, volatile void *at, void *expected, void *new, int success, int failure) {
    hold();
    _Bool same = memcmp((void *)at, expected, n) == 0;
    memcpy(same ? (void *)at : expected, same ? new : (void *)at, n);
    let_go();
    return same;
}
_Bool lock_free(size_t n, const volatile void *p) NAME("__atomic_is_lock_free");
_Bool lock_free(size_t n, const volatile void *p) { return n <= 16 && (n & (n - 1)) == 0 && (n == 0 || (size_t)p % n == 0); }
