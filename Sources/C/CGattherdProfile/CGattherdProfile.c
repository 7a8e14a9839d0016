// The contract is the header. These assertions check what no later minor version may change.
#include "gattherd_profile.h"

_Static_assert(offsetof(gattherd_profile, abi_major) == 0, "the host reads the major first");
_Static_assert(offsetof(gattherd_profile, struct_size) == 8, "the host reads the size next");
_Static_assert(offsetof(gattherd_metric, struct_size) == 0, "structures begin with their size");
_Static_assert(offsetof(gattherd_characteristic, struct_size) == 0, "structures begin with their size");
_Static_assert(offsetof(gattherd_advertisement, struct_size) == 0, "structures begin with their size");
_Static_assert(offsetof(gattherd_control, struct_size) == 0, "structures begin with their size");
_Static_assert(offsetof(gattherd_task, struct_size) == 0, "structures begin with their size");
_Static_assert(offsetof(gattherd_answer, struct_size) == 0, "structures begin with their size");
_Static_assert(offsetof(gattherd_response, struct_size) == 0, "structures begin with their size");
_Static_assert(offsetof(gattherd_resume, struct_size) == 0, "structures begin with their size");

// The sizes of version 1.0, on platforms with 64-bit pointers.
#if UINTPTR_MAX == UINT64_MAX
_Static_assert(sizeof(gattherd_metric) == 40, "the size in version 1.0");
_Static_assert(sizeof(gattherd_characteristic) == 88, "the size in version 1.0");
_Static_assert(sizeof(gattherd_advertisement) == 96, "the size in version 1.0");
_Static_assert(sizeof(gattherd_control) == 112, "the size in version 1.0");
_Static_assert(sizeof(gattherd_task) == 56, "the size in version 1.0");
_Static_assert(sizeof(gattherd_answer) == 40, "the size in version 1.0");
_Static_assert(sizeof(gattherd_response) == 24, "the size in version 1.0");
_Static_assert(sizeof(gattherd_resume) == 32, "the size in version 1.0");
_Static_assert(sizeof(gattherd_profile) == 136, "the size in version 1.0");
#endif
