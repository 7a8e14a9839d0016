#include "gattherd_profile.h"

/* fff1 notifies the temperature in 0.01 °C, then the moisture in percent. */
static const gattherd_metric temperature = {
    .struct_size = sizeof(gattherd_metric), .kind = GATTHERD_METRIC_GAUGE, .name = "temperature", .unit = "°C"};
static const gattherd_metric moisture = {
    .struct_size = sizeof(gattherd_metric), .kind = GATTHERD_METRIC_GAUGE, .name = "moisture", .unit = "%"};
static const gattherd_metric *const metrics[] = {&temperature, &moisture};

/* `gattherd profile test` runs these. */
static const char *const tests[] = {
    "{hex: C4 09 2D, expect: {temperature: 25, moisture: 45}}",
    "{hex: C4 09, reject: truncated}"};

static const gattherd_characteristic soil = {
    .struct_size = sizeof(gattherd_characteristic),
    .subscription = GATTHERD_SUBSCRIBE_NOTIFY,
    .flags = GATTHERD_REQUIRED,
    .metric_count = 2,
    .uuid = "fff1",
    .stream = "soil",
    .metrics = metrics,
    .test_count = 2,
    .tests = tests};
static const gattherd_characteristic *const characteristics[] = {&soil};

static int32_t decode(void *session, uint32_t stream, const uint8_t *payload, size_t size, const gattherd_sink *sink) {
    (void)session, (void)stream;
    if (size < 3) {
        static const char reason[] = "truncated";
        sink->fail(sink->context, reason, sizeof reason - 1);
        return GATTHERD_REJECT;
    }
    sink->real(sink->context, 0, (int16_t)(payload[0] | payload[1] << 8) / 100.0);
    sink->integer(sink->context, 1, payload[2]);
    return GATTHERD_OK;
}

/* At each connect fff2 is told to measure every 60 s. It answers with a notification: 81 00, or 81 and an error. */
static const gattherd_response done = {.struct_size = sizeof(gattherd_response), .pattern = "81 00"};
static const gattherd_response refused = {
    .struct_size = sizeof(gattherd_response), .pattern = "81 ??", .refusal = "the interval is refused"};
static const gattherd_response *const responses[] = {&done, &refused};
static const gattherd_answer answer = {
    .struct_size = sizeof(gattherd_answer), .response_count = 2, .responses = responses};
static const uint8_t interval[] = {0x01, 60, 0};
static const gattherd_task set_interval = {
    .struct_size = sizeof(gattherd_task),
    .kind = GATTHERD_TASK_WRITE,
    .size = sizeof interval,
    .bytes = interval,
    .uuid = "fff2",
    .answer = &answer};
static const gattherd_task *const tasks[] = {&set_interval};

static const char *const services[] = {"fff0"};
static const gattherd_profile profile = {
    .abi_major = GATTHERD_PROFILE_MAJOR,
    .abi_minor = GATTHERD_PROFILE_MINOR,
    .struct_size = sizeof(gattherd_profile),
    .service_count = 1,
    .characteristic_count = 1,
    .task_count = 1,
    .name = "soil-probe",
    .title = "Soil probe",
    .services = services,
    .characteristics = characteristics,
    .tasks = tasks,
    .decode = decode};

const gattherd_profile *gattherd_profile_v1(uint32_t host_minor) {
    (void)host_minor;
    return &profile;
}
