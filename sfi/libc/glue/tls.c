/* Replaces __init_tls.c: the runtime has made the thread's TLS block; only the control block is filled in. */
#include "pthread_impl.h"
#include "libc.h"
#include <string.h>
_Thread_local __attribute__((aligned(64))) char __pbl_self[sizeof(struct pthread)];
volatile int __thread_list_lock;
int __init_tp(void *p) {
    pthread_t td = p;
    td->self = td;
    libc.can_do_threads = 0;
    td->detach_state = DT_JOINABLE;
    td->tid = 1;
    td->locale = &libc.global_locale;
    td->robust_list.head = &td->robust_list.head;
    td->next = td->prev = td;
    return 0;
}
void *__copy_tls(unsigned char *mem) { (void)mem; return 0; }
void __init_tls(size_t *aux) { (void)aux; libc.tls_size = 4096; libc.tls_align = 64; __init_tp(__pbl_self); }
