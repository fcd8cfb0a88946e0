/* In front of the compiler's own: whoever asks for AVX-512 in the source is told before any code is made, and so is a `configure` that asks whether there is any. */
#ifdef __AVX512F__
#error "code for AVX-512 cannot be confined: leave out the target, or ask for avx2"
#endif
#include_next <immintrin.h>
