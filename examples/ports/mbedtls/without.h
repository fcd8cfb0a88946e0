/* What of mbed TLS's configuration does not hold here: there is no network, no signals, and no source of entropy. */
#define MBEDTLS_NO_PLATFORM_ENTROPY
#undef MBEDTLS_NET_C
#undef MBEDTLS_TIMING_C
#undef MBEDTLS_ENTROPY_C
#undef MBEDTLS_ENTROPY_NV_SEED
#undef MBEDTLS_PSA_CRYPTO_C
#undef MBEDTLS_PSA_CRYPTO_STORAGE_C
#undef MBEDTLS_PSA_ITS_FILE_C
