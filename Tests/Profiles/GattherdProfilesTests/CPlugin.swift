import TestKit

/// A native profile in C, whole or with one thing wrong.
enum CPlugin {
    /// Builds it with these macros defined.
    static func build(
        _ name: String = "plugin.so",
        in folder: TemporaryFolder,
        _ macros: String...
    ) async throws -> String {
        let defines = macros.map { "#define \($0)\n" }.joined()
        let listens = macros.contains { $0.hasPrefix("LISTENS") }
        return try await SharedLibrary.build(defines + (listens ? listener : source), to: name, in: folder)
    }

    private static let source = """
        #include <gattherd_profile.h>
        #include <stdbool.h>
        #include <stdlib.h>
        #include <string.h>

        #ifndef MAJOR
        #define MAJOR GATTHERD_PROFILE_MAJOR
        #endif
        #ifndef NAME
        #define NAME "thermometer"
        #endif
        #ifndef STREAM
        #define STREAM "temperature"
        #endif
        #ifndef METRIC
        #define METRIC "temperature"
        #endif
        #ifndef UNIT
        #define UNIT "°C"
        #endif
        #ifndef UUID
        #define UUID "2a6e"
        #endif
        #ifndef KIND
        #define KIND GATTHERD_METRIC_GAUGE
        #endif
        #ifndef SUBSCRIPTION
        #define SUBSCRIPTION GATTHERD_SUBSCRIBE_NOTIFY
        #endif
        #ifndef POLL
        #define POLL 0
        #endif
        #ifndef CONTROL_MIN
        #define CONTROL_MIN -10
        #endif
        #ifndef ECHO
        #define ECHO "temperature"
        #endif
        #ifndef CHARACTERISTIC_COUNT
        #define CHARACTERISTIC_COUNT 2
        #endif
        #ifndef SECOND_STREAM
        #define SECOND_STREAM "anything"
        #endif
        #ifndef METRIC_COUNT
        #define METRIC_COUNT 1
        #endif
        #ifndef LABELS
        #define LABELS labels
        #endif
        #ifndef SERVICES
        #define SERVICES services
        #endif
        #ifndef TABLE_SIZE
        #define TABLE_SIZE sizeof(gattherd_profile)
        #endif
        #ifndef METRIC_SIZE
        #define METRIC_SIZE sizeof(gattherd_metric)
        #endif
        #ifndef METRICS
        #define METRICS metrics
        #endif
        #ifndef TASK_COUNT
        #define TASK_COUNT 2
        #endif
        #ifndef TASK_KIND
        #define TASK_KIND GATTHERD_TASK_WRITE
        #endif
        #ifndef TASK_SIZE
        #define TASK_SIZE 2
        #endif
        #ifndef TASK_BYTES
        #define TASK_BYTES bytes
        #endif
        #ifndef TASK_UUID
        #define TASK_UUID "2a52"
        #endif
        #ifndef PATTERN
        #define PATTERN "06 00 01 ??"
        #endif
        #ifndef RESPONSE_COUNT
        #define RESPONSE_COUNT 2
        #endif
        #ifndef WITHIN
        #define WITHIN 60000
        #endif
        #ifndef RESUME_STREAM
        #define RESUME_STREAM "temperature"
        #endif
        #ifndef RESUME_METRIC
        #define RESUME_METRIC 0
        #endif
        #ifndef RESUME_WIDTH
        #define RESUME_WIDTH 2
        #endif
        #ifndef RESUME_PREFIX_SIZE
        #define RESUME_PREFIX_SIZE 1
        #endif
        #ifndef TESTS
        #define TESTS "{hex: C4 09, expect: {temperature: 25}}", "{hex: C4, reject: too short}"
        #endif
        #ifndef TEST_COUNT
        #define TEST_COUNT 2
        #endif
        #ifndef CREATE
        #define CREATE create
        #endif
        #ifndef DECODE
        #define DECODE decode
        #endif
        #ifndef ENTRY
        #define ENTRY gattherd_profile_v1
        #endif

        static int sessions = 0;
        static void *create(void *context, const gattherd_sender *sender) {
            (void)context; (void)sender; sessions++;
            return calloc(1, sizeof(int64_t));
        }
        static void destroy(void *session) { sessions--; free(session); }

        /* Stream 0: an i16 in 0.01 °C. Stream 1: what the payload's first octet asks for. */
        static int32_t decode(void *session, uint32_t characteristic, const uint8_t *payload, size_t size,
                              const gattherd_sink *sink) {
            if (characteristic == 0) {
                if (size < 2) { sink->fail(sink->context, "too short", 9); return GATTHERD_REJECT; }
                int16_t raw = (int16_t)(payload[0] | payload[1] << 8);
                sink->real(sink->context, 0, raw / 100.0);
                return GATTHERD_OK;
            }
            switch (size ? payload[0] : 255) {
            case 0: sink->integer(sink->context, 0, ++*(int64_t *)session); return GATTHERD_OK;
            case 1: sink->integer(sink->context, 9, 1); return GATTHERD_OK;
            case 2: for (;;) { static int n; sink->null(sink->context, 1); if (++n > 9000) return GATTHERD_OK; }
            case 3: sink->text(sink->context, 0, "\\xff\\x00", 2); return GATTHERD_OK;
            case 4: sink->text(sink->context, 0, NULL, 5); return GATTHERD_OK;
            case 5: sink->text(sink->context, 0, "x", (size_t)-1); return GATTHERD_OK;
            case 6: sink->fail(sink->context, NULL, 77); return GATTHERD_REJECT;
            case 7: sink->real(sink->context, 0, 0.0 / 0.0); return GATTHERD_OK;
            case 8: sink->fail(sink->context, "said so", 7); return GATTHERD_OK;
            case 9: sink->boolean(sink->context, 0, 200); return GATTHERD_OK;
            case 10: sink->integer(sink->context, 0, sessions); return GATTHERD_OK;
            case 11: for (int i = 0; i < 2; i++) sink->integer(sink->context, 0, i); return GATTHERD_OK;
            case 12: for (int i = 0; i < 2; i++) sink->integer(sink->context, 1, i); return GATTHERD_OK;
            default: return GATTHERD_REJECT;
            }
        }

        /* Control 0: the integer in one octet; 7 has no octets, 8 too many. Control 1: the position of the label. */
        static int32_t encode(void *context, uint32_t control, const gattherd_control_value *value, uint8_t *out,
                              size_t capacity, const gattherd_sink *sink) {
            if (control == 0 && value->integer == 7) { sink->fail(sink->context, "not 7", 5); return GATTHERD_REJECT; }
            if (control == 0 && value->integer == 8) return (int32_t)capacity + 1;
            out[0] = (uint8_t)value->integer;
            return 1;
        }

        static const gattherd_metric metric = {METRIC_SIZE, KIND, 0, 0, METRIC, UNIT};
        static const gattherd_metric *metrics[] = {&metric};
        static const gattherd_metric list = {sizeof list, GATTHERD_METRIC_GAUGE, GATTHERD_METRIC_REPEATED, 0, "list"};
        static const gattherd_metric *asked_metrics[] = {&metric, &list};
        static const char *tests[] = {TESTS};
        static const gattherd_characteristic measured = {
            sizeof measured, SUBSCRIPTION, GATTHERD_REQUIRED, METRIC_COUNT, UUID, NULL, STREAM, METRICS, POLL, 5000,
            .test_count = TEST_COUNT, .tests = tests};
        static const gattherd_characteristic asked = {
            sizeof asked, GATTHERD_SUBSCRIBE_NONE, GATTHERD_READ_AT_CONNECT, 2,
            "7a4b0001-999f-4717-b63a-066e06971f59", "180f", SECOND_STREAM, asked_metrics, 0, 0};
        static const gattherd_characteristic *characteristics[] = {&measured, &asked};
        static const char *labels[] = {"off", "on"};
        static const gattherd_response done = {.struct_size = sizeof done, .pattern = PATTERN};
        static const gattherd_response failed = {.struct_size = sizeof failed, .pattern = "06", .refusal = "no record"};
        static const gattherd_response *responses[] = {&done, &failed};
        static const gattherd_answer other = {
            .struct_size = sizeof other, .response_count = RESPONSE_COUNT, .uuid = "2a55", .responses = responses};
        static const gattherd_answer same = {
            .struct_size = sizeof same, .response_count = RESPONSE_COUNT, .responses = responses,
            .within_milliseconds = WITHIN};
        static const gattherd_control level = {
            sizeof level, GATTHERD_CONTROL_INTEGER, 0, 0, "level", "2a39", NULL, "%", ECHO, NULL,
            CONTROL_MIN, 10, 0, 0, 250};
        static const gattherd_control mode = {
            sizeof mode, GATTHERD_CONTROL_CHOICE, GATTHERD_WRITE_WITHOUT_RESPONSE, 2, "mode", "2a3a", NULL,
            NULL, NULL, LABELS, 0, 0, 0, 0, 0, &other};
        static const gattherd_control *controls[] = {&level, &mode};
        static const uint8_t bytes[] = {1, 1};
        static const gattherd_resume resume = {
            sizeof resume, RESUME_METRIC, RESUME_STREAM, bytes, RESUME_PREFIX_SIZE, RESUME_WIDTH};
        static const gattherd_task listen_first = {
            .struct_size = sizeof listen_first, .kind = GATTHERD_TASK_LISTEN, .flags = GATTHERD_WRITE_WITHOUT_RESPONSE,
            .uuid = "2a18", .service = "1808"};
        static const gattherd_task request = {
            .struct_size = sizeof request, .kind = TASK_KIND, .flags = GATTHERD_TASK_REQUIRED, .size = TASK_SIZE,
            .bytes = TASK_BYTES, .uuid = TASK_UUID, .service = "1808", .answer = &same, .resume = &resume};
        static const gattherd_task *tasks[] = {&listen_first, &request};
        static const char *services[] = {"181a"};

        static const gattherd_profile table = {
            .abi_major = MAJOR, .struct_size = TABLE_SIZE, .service_count = 1,
            .characteristic_count = CHARACTERISTIC_COUNT, .control_count = 2, .task_count = TASK_COUNT, .name = NAME,
            .title = "A thermometer", .services = SERVICES, .characteristics = characteristics, .controls = controls,
            .tasks = tasks, .session_create = CREATE, .session_destroy = destroy, .decode = DECODE, .encode = encode};

        const gattherd_profile *ENTRY(uint32_t host_minor) {
            (void)host_minor; (void)labels; (void)services; (void)metrics; (void)create; (void)decode;
        #ifdef UNWILLING
            return host_minor > 1000 ? &table : NULL;
        #else
            return &table;
        #endif
        }
        """

    /// A profile of advertisements: manufacturer data `A5 ?? …` with a number and a temperature, encrypted by its key.
    ///
    /// The last byte is the number. With a key, the first byte of the key is added to the temperature.
    private static let listener = """
        #include <gattherd_profile.h>
        #include <stdlib.h>
        #include <string.h>

        #ifndef SOURCE
        #define SOURCE GATTHERD_MANUFACTURER_DATA
        #endif
        #ifndef COMPANY
        #define COMPANY 0xFFFF
        #endif
        #ifndef FRAME_UUID
        #define FRAME_UUID NULL
        #endif
        #ifndef BEGINS
        #define BEGINS "A5 ??"
        #endif
        #ifndef SIZE_MIN
        #define SIZE_MIN 4
        #endif
        #ifndef SIZE_MAX_
        #define SIZE_MAX_ 4
        #endif
        #ifndef STREAM
        #define STREAM "garden"
        #endif
        #ifndef SILENCE
        #define SILENCE 30000
        #endif
        #ifndef RENEWAL
        #define RENEWAL 0
        #endif
        #ifndef FRAME_SIZE
        #define FRAME_SIZE sizeof frame
        #endif
        #ifndef SERVICE_COUNT
        #define SERVICE_COUNT 0
        #endif
        #ifndef FRAME_COUNT
        #define FRAME_COUNT 1
        #endif
        #ifndef DECODE
        #define DECODE decode
        #endif
        #ifndef TESTS
        #define TESTS "{hex: A5 01 19 07, expect: {temperature: 25}}"
        #endif
        #ifndef TEST_COUNT
        #define TEST_COUNT 1
        #endif

        typedef struct { uint8_t key, address; } sender_state;

        static void *create(void *context, const gattherd_sender *sender) {
            (void)context;
            sender_state *state = calloc(1, sizeof *state);
            if (sender) state->address = sender->address[5];
            if (sender && sender->key_size) state->key = sender->key[0];
            return state;
        }
        static void destroy(void *session) { free(session); }

        static int32_t decode(void *session, uint32_t stream, const uint8_t *payload, size_t size,
                              const gattherd_sink *sink) {
            (void)stream;
            const sender_state *state = session;
            if (size != 4) { sink->fail(sink->context, "too short", 9); return GATTHERD_REJECT; }
            sink->integer(sink->context, 0, payload[2] + state->key + state->address);
            sink->counter(sink->context, payload[3]);
            return GATTHERD_OK;
        }

        static const gattherd_metric metric = {.struct_size = sizeof metric, .name = "temperature", .unit = "°C"};
        static const gattherd_metric *metrics[] = {&metric};
        static const char *tests[] = {TESTS};
        static const gattherd_advertisement frame = {
            .struct_size = FRAME_SIZE, .source = SOURCE, .flags = GATTHERD_COUNTED, .metric_count = 1,
            .company = COMPANY, .size_min = SIZE_MIN, .size_max = SIZE_MAX_, .test_count = TEST_COUNT,
            .uuid = FRAME_UUID, .stream = STREAM, .name = "Garden*", .begins = BEGINS, .metrics = metrics,
            .tests = tests, .silence_milliseconds = SILENCE, .renewal_milliseconds = RENEWAL};
        static const gattherd_advertisement *advertisements[] = {&frame, &frame};
        static const char *services[] = {"181a"};

        static const gattherd_profile table = {
            .abi_major = GATTHERD_PROFILE_MAJOR, .struct_size = sizeof table, .service_count = SERVICE_COUNT,
            .advertisement_count = FRAME_COUNT, .name = "garden-beacon", .title = "Garden beacon",
            .services = services, .advertisements = advertisements, .session_create = create,
            .session_destroy = destroy, .decode = DECODE};

        const gattherd_profile *gattherd_profile_v1(uint32_t host_minor) {
            (void)host_minor; (void)decode;
            return &table;
        }
        """
}
