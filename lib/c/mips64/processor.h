/* The thread pointer is so far above the thread-local block, which a displacement of 16 bits then reaches. */
#define PEBBLE_TP_OFFSET 0x7000
/* The running thread's thread-local block. */
#define PEBBLE_BLOCK()                                                                                           \
    __extension__({                                                                                              \
        char *block_;                                                                                            \
        __asm__("daddiu %0, $28, -0x7000" : "=r"(block_));                                                       \
        block_;                                                                                                  \
    })
/* From one handler's entries to the next one's. */
#define PEBBLE_HANDLER_BYTES 16
/* The entry of an interface: on to its function by way of crt0.S. */
#define PEBBLE_ENTER(function)                                                                                   \
    __asm__(".set push\n\t.set noreorder\n\tlui $12, %%hi(%0)\n\tdaddiu $12, $12, %%lo(%0)\n\tj __pebble_enter\n\tnop\n\t.set pop" \
            :                                                                                                    \
            : "i"(function))
/* Gives up: a fault that is told so. */
#define PEBBLE_ABORT() __asm__ volatile(".word %0" : : "i"(ABORT_INSTRUCTION))
