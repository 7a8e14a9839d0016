/* refused: entry 0 of its tests of stream 'records' has more than 4096 bytes */
#include "gattherd_profile-1.0.h"

static int32_t decode(void *session, uint32_t stream, const uint8_t *payload, size_t size, const gattherd_sink *sink) {
    (void)session;
    (void)stream;
    if (size < 2) return GATTHERD_REJECT;
    sink->integer(sink->context, 0, payload[0]);
    sink->integer(sink->context, 1, payload[1]);
    return GATTHERD_OK;
}

static int32_t encode(void *context, uint32_t control, const gattherd_control_value *value, uint8_t *out,
                      size_t capacity, const gattherd_sink *sink) {
    (void)context; (void)control; (void)value; (void)capacity; (void)sink;
    out[0] = 9;
    return 1;
}

static const gattherd_metric value = {.struct_size = sizeof value, .name = "value"};
static const gattherd_metric number = {.struct_size = sizeof number, .name = "number"};
static const gattherd_metric *metrics[] = {&value, &number};
static const char endless[5000] = {[0 ... 4999] = 'a'};
static const char *tests[] = {endless, "{hex: [05 06, 07], reject: true}"};
static const gattherd_characteristic records = {
    .struct_size = sizeof records, .subscription = GATTHERD_SUBSCRIBE_INDICATE, .metric_count = 2, .uuid = "2a18",
    .stream = "records", .metrics = metrics, .test_count = 2, .tests = tests};
static const gattherd_characteristic *characteristics[] = {&records};

static const gattherd_response done = {.struct_size = sizeof done, .pattern = "06 00 ??"};
static const gattherd_response refused = {.struct_size = sizeof refused, .pattern = "06", .refusal = "refused"};
static const gattherd_response *responses[] = {&done, &refused};
static const gattherd_answer answer = {
    .struct_size = sizeof answer, .response_count = 2, .uuid = "2a52", .service = "1808", .responses = responses,
    .within_milliseconds = 30000};
static const uint8_t all[] = {1, 1}, rest[] = {1, 3};
static const gattherd_resume resume = {
    .struct_size = sizeof resume, .metric = 1, .stream = "records", .prefix = rest, .prefix_size = 2, .width = 2};
static const gattherd_task listen = {
    .struct_size = sizeof listen, .kind = GATTHERD_TASK_LISTEN, .uuid = "2a34", .service = "1808"};
static const gattherd_task request = {
    .struct_size = sizeof request, .kind = GATTHERD_TASK_WRITE,
    .flags = GATTHERD_TASK_REQUIRED | GATTHERD_WRITE_WITHOUT_RESPONSE, .size = 2, .bytes = all, .uuid = "2a53",
    .answer = &answer, .resume = &resume};
static const gattherd_task *tasks[] = {&listen, &request};

static const gattherd_control erase = {
    .struct_size = sizeof erase, .kind = GATTHERD_CONTROL_TRIGGER, .name = "erase", .uuid = "2a52", .answer = &answer};
static const gattherd_control *controls[] = {&erase};
static const char *services[] = {"1808"};
static const gattherd_profile table = {
    .abi_major = GATTHERD_PROFILE_MAJOR, .abi_minor = GATTHERD_PROFILE_MINOR, .struct_size = sizeof table,
    .service_count = 1, .characteristic_count = 1, .control_count = 1, .task_count = 2, .name = "tasks",
    .title = "Tasks", .services = services, .characteristics = characteristics, .controls = controls, .tasks = tasks,
    .decode = decode, .encode = encode};

const gattherd_profile *gattherd_profile_v1(uint32_t host_minor) { (void)host_minor; return &table; }
