// The contract is the header. Here the compiler checks what no later minor may change.
#include "gattherd_profile.h"

_Static_assert(offsetof(gattherd_profile, abi_major) == 0, "the major is looked at before anything else");
_Static_assert(offsetof(gattherd_profile, struct_size) == 8, "then the size");
_Static_assert(offsetof(gattherd_metric, struct_size) == 0, "every other structure begins with its size");
_Static_assert(offsetof(gattherd_characteristic, struct_size) == 0, "every other structure begins with its size");
_Static_assert(offsetof(gattherd_control, struct_size) == 0, "every other structure begins with its size");

// What minor 0 had, where pointers have 8 octets.
#if UINTPTR_MAX == UINT64_MAX
_Static_assert(offsetof(gattherd_metric, wrap_bits) == 32, "minor 0 ended here");
_Static_assert(offsetof(gattherd_characteristic, poll_instead_milliseconds) == 64, "minor 0 ended here");
_Static_assert(offsetof(gattherd_profile, flags) == 104, "minor 0 ended here");
_Static_assert(sizeof(gattherd_control) == 104, "minor 0 ended here");
#endif
