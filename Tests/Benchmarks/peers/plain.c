// A plain collector in C: libdbus, libmosquitto and SQLite collect heart rates.
//
//     plain BROKER_PORT DATABASE NAME=ADDRESS…
//
// Each notification is a D-Bus signal, decoded with libdbus's iterators, published with QoS 1 as it comes and stored; a commit, on the
// disk as gattherd's are, comes ten times a second. Like collector.py it keeps nothing for a broker that is away and publishes what
// may not be stored yet; nor does it connect again. The bus is DBUS_SYSTEM_BUS_ADDRESS.
#include <dbus/dbus.h>
#include <mosquitto.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define ADAPTER "/org/bluez/hci0"
#define MEASUREMENT "00002a37-0000-1000-8000-00805f9b34fb"
#define CHARACTERISTIC "org.bluez.GattCharacteristic1"
#define PROPERTIES "org.freedesktop.DBus.Properties"

typedef struct {
    const char *name;
    char path[64];
    char topic[96];
    bool is_subscribed;
} device;

typedef struct {
    DBusConnection *bus;
    struct mosquitto *broker;
    sqlite3 *history;
    sqlite3_stmt *insert;
    device *devices;
    int count;
    int64_t seq;
    int64_t committed;
} collector;

static void fail(const char *what, const char *why) {
    fprintf(stderr, "plain: %s: %s\n", what, why);
    exit(1);
}

static int64_t microseconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

static void must(collector *self, int result, int expected) {
    if (result != expected) fail("history", sqlite3_errmsg(self->history));
}

static void commit(collector *self) {
    must(self, sqlite3_exec(self->history, "COMMIT; BEGIN", NULL, NULL, NULL), SQLITE_OK);
    self->committed = self->seq;
}

static void store(collector *self, int64_t time, const device *from, int value) {
    sqlite3_bind_int64(self->insert, 1, self->seq);
    sqlite3_bind_int64(self->insert, 2, time);
    sqlite3_bind_text(self->insert, 3, from->name, -1, SQLITE_STATIC);
    sqlite3_bind_double(self->insert, 4, value);
    must(self, sqlite3_step(self->insert), SQLITE_DONE);
    sqlite3_reset(self->insert);
}

static void publish(collector *self, int64_t time, const device *from, int value) {
    time_t seconds = time / 1000000;
    struct tm parts;
    gmtime_r(&seconds, &parts);
    char stamp[32], payload[128];
    strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%S", &parts);
    int length = snprintf(
        payload, sizeof payload, "{\"seq\":%lld,\"ts\":\"%s.%06dZ\",\"source\":\"notify\",\"heart_rate\":%d}",
        (long long)self->seq, stamp, (int)(time % 1000000), value);
    int result = mosquitto_publish(self->broker, NULL, from->topic, length, payload, 1, false);
    if (result != MOSQ_ERR_SUCCESS) fail("publish", mosquitto_strerror(result));
}

static void take(collector *self, const device *from, const uint8_t *bytes, int length) {
    if (length < 2 || ((bytes[0] & 1) && length < 3)) return;
    int value = bytes[0] & 1 ? bytes[1] | bytes[2] << 8 : bytes[1];
    int64_t time = microseconds(CLOCK_REALTIME);
    self->seq++;
    store(self, time, from, value);
    publish(self, time, from, value);
}

static device *owner(collector *self, const char *path) {
    for (int index = 0; index < self->count; index++) {
        size_t length = strlen(self->devices[index].path);
        if (strncmp(path, self->devices[index].path, length) == 0 && path[length] == '/') return &self->devices[index];
    }
    return NULL;
}

// Goes to the variant of the entry `key` of a dictionary; false if there is none.
static bool find(DBusMessageIter entries, const char *key, DBusMessageIter *value) {
    for (; dbus_message_iter_get_arg_type(&entries) == DBUS_TYPE_DICT_ENTRY; dbus_message_iter_next(&entries)) {
        DBusMessageIter entry;
        const char *name;
        dbus_message_iter_recurse(&entries, &entry);
        dbus_message_iter_get_basic(&entry, &name);
        dbus_message_iter_next(&entry);
        if (strcmp(name, key) != 0) continue;
        if (dbus_message_iter_get_arg_type(&entry) == DBUS_TYPE_VARIANT) dbus_message_iter_recurse(&entry, value);
        else *value = entry;
        return true;
    }
    return false;
}

static DBusHandlerResult receive(DBusConnection *bus, DBusMessage *message, void *context) {
    (void)bus;
    collector *self = context;
    DBusMessageIter arguments, changed, value, bytes;
    const char *interface;
    if (!dbus_message_is_signal(message, PROPERTIES, "PropertiesChanged") || !dbus_message_iter_init(message, &arguments)) {
        return DBUS_HANDLER_RESULT_NOT_YET_HANDLED;
    }
    dbus_message_iter_get_basic(&arguments, &interface);
    device *from = owner(self, dbus_message_get_path(message));
    if (!from || strcmp(interface, CHARACTERISTIC) != 0) return DBUS_HANDLER_RESULT_HANDLED;
    dbus_message_iter_next(&arguments);
    dbus_message_iter_recurse(&arguments, &changed);
    if (find(changed, "Value", &value)) {
        const uint8_t *start = NULL;
        int length = 0;
        dbus_message_iter_recurse(&value, &bytes);
        dbus_message_iter_get_fixed_array(&bytes, &start, &length);
        take(self, from, start, length);
    }
    return DBUS_HANDLER_RESULT_HANDLED;
}

static DBusMessage *call(collector *self, const char *path, const char *interface, const char *method) {
    DBusMessage *request = dbus_message_new_method_call("org.bluez", path, interface, method);
    DBusMessage *reply = dbus_connection_send_with_reply_and_block(self->bus, request, 30000, NULL);
    dbus_message_unref(request);
    return reply;
}

static bool succeeds(collector *self, const char *path, const char *interface, const char *method) {
    DBusMessage *reply = call(self, path, interface, method);
    if (reply) dbus_message_unref(reply);
    return reply != NULL;
}

// Takes a step with each device that BlueZ knows: connects it, and subscribes when its characteristic is there.
static int advance(collector *self) {
    DBusMessageIter arguments, objects, object, interfaces, properties, uuid;
    DBusMessage *reply = call(self, "/", "org.freedesktop.DBus.ObjectManager", "GetManagedObjects");
    if (!reply || !dbus_message_iter_init(reply, &arguments)) fail("org.bluez", "does not answer");
    int subscribed = 0;
    dbus_message_iter_recurse(&arguments, &objects);
    for (; dbus_message_iter_get_arg_type(&objects) == DBUS_TYPE_DICT_ENTRY; dbus_message_iter_next(&objects)) {
        const char *path, *name;
        dbus_message_iter_recurse(&objects, &object);
        dbus_message_iter_get_basic(&object, &path);
        dbus_message_iter_next(&object);
        dbus_message_iter_recurse(&object, &interfaces);
        device *from = owner(self, path);
        if (from && !from->is_subscribed && find(interfaces, CHARACTERISTIC, &properties)) {
            DBusMessageIter entries;
            dbus_message_iter_recurse(&properties, &entries);
            if (!find(entries, "UUID", &uuid)) continue;
            dbus_message_iter_get_basic(&uuid, &name);
            from->is_subscribed = strcmp(name, MEASUREMENT) == 0 && succeeds(self, path, CHARACTERISTIC, "StartNotify");
        }
        for (int index = 0; index < self->count && !from; index++) {
            device *known = &self->devices[index];
            if (!known->is_subscribed && strcmp(known->path, path) == 0) succeeds(self, path, "org.bluez.Device1", "Connect");
        }
    }
    dbus_message_unref(reply);
    for (int index = 0; index < self->count; index++) subscribed += self->devices[index].is_subscribed;
    return subscribed;
}

static void open_all(collector *self, int port, const char *database) {
    const char *schema = "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
                         "CREATE TABLE sample (seq INTEGER PRIMARY KEY, ts INTEGER, device TEXT, metric TEXT, value REAL); BEGIN";
    const char *insert = "INSERT INTO sample VALUES (?, ?, ?, 'heart_rate', ?)";
    must(self, sqlite3_open(database, &self->history), SQLITE_OK);
    must(self, sqlite3_exec(self->history, schema, NULL, NULL, NULL), SQLITE_OK);
    must(self, sqlite3_prepare_v2(self->history, insert, -1, &self->insert, NULL), SQLITE_OK);

    mosquitto_lib_init();
    self->broker = mosquitto_new(NULL, true, NULL);
    mosquitto_int_option(self->broker, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);
    mosquitto_int_option(self->broker, MOSQ_OPT_TCP_NODELAY, 1);
    int result = mosquitto_connect(self->broker, "127.0.0.1", port, 60);
    if (result == MOSQ_ERR_SUCCESS) result = mosquitto_loop_start(self->broker);
    if (result != MOSQ_ERR_SUCCESS) fail("broker", mosquitto_strerror(result));

    DBusError error = DBUS_ERROR_INIT;
    self->bus = dbus_bus_get(DBUS_BUS_SYSTEM, &error);
    if (!self->bus) fail("bus", error.message);
    dbus_connection_add_filter(self->bus, receive, self, NULL);
    dbus_bus_add_match(self->bus, "type='signal',sender='org.bluez',interface='" PROPERTIES "'", &error);
    if (dbus_error_is_set(&error)) fail("bus", error.message);
}

static void name_devices(collector *self, char **words, int count) {
    self->devices = calloc(count, sizeof(device));
    self->count = count;
    for (int index = 0; index < count; index++) {
        device *entry = &self->devices[index];
        char *address = strchr(words[index], '=');
        if (!address) fail(words[index], "is not NAME=ADDRESS");
        *address++ = 0;
        entry->name = words[index];
        snprintf(entry->topic, sizeof entry->topic, "gattherd/bench/%s/heart_rate", entry->name);
        snprintf(entry->path, sizeof entry->path, ADAPTER "/dev_%s", address);
        for (char *place = strrchr(entry->path, '/'); *place; place++) {
            if (*place == ':') *place = '_';
        }
    }
}

int main(int count, char **words) {
    if (count < 4) fail("usage", "plain BROKER_PORT DATABASE NAME=ADDRESS…");
    collector self = {0};
    name_devices(&self, words + 3, count - 3);
    open_all(&self, atoi(words[1]), words[2]);
    succeeds(&self, ADAPTER, "org.bluez.Adapter1", "StartDiscovery");
    while (advance(&self) < self.count) {
        for (int turn = 0; turn < 10; turn++) dbus_connection_read_write_dispatch(self.bus, 10);
    }
    succeeds(&self, ADAPTER, "org.bluez.Adapter1", "StopDiscovery");
    int64_t due = 0;
    while (dbus_connection_read_write_dispatch(self.bus, self.seq > self.committed ? 100 : -1)) {
        int64_t now = microseconds(CLOCK_MONOTONIC);
        if (now < due || self.seq == self.committed) continue;
        commit(&self);
        due = now + 100000;
    }
    return 0;
}
