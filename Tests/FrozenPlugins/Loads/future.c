/* A later minor version: every structure has additional members at its end that today's host does not know. */
#include <gattherd_profile.h>
#include <string.h>

typedef struct { gattherd_metric known; uint8_t more[40]; } metric_99;
typedef struct { gattherd_characteristic known; uint8_t more[24]; } characteristic_99;
typedef struct { gattherd_control known; uint8_t more[16]; } control_99;
typedef struct { gattherd_profile known; uint8_t more[64]; } profile_99;

static int32_t decode(void *session, uint32_t stream, const uint8_t *payload, size_t size,
                      const gattherd_sink *sink) {
    (void)session;
    (void)stream;
    (void)payload;
    sink->integer(sink->context, 0, (int64_t)size);
    return GATTHERD_OK;
}

static int32_t encode(void *context, uint32_t control, const gattherd_control_value *value, uint8_t *out,
                      size_t capacity, const gattherd_sink *sink) {
    (void)context; (void)control; (void)value; (void)capacity; (void)sink;
    out[0] = 1;
    return 1;
}

static metric_99 metric;
static characteristic_99 characteristic;
static control_99 control;
static profile_99 table;
static const gattherd_metric *metrics[] = {&metric.known};
static const gattherd_characteristic *characteristics[] = {&characteristic.known};
static const gattherd_control *controls[] = {&control.known};
static const char *services[] = {"181a"};

const gattherd_profile *gattherd_profile_v1(uint32_t host_minor) {
    (void)host_minor;
    memset(metric.more, 0xA5, sizeof metric.more);
    memset(characteristic.more, 0xA5, sizeof characteristic.more);
    memset(control.more, 0xA5, sizeof control.more);
    memset(table.more, 0xA5, sizeof table.more);
    metric.known = (gattherd_metric){.struct_size = sizeof metric, .name = "size"};
    characteristic.known = (gattherd_characteristic){
        .struct_size = sizeof characteristic, .subscription = GATTHERD_SUBSCRIBE_NOTIFY, .metric_count = 1,
        .uuid = "2a6e", .stream = "size", .metrics = metrics};
    control.known = (gattherd_control){
        .struct_size = sizeof control, .kind = GATTHERD_CONTROL_TRIGGER, .name = "go", .uuid = "2a39"};
    table.known = (gattherd_profile){
        .abi_major = GATTHERD_PROFILE_MAJOR, .abi_minor = 99, .struct_size = sizeof table, .service_count = 1,
        .characteristic_count = 1, .control_count = 1, .name = "future", .title = "Future", .services = services,
        .characteristics = characteristics, .controls = controls, .decode = decode, .encode = encode};
    return &table.known;
}
