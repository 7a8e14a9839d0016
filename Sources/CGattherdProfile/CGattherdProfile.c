// The contract is the header; SwiftPM wants a source file beside it.
#include "gattherd_profile.h"
