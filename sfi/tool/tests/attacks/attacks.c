/* Attacks that the tools let through, because confinement makes them harmless. `at` is an address of the host's. Each is called
 * by itself; it may return or be ended, but the host's memory must not change. */
#include <pebble_plugin.h>
#include <stddef.h>

typedef unsigned long word;
typedef int vector __attribute__((vector_size(16), aligned(1), may_alias));
#define ATTACK(name) PBL_EXPORT(name, "smi") word name(word at)
/* An address that the compiler does not see through: what it sees, the verifier sees too, and refuses. */
#define HIDDEN(x) ((word)(x) + data - 1)
#define SEGMENT ((word)&data & ~0xfffffffful)

volatile word data = 1;
static const volatile word constant = 7;
static unsigned char code[64] __attribute__((aligned(64))) = {0x0f, 0x05, 0xc3};

ATTACK(store) { return *(volatile word *)at = 0x6666; }
ATTACK(store_byte) { return *(volatile char *)(at + 3) = 0x66; }
ATTACK(store_indexed) { for (int i = -4; i < 4; i++) ((volatile word *)at)[i * 512] = 0x66; return 0; }
ATTACK(store_vector) { *(volatile vector *)at = (vector){1, 2, 3, 4}; return 0; }
ATTACK(store_streaming) { __builtin_nontemporal_store((word)0x66, (word *)at); return 0; }
ATTACK(add_to) { *(volatile word *)at += 0x66; return 0; }
ATTACK(exchange) { return __atomic_exchange_n((word *)at, 0x66, __ATOMIC_SEQ_CST); }
ATTACK(compare_exchange) {
    word old = *(volatile word *)at;
    return __atomic_compare_exchange_n((word *)at, &old, 0x66, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
ATTACK(fetch_add) { return __atomic_fetch_add((word *)at, 0x66, __ATOMIC_SEQ_CST); }
ATTACK(string_store) { word n = 4096; __asm__ volatile("rep stosb" : "+D"(at), "+c"(n) : "a"(0x66) : "memory"); return 0; }
ATTACK(string_copy) {
    word n = 64, from = (word)code;
    __asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(n) : : "memory");
    return 0;
}
ATTACK(string_endless) {
    word n = ~0ul, to = (word)&data;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(n) : "a"(0x66) : "memory");
    return 0;
}
ATTACK(walk_up) { for (volatile char *p = (char *)&data;; p += 512) *p = 0x66; }
ATTACK(walk_down) { for (volatile char *p = (char *)&data;; p -= 512) *p = 0x66; }
ATTACK(below_segment) { *(volatile word *)(SEGMENT - 8) = 0x66; return 0; }
ATTACK(above_segment) { *(volatile word *)(SEGMENT + (1ul << 32)) = 0x66; return 0; }
ATTACK(return_stack) { for (word k = 0; k < 4 << 20; k += 4096) *(volatile word *)(SEGMENT + (8ul << 30) + k) = 0x66; return 0; }
ATTACK(next_instance) { *(volatile word *)((word)&data + (16ul << 30)) = 0x66; *(volatile word *)((word)&data - (16ul << 30)) = 0x66; return 0; }
ATTACK(context_page) { *(volatile word *)(SEGMENT + 0x10000) = at; return 0; }
ATTACK(portal_table) { *(volatile word *)(SEGMENT + 0x10100) = at; return 0; }
ATTACK(null_page) { *(volatile word *)(SEGMENT + 8) = at; return 0; }
ATTACK(own_code) { *(volatile unsigned char *)HIDDEN(store) = 0xcc; return 0; }
ATTACK(own_constants) { *(volatile word *)HIDDEN(&constant) = 0x66; return 0; }
ATTACK(call_host) { ((void (*)(void))at)(); return 0; }
ATTACK(call_data) { ((void (*)(void))HIDDEN(code))(); return 0; }
ATTACK(call_stack) { volatile unsigned char there[16] = {0x0f, 0x05, 0xc3}; ((void (*)(void))HIDDEN(there))(); return there[0]; }
ATTACK(call_askew) { for (word k = 1; k < 16; k++) ((word (*)(word))((word)&store + k))(at); return 0; }
/* The one segment of the file that nobody judges lies behind the image: it must not be there. */
extern char end[];
#define NATIVE ((word)HIDDEN(end) + 4095 & ~4095ul)
ATTACK(call_native) { for (word k = 0; k < 4096; k += 8) ((word (*)(word))(NATIVE + k))(at); return 0; }
ATTACK(read_native) { return *(volatile word *)NATIVE ? 0x5eed0f7e57c0de : 0; }
ATTACK(call_null) { ((void (*)(void))(data - 1))(); return 0; }
ATTACK(call_table) { ((void (*)(void))(SEGMENT + 0x10100))(); return 0; }
ATTACK(tail_jump) { return ((word (*)(word))at)(at); }
ATTACK(smash_frame) { volatile word frame[4]; for (word k = 0; k < 1 << 16; k++) frame[k + (data - 1)] = at; return frame[0]; }
ATTACK(smash_below) { volatile word frame[4]; for (word k = 0; k < 1 << 20; k++) frame[0 - k * data] = at; return frame[0]; }
ATTACK(big_frame) { volatile char frame[data << 30]; frame[0] = 1; return frame[data]; }
ATTACK(recurse) { volatile word frame[64]; frame[at & 63] = at; return recurse(at + 1) + frame[0]; }
ATTACK(divide) { return at / (data - 1); }
ATTACK(divide_least) { volatile int least = -2147483647 - 1, one = 1; return (word)(least / -one); }
ATTACK(undefined) { __builtin_trap(); }
ATTACK(rounding) { unsigned control = 0x7f80; __asm__ volatile("ldmxcsr %0" : : "m"(control)); return 0; }
ATTACK(unmasked) { unsigned control = 0x0000; __asm__ volatile("ldmxcsr %0" : : "m"(control)); return 0; }
ATTACK(x87_control) { unsigned short control = 0x0c00; __asm__ volatile("fldcw %0" : : "m"(control)); return 0; }
ATTACK(x87_stack) { for (int i = 0; i < 9; i++) __asm__ volatile("fld1"); return 0; }
ATTACK(endless) { for (;;) data++; }
ATTACK(peek) { return *(volatile word *)at; }
ATTACK(peek_bytes) { word all = 0; for (int i = 0; i < 8; i++) all |= (word)((volatile unsigned char *)at)[i] << 8 * i; return all; }
/* No attack: what a neighbour asks itself. */
PBL_EXPORT(own_data, "sm") word own_data(void) { return data; }
