/* A profile with session state, polling, and controls of every kind. */
#include "gattherd_profile-1.0.h"
#include <stdlib.h>

static void *create(void *context, const gattherd_sender *sender) {
    (void)context;
    (void)sender;
    return calloc(1, sizeof(int64_t));
}
static void destroy(void *session) { free(session); }

/* Emits the number of calls and half the sum of the bytes. */
static int32_t decode(void *session, uint32_t stream, const uint8_t *payload, size_t size,
                      const gattherd_sink *sink) {
    (void)stream;
    int64_t sum = 0;
    for (size_t index = 0; index < size; index++) sum += payload[index];
    sink->integer(sink->context, 0, ++*(int64_t *)session);
    sink->real(sink->context, 1, sum / 2.0);
    sink->text(sink->context, 2, "two", 3);
    sink->boolean(sink->context, 3, size > 0);
    sink->null(sink->context, 4);
    return GATTHERD_OK;
}

static int32_t encode(void *context, uint32_t control, const gattherd_control_value *value, uint8_t *out,
                      size_t capacity, const gattherd_sink *sink) {
    (void)context;
    if (capacity < 2) { sink->fail(sink->context, "no room", 7); return GATTHERD_REJECT; }
    out[0] = (uint8_t)control;
    out[1] = value->kind == GATTHERD_CONTROL_REAL ? (uint8_t)(value->real * 2) : (uint8_t)value->integer;
    return 2;
}

static const gattherd_metric metrics[] = {
    {sizeof metrics[0], GATTHERD_METRIC_COUNTER, 0, 0, "count", NULL},
    {sizeof metrics[0], GATTHERD_METRIC_GAUGE, GATTHERD_METRIC_REPEATED, 0, "half", "m/s"},
    {sizeof metrics[0], GATTHERD_METRIC_STATE, 0, 0, "label", NULL},
    {sizeof metrics[0], GATTHERD_METRIC_STATE, 0, 0, "flag", NULL},
    {sizeof metrics[0], GATTHERD_METRIC_EVENT, 0, 0, "event", NULL},
};
static const gattherd_metric *list[] = {&metrics[0], &metrics[1], &metrics[2], &metrics[3], &metrics[4]};
static const gattherd_characteristic polled = {
    sizeof polled, GATTHERD_SUBSCRIBE_POLL, GATTHERD_READ_AT_CONNECT | GATTHERD_REQUIRED | GATTHERD_PREFERS_SOCKET, 5,
    "7a4b0001-999f-4717-b63a-066e06971f59", "180f", "polled", list, 60000, 180000};
static const gattherd_characteristic *characteristics[] = {&polled};
static const char *labels[] = {"off", "on"};
static const gattherd_control controls[] = {
    {sizeof controls[0], GATTHERD_CONTROL_INTEGER, 0, 0, "whole", "2a39", NULL, NULL, "polled", NULL, 0, 200, 0, 0, 100},
    {sizeof controls[0], GATTHERD_CONTROL_REAL, 0, 0, "real", "2a39", NULL, "m", NULL, NULL, 0, 0, 0, 100, 0},
    {sizeof controls[0], GATTHERD_CONTROL_BOOLEAN, 0, 0, "boolean", "2a39", NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0},
    {sizeof controls[0], GATTHERD_CONTROL_CHOICE, GATTHERD_WRITE_WITHOUT_RESPONSE, 2, "choice", "2a39", "180d", NULL,
     NULL, labels, 0, 0, 0, 0, 0},
    {sizeof controls[0], GATTHERD_CONTROL_TRIGGER, 0, 0, "trigger", "2a39", NULL, NULL, NULL, NULL, 0, 0, 0, 0, 0},
};
static const gattherd_control *all[] = {&controls[0], &controls[1], &controls[2], &controls[3], &controls[4]};
static const char *services[] = {"180f", "7a4bbfe6-999f-4717-b63a-066e06971f59"};
static const gattherd_profile table = {
    .abi_major = GATTHERD_PROFILE_MAJOR, .abi_minor = GATTHERD_PROFILE_MINOR, .struct_size = sizeof table,
    .service_count = 2, .characteristic_count = 1, .control_count = 5, .name = "stateful",
    .title = "Stateful", .services = services, .characteristics = characteristics, .controls = all,
    .session_create = create, .session_destroy = destroy, .decode = decode, .encode = encode};

const gattherd_profile *gattherd_profile_v1(uint32_t host_minor) { (void)host_minor; return &table; }
