/* refused: it uses contract 2, gattherd supports contract 1 */
#include <stdint.h>

/* A major that is still to come: only its first member means what we think. */
static const struct { uint32_t abi_major; void *what_ever[3]; } table = {2, {(void *)1, (void *)2, (void *)3}};

const void *gattherd_profile_v1(uint32_t host_minor) { (void)host_minor; return &table; }
