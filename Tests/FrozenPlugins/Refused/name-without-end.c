/* refused: its name has more than 255 bytes */
#include "gattherd_profile-1.0.h"

static const char endless[300] = {[0 ... 299] = 'a'};

static int32_t decode(void *session, uint32_t stream, const uint8_t *payload, size_t size,
                      const gattherd_sink *sink) {
    (void)session; (void)stream; (void)payload; (void)size; (void)sink;
    return GATTHERD_OK;
}

static const gattherd_metric metric = {sizeof metric, GATTHERD_METRIC_GAUGE, 0, 0, "level", "%"};
static const gattherd_metric *metrics[] = {&metric};
static const gattherd_characteristic level = {
    sizeof level, GATTHERD_SUBSCRIBE_NOTIFY, 0, 1, "2a19", NULL, "level", metrics, 0, 0};
static const gattherd_characteristic *characteristics[] = {&level};
static const char *services[] = {"180f"};
static const gattherd_profile table = {
    .abi_major = GATTHERD_PROFILE_MAJOR, .abi_minor = GATTHERD_PROFILE_MINOR, .struct_size = sizeof table,
    .service_count = 1, .characteristic_count = 1, .name = endless, .title = "Hostile", .services = services,
    .characteristics = characteristics, .decode = decode};

const gattherd_profile *gattherd_profile_v1(uint32_t host_minor) { (void)host_minor; return &table; }
