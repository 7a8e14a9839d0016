/* A counter that wraps, a polled fallback, a profile that must be named. */
#include "gattherd_profile-1.0.h"

static int32_t decode(void *session, uint32_t stream, const uint8_t *payload, size_t size,
                      const gattherd_sink *sink) {
    (void)session;
    (void)stream;
    if (size < 2) return GATTHERD_REJECT;
    sink->integer(sink->context, 0, payload[0] | payload[1] << 8);
    return GATTHERD_OK;
}

static const gattherd_metric metric = {
    .struct_size = sizeof metric, .kind = GATTHERD_METRIC_COUNTER, .name = "turns", .wrap_bits = 16};
static const gattherd_metric *metrics[] = {&metric};
static const gattherd_characteristic turns = {
    .struct_size = sizeof turns, .subscription = GATTHERD_SUBSCRIBE_NOTIFY, .metric_count = 1, .uuid = "2a5b",
    .stream = "turns", .metrics = metrics, .poll_instead_milliseconds = 5000};
static const gattherd_characteristic *characteristics[] = {&turns};
static const char *services[] = {"1816"};
static const gattherd_profile table = {
    .abi_major = GATTHERD_PROFILE_MAJOR, .abi_minor = GATTHERD_PROFILE_MINOR, .struct_size = sizeof table,
    .service_count = 1, .characteristic_count = 1, .name = "counter", .title = "Counter", .services = services,
    .characteristics = characteristics, .decode = decode, .flags = GATTHERD_OPT_IN};

const gattherd_profile *gattherd_profile_v1(uint32_t host_minor) { (void)host_minor; return &table; }
