/* The thread pointer points to the thread-local block. */
#define PEBBLE_TP_OFFSET 0
/* The running thread's thread-local block. */
#define PEBBLE_BLOCK() ((char *)__builtin_thread_pointer())
/* From one handler's entries to the next one's. */
#define PEBBLE_HANDLER_BYTES 8
/* The entry of an interface: on to its function by way of crt0.S. */
#define PEBBLE_ENTER(function) __asm__("lla t0, %0\n\ttail __pebble_enter" : : "i"(function))
/* Gives up: a fault that is told so. */
#define PEBBLE_ABORT() __asm__ volatile(".word %0" : : "i"(ABORT_INSTRUCTION))
