/* refused: entry 0 of its advertisements is NULL */
#include "gattherd_profile-1.0.h"
#include <stdlib.h>

static void *create(void *context, const gattherd_sender *sender) {
    (void)context;
    int64_t *state = calloc(1, sizeof *state);
    if (sender && sender->key_size == 16) *state = sender->key[15] + sender->address[0];
    return state;
}
static void destroy(void *session) { free(session); }

static int32_t decode(void *session, uint32_t stream, const uint8_t *payload, size_t size, const gattherd_sink *sink) {
    if (size < 2) return GATTHERD_REJECT;
    sink->integer(sink->context, 0, payload[1] + *(const int64_t *)session);
    if (stream == 0) sink->counter(sink->context, payload[0]);
    return GATTHERD_OK;
}

static const gattherd_metric metric = {.struct_size = sizeof metric, .name = "level"};
static const gattherd_metric *metrics[] = {&metric};
static const char *tests[] = {
    "{hex: 01 05, expect: {level: 5}}", "{hex: [01 05, 01 05], expect: {}}",
    "{hex: 01 05, address: C0:FF:EE:00:00:01, key: 00000000000000000000000000000001, expect: {level: 198}}"};
static const gattherd_advertisement counted = {
    .struct_size = sizeof counted, .source = GATTHERD_MANUFACTURER_DATA, .flags = GATTHERD_COUNTED, .metric_count = 1,
    .company = 0x0499, .size_min = 2, .test_count = 3, .stream = "counted", .name = "B*", .metrics = metrics,
    .tests = tests};
static const gattherd_advertisement open = {
    .struct_size = sizeof open, .source = GATTHERD_SERVICE_DATA, .flags = GATTHERD_OPEN, .metric_count = 1,
    .size_max = 8, .uuid = "fcd2", .stream = "open", .begins = "40", .metrics = metrics, .silence_milliseconds = 1000,
    .renewal_milliseconds = 2000};
static const gattherd_advertisement *advertisements[] = {NULL, &counted, &open};
static const gattherd_profile table = {
    .abi_major = GATTHERD_PROFILE_MAJOR, .abi_minor = GATTHERD_PROFILE_MINOR, .struct_size = sizeof table,
    .advertisement_count = 2, .name = "beacon", .title = "Beacon", .advertisements = advertisements,
    .session_create = create, .session_destroy = destroy, .decode = decode};

const gattherd_profile *gattherd_profile_v1(uint32_t host_minor) { (void)host_minor; return &table; }
