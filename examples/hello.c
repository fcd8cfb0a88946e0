/* The smallest component that says something. */
#include <pebble.h>
#include <stdio.h>

int main(void) {
    printf("Hello from domain %d, thread %d.\n", get_asid(), get_thread_id());
    return 0;
}
