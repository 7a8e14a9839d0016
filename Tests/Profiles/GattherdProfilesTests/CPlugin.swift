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
        return try await SharedLibrary.build(defines + source, to: name, in: folder)
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
        static void *create(void *context) { (void)context; sessions++; return calloc(1, sizeof(int64_t)); }
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
            case 2: for (;;) { static int n; sink->null(sink->context, 0); if (++n > 9000) return GATTHERD_OK; }
            case 3: sink->text(sink->context, 0, "\\xff\\x00", 2); return GATTHERD_OK;
            case 4: sink->text(sink->context, 0, NULL, 5); return GATTHERD_OK;
            case 5: sink->text(sink->context, 0, "x", (size_t)-1); return GATTHERD_OK;
            case 6: sink->fail(sink->context, NULL, 77); return GATTHERD_REJECT;
            case 7: sink->real(sink->context, 0, 0.0 / 0.0); return GATTHERD_OK;
            case 8: sink->fail(sink->context, "said so", 7); return GATTHERD_OK;
            case 9: sink->boolean(sink->context, 0, 200); return GATTHERD_OK;
            case 10: sink->integer(sink->context, 0, sessions); return GATTHERD_OK;
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
        static const gattherd_characteristic measured = {
            sizeof(gattherd_characteristic), SUBSCRIPTION, GATTHERD_REQUIRED, METRIC_COUNT, UUID, NULL, STREAM,
            METRICS, POLL, 5000};
        static const gattherd_characteristic asked = {
            sizeof(gattherd_characteristic), GATTHERD_SUBSCRIBE_NONE, GATTHERD_READ_AT_CONNECT, 1,
            "7a4b0001-999f-4717-b63a-066e06971f59", "180f", SECOND_STREAM, metrics, 0, 0};
        static const gattherd_characteristic *characteristics[] = {&measured, &asked};
        static const char *labels[] = {"off", "on"};
        static const gattherd_control level = {
            sizeof(gattherd_control), GATTHERD_CONTROL_INTEGER, 0, 0, "level", "2a39", NULL, "%", ECHO, NULL,
            CONTROL_MIN, 10, 0, 0, 250};
        static const gattherd_control mode = {
            sizeof(gattherd_control), GATTHERD_CONTROL_CHOICE, GATTHERD_WRITE_WITHOUT_RESPONSE, 2, "mode", "2a3a", NULL,
            NULL, NULL, LABELS, 0, 0, 0, 0, 0};
        static const gattherd_control *controls[] = {&level, &mode};
        static const char *services[] = {"181a"};

        static const gattherd_profile table = {
            MAJOR, 0, TABLE_SIZE, 1, CHARACTERISTIC_COUNT, 2, NAME, "A thermometer", SERVICES, characteristics,
            controls, NULL, CREATE, destroy, DECODE, encode};

        const gattherd_profile *ENTRY(uint32_t host_minor) {
            (void)host_minor; (void)labels; (void)services; (void)metrics; (void)create; (void)decode;
        #ifdef UNWILLING
            return host_minor > 1000 ? &table : NULL;
        #else
            return &table;
        #endif
        }
        """
}
