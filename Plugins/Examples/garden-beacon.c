#include "gattherd_profile.h"

/* Manufacturer data of company FFFF: A5 01, the temperature in 0.01 °C, the number of the reading. */
static const gattherd_metric temperature = {
    .struct_size = sizeof(gattherd_metric), .kind = GATTHERD_METRIC_GAUGE, .name = "temperature", .unit = "°C"};
static const gattherd_metric *const metrics[] = {&temperature};

/* A payload with the number of the one before is the same reading and gives no samples. */
static const char *const tests[] = {
    "{hex: A5 01 C4 09 07, expect: {temperature: 25}}",
    "{hex: [A5 01 C4 09 07, A5 01 C5 09 07], expect: {}}"};

static const gattherd_advertisement garden = {
    .struct_size = sizeof(gattherd_advertisement),
    .source = GATTHERD_MANUFACTURER_DATA,
    .flags = GATTHERD_COUNTED,
    .metric_count = 1,
    .company = 0xFFFF,
    .size_min = 5,
    .size_max = 5,
    .test_count = 2,
    .stream = "garden",
    .begins = "A5 01",
    .metrics = metrics,
    .tests = tests};
static const gattherd_advertisement *const advertisements[] = {&garden};

static int32_t decode(void *session, uint32_t stream, const uint8_t *payload, size_t size, const gattherd_sink *sink) {
    (void)session, (void)stream;
    if (size < 5) {
        static const char reason[] = "truncated";
        sink->fail(sink->context, reason, sizeof reason - 1);
        return GATTHERD_REJECT;
    }
    sink->real(sink->context, 0, (int16_t)(payload[2] | payload[3] << 8) / 100.0);
    sink->counter(sink->context, payload[4]);
    return GATTHERD_OK;
}

static const gattherd_profile profile = {
    .abi_major = GATTHERD_PROFILE_MAJOR,
    .abi_minor = GATTHERD_PROFILE_MINOR,
    .struct_size = sizeof(gattherd_profile),
    .advertisement_count = 1,
    .name = "garden-beacon",
    .title = "Garden beacon",
    .advertisements = advertisements,
    .decode = decode};

const gattherd_profile *gattherd_profile_v1(uint32_t host_minor) {
    (void)host_minor;
    return &profile;
}
