#include "check.h"
void test_formats(void) {}
