#include "check.h"
void test_memory(void) {}
