/* refused: its table has an impossible struct_size of 4294967295 */
#include "gattherd_profile-1.0.h"

static int32_t decode(void *session, uint32_t characteristic, const uint8_t *payload, size_t size,
                      const gattherd_sink *sink) {
    (void)session; (void)characteristic; (void)payload; (void)size; (void)sink;
    return GATTHERD_OK;
}

static const gattherd_metric metric = {sizeof metric, GATTHERD_METRIC_GAUGE, 0, 0, "level", "%"};
static const gattherd_metric *metrics[] = {&metric};
static const gattherd_characteristic level = {
    sizeof level, GATTHERD_SUBSCRIBE_NOTIFY, 0, 1, "2a19", NULL, "level", metrics, 0, 0};
static const gattherd_characteristic *characteristics[] = {&level};
static const char *services[] = {"180f"};
static const gattherd_profile table = {
    GATTHERD_PROFILE_MAJOR, GATTHERD_PROFILE_MINOR, UINT32_MAX, 1, 1, 0, "hostile", "Hostile", services, characteristics, NULL, NULL, NULL, NULL, decode, NULL};

const gattherd_profile *gattherd_profile_v1(uint32_t host_minor) { (void)host_minor; return &table; }
