/*
 * The C ABI of native gattherd profiles.
 *
 * A native profile is a shared library that exports one function, `gattherd_profile_v1`. The function returns a table
 * that describes the profile and holds its functions. The host looks up no other symbol.
 *
 * Versions   The symbol's suffix and `abi_major` are the same number. The host refuses a library with another one.
 *            Within a major version, structures grow at their end only. `struct_size` is the size that the author
 *            compiled with: set it to `sizeof` and leave unused members zero. The host reads members beyond the end
 *            of a smaller structure as zero and ignores additional members of a larger one.
 * Ownership  Each side owns and frees its own memory. The table, and all that it points to, must live as long as the
 *            process; the library is never unloaded. Arguments are borrowed until the function returns.
 * Files      Replace the file of a loaded library with `install`, which creates a new file. `cp` overwrites the mapped
 *            code of the running process. The new library is loaded when gattherd restarts.
 * Text       UTF-8. Strings in the table end with a NUL and have at most 255 bytes before it; tests have at most 4096.
 *            Names of profiles, streams, metrics and controls have at most 64 bytes, text samples at most 4096.
 * Patterns   The first bytes of a value in hexadecimal, such as "80 05 ??". "??" is any byte.
 * Kinds      A profile either connects: it has services, characteristics, controls and tasks. Or it listens: it has
 *            advertisements and nothing else. Devices of a profile that listens are never connected.
 * Threads    Only one thread at a time uses a session. Different sessions may run on different threads at once, and
 *            `encode` may run beside them. No function may block. None is called after `session_destroy`.
 * Trust      The host checks the whole table and every sample. It cannot check memory accesses: a profile that writes
 *            out of bounds crashes the daemon. Prefer a declarative profile where one is sufficient.
 */
#ifndef GATTHERD_PROFILE_H
#define GATTHERD_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GATTHERD_PROFILE_MAJOR 1u /* breaking changes; the host refuses other majors */
#define GATTHERD_PROFILE_MINOR 0u /* additions at the end of structures */
#define GATTHERD_PROFILE_SYMBOL "gattherd_profile_v1"

/* ---- Kinds of metrics: gattherd_metric.kind ---- */
#define GATTHERD_METRIC_GAUGE 0u   /* goes up and down */
#define GATTHERD_METRIC_COUNTER 1u /* only grows, until it wraps or is reset */
#define GATTHERD_METRIC_STATE 2u   /* one of a few labels, or on and off */
#define GATTHERD_METRIC_EVENT 3u   /* an occurrence, such as a button press */

/* gattherd_metric.flags */
#define GATTHERD_METRIC_REPEATED 1u /* several values per payload; always an array in JSON */
#define GATTHERD_METRIC_BOOLEAN 2u  /* all values are Booleans, or unknown */

/* A metric of a stream. */
typedef struct gattherd_metric {
    uint32_t struct_size; /* sizeof(gattherd_metric) */
    uint32_t kind;        /* GATTHERD_METRIC_GAUGE … */
    uint32_t flags;       /* GATTHERD_METRIC_REPEATED | … */
    uint32_t reserved;    /* 0 */
    const char *name;     /* [a-z0-9_]+, unique in its characteristic; not seq, ts, source, stored */
    const char *unit;     /* the unit's symbol, for example "bpm"; NULL for a bare number */
    uint32_t wrap_bits;   /* the width of a counter that wraps: 1 … 64 bits; 0: unknown or never */
    uint32_t reserved_1;  /* 0 */
} gattherd_metric;

/* ---- Subscription modes: gattherd_characteristic.subscription ---- */
#define GATTHERD_SUBSCRIBE_NONE 0u
#define GATTHERD_SUBSCRIBE_NOTIFY 1u
#define GATTHERD_SUBSCRIBE_INDICATE 2u
#define GATTHERD_SUBSCRIBE_POLL 3u /* read every poll_milliseconds */

/* gattherd_characteristic.flags */
#define GATTHERD_READ_AT_CONNECT 1u /* read once after each connect, before the link is ready */
#define GATTHERD_REQUIRED 2u        /* a device without this characteristic fails */
#define GATTHERD_PREFERS_SOCKET 4u  /* notifications by AcquireNotify: cheap, but a stall loses values */

/* A characteristic that the profile decodes, and the stream of its readings. */
typedef struct gattherd_characteristic {
    uint32_t struct_size;                  /* sizeof(gattherd_characteristic) */
    uint32_t subscription;                 /* GATTHERD_SUBSCRIBE_NONE … */
    uint32_t flags;                        /* GATTHERD_READ_AT_CONNECT | … */
    uint32_t metric_count;                 /* 1 … 64 */
    const char *uuid;                      /* "2a37", or all 36 characters */
    const char *service;                   /* the service that contains it; NULL: any service of the profile */
    const char *stream;                    /* [a-z0-9_]+, unique in the profile; the last part of an MQTT topic */
    const gattherd_metric *const *metrics; /* metric_count entries; samples refer to their index */
    uint64_t poll_milliseconds;            /* 100 … 86 400 000 with GATTHERD_SUBSCRIBE_POLL, else 0 */
    uint64_t silence_milliseconds;         /* the longest silence before the link is probed; 0: no limit */
    uint64_t poll_instead_milliseconds;    /* polling period if it cannot notify or indicate; 0: none */
    uint32_t test_count;                   /* 0 … 64; at most 1024 in the profile */
    uint32_t reserved;                     /* 0 */
    const char *const *tests;              /* test_count entries: see "Tests" */
} gattherd_characteristic;

/*
 * ---- Tests ----
 *
 * `gattherd profile test` decodes the payloads of a test in one session, as if a device had sent them, and compares
 * the samples of the last payload. A test is a text in the syntax of declarative profiles:
 *
 *     "{hex: C4 09 2D, expect: {temperature: 25, moisture: 45}}"
 *     "{hex: [01 00, 02 00], expect: {rate: 1, interval: [0.5, 0.75]}}"
 *     "{hex: C4, reject: truncated}"
 *
 * `expect` lists every metric, `reject` is a part of the reason. A test of an advertisement may have the `address` of
 * the sender and its `key`.
 */

/* ---- Sources of advertisements: gattherd_advertisement.source ---- */
#define GATTHERD_MANUFACTURER_DATA 0u /* the data of `company`, without the company's two bytes */
#define GATTHERD_SERVICE_DATA 1u      /* the data of the service `uuid`, without the UUID's bytes */

/* gattherd_advertisement.flags */
#define GATTHERD_COUNTED 1u /* each payload has a number, which `decode` passes to sink->counter */
#define GATTHERD_OPEN 2u    /* the metrics are all that the format defines; a device sends a few of them */

/* A part of advertisements that the profile decodes, and the stream of its readings. */
typedef struct gattherd_advertisement {
    uint32_t struct_size;                  /* sizeof(gattherd_advertisement) */
    uint32_t source;                       /* GATTHERD_MANUFACTURER_DATA … */
    uint32_t flags;                        /* GATTHERD_COUNTED | … */
    uint32_t metric_count;                 /* 1 … 64 */
    uint32_t company;                      /* the company identifier of manufacturer data, else 0 */
    uint32_t size_min;                     /* the length in bytes; of several that begin alike, the one that fits … */
    uint32_t size_max;                     /* … is used; both bounds are included; 0: any length from size_min on */
    uint32_t test_count;                   /* 0 … 64; at most 1024 in the profile */
    const char *uuid;                      /* the service of service data, else NULL */
    const char *stream;                    /* [a-z0-9_]+, unique in the profile; the last part of an MQTT topic */
    const char *name;                      /* the device's name, * is any text; NULL: any name */
    const char *begins;                    /* a pattern; other payloads are ignored; NULL: any */
    const gattherd_metric *const *metrics; /* metric_count entries; samples refer to their index */
    const char *const *tests;              /* test_count entries: see "Tests" */
    uint64_t silence_milliseconds;         /* offline after this silence: 1 second … 30 days; 0: 5 minutes */
    uint64_t renewal_milliseconds;         /* equal bytes are a new reading after this time; 0: 1 minute */
} gattherd_advertisement;

/* A device that advertises. */
typedef struct gattherd_sender {
    uint32_t struct_size; /* sizeof(gattherd_sender) of the host: use no member beyond it */
    uint32_t key_size;    /* 16; 0 without a key */
    const uint8_t *key;   /* the device's bind key; NULL if none is configured */
    uint8_t address[6];   /* as printed: the most significant byte first */
    uint8_t reserved[2];
} gattherd_sender;

/* A response and its meaning. */
typedef struct gattherd_response {
    uint32_t struct_size; /* sizeof(gattherd_response) */
    uint32_t reserved;    /* 0 */
    const char *pattern;  /* the first bytes of the response */
    const char *refusal;  /* the reason why the device refuses; NULL: the response means success */
} gattherd_response;

/* The response of a device to a write, as a notification or an indication. It is subscribed before the write. */
typedef struct gattherd_answer {
    uint32_t struct_size;                      /* sizeof(gattherd_answer) */
    uint32_t response_count;                   /* 1 … 64 */
    const char *uuid;                          /* the characteristic that responds; NULL: the one that is written */
    const char *service;                       /* the service that contains it; NULL: any service of the profile */
    const gattherd_response *const *responses; /* the first match counts; other values are ignored */
    uint64_t within_milliseconds;              /* the longest wait, 100 … 300 000; 0: 5 seconds */
} gattherd_answer;

/*
 * A request for the records after the newest stored one. Once the stream has had a value since the daemon started, the
 * task writes `prefix` and the number after the newest value, little-endian.
 */
typedef struct gattherd_resume {
    uint32_t struct_size;  /* sizeof(gattherd_resume) */
    uint32_t metric;       /* the index of the record number in the stream's metrics */
    const char *stream;    /* a stream of the profile */
    const uint8_t *prefix; /* prefix_size bytes, or NULL */
    uint32_t prefix_size;  /* 0 … 504 */
    uint32_t width;        /* the bytes of the record number, 1 … 7 */
} gattherd_resume;

/* ---- Kinds of tasks: gattherd_task.kind ---- */
#define GATTHERD_TASK_WRITE 0u  /* writes `bytes` */
#define GATTHERD_TASK_LISTEN 1u /* subscribes, for devices that wait for a subscriber; values are discarded */

/* gattherd_task.flags; GATTHERD_WRITE_WITHOUT_RESPONSE is allowed, too */
#define GATTHERD_TASK_REQUIRED 2u /* the link fails if the task fails; else the failure is an event */

/* An operation at each connect. Tasks run in order, after subscribing and before values are read. */
typedef struct gattherd_task {
    uint32_t struct_size;          /* sizeof(gattherd_task) */
    uint32_t kind;                 /* GATTHERD_TASK_WRITE … */
    uint32_t flags;                /* GATTHERD_TASK_REQUIRED | … */
    uint32_t size;                 /* the number of bytes to write, 0 … 512 */
    const uint8_t *bytes;          /* size bytes, or NULL */
    const char *uuid;              /* the characteristic */
    const char *service;           /* the service that contains it; NULL: any service of the profile */
    const gattherd_answer *answer; /* the device's response to the write; NULL: none is awaited */
    const gattherd_resume *resume; /* NULL: always writes `bytes` */
} gattherd_task;

/* ---- Kinds of controls: gattherd_control.kind ---- */
#define GATTHERD_CONTROL_INTEGER 0u /* integer_min … integer_max */
#define GATTHERD_CONTROL_REAL 1u    /* real_min … real_max */
#define GATTHERD_CONTROL_BOOLEAN 2u
#define GATTHERD_CONTROL_CHOICE 3u  /* one of the labels */
#define GATTHERD_CONTROL_TRIGGER 4u /* no value */

/* gattherd_control.flags and gattherd_task.flags */
#define GATTHERD_WRITE_WITHOUT_RESPONSE 1u /* an ATT Write Command; else a Write Request */

/* A value that users can write. */
typedef struct gattherd_control {
    uint32_t struct_size;           /* sizeof(gattherd_control) */
    uint32_t kind;                  /* GATTHERD_CONTROL_INTEGER … */
    uint32_t flags;                 /* GATTHERD_WRITE_WITHOUT_RESPONSE or 0 */
    uint32_t label_count;           /* 1 … 256 for a choice, else 0 */
    const char *name;               /* [a-z0-9_]+, unique in the profile; a part of MQTT topics */
    const char *uuid;               /* the characteristic to write */
    const char *service;            /* the service that contains it; NULL: any service of the profile */
    const char *unit;               /* or NULL */
    const char *echo;               /* the stream that reports the written value; NULL: none */
    const char *const *labels;      /* label_count entries, or NULL */
    int64_t integer_min;            /* both bounds are included */
    int64_t integer_max;
    double real_min;
    double real_max;
    uint64_t throttle_milliseconds; /* minimum interval between writes; the last value wins; 0: none */
    const gattherd_answer *answer;  /* the device's response to the write; NULL: none is awaited */
} gattherd_control;

/* ---- The value of a control ---- */
typedef struct gattherd_control_value {
    uint32_t struct_size; /* sizeof(gattherd_control_value) of the host */
    uint32_t kind;        /* the control's kind; selects the member below */
    int64_t integer;      /* integer; boolean (0 or 1); choice (the label's index) */
    double real;
} gattherd_control_value;

/* ---- The host's callbacks during one call ---- */
typedef struct gattherd_sink {
    uint32_t struct_size; /* sizeof(gattherd_sink) of the host: use no member beyond it */
    uint32_t reserved;
    void *context; /* the host's; pass it to every function below */

    /*
     * Emit one sample of the metric at index `metric` of the stream. At most 4096 per call, and one of a metric without
     * GATTHERD_METRIC_REPEATED.
     */
    void (*integer)(void *context, uint32_t metric, int64_t value);
    void (*real)(void *context, uint32_t metric, double value); /* NaN and infinities become `null` */
    void (*boolean)(void *context, uint32_t metric, uint8_t value); /* 0 is false */
    void (*text)(void *context, uint32_t metric, const char *utf8, size_t size); /* without NUL */
    void (*null)(void *context, uint32_t metric); /* the value is unknown */

    /* Report the reason of a failure, at most once; then return GATTHERD_REJECT. */
    void (*fail)(void *context, const char *utf8, size_t size);

    /*
     * Report the number of an advertisement, with GATTHERD_COUNTED. The same number as before is the same reading,
     * which is not stored again. If the sender has a key, call this for authentic payloads only: lower numbers are
     * then rejected as replays, also after a restart of the daemon.
     */
    void (*counter)(void *context, uint32_t number);
} gattherd_sink;

/* Results of `decode`. */
#define GATTHERD_OK 0       /* decoded; samples may be empty */
#define GATTHERD_REJECT (-1) /* not decoded; samples of the call are discarded */

/* ---- The table: gattherd_profile.flags ---- */
#define GATTHERD_OPT_IN 1u /* only for devices whose configuration names the profile; a profile that listens always */

typedef struct gattherd_profile {
    uint32_t abi_major;   /* GATTHERD_PROFILE_MAJOR; read before all other members */
    uint32_t abi_minor;   /* GATTHERD_PROFILE_MINOR */
    uint32_t struct_size; /* sizeof(gattherd_profile) */
    uint32_t flags;       /* GATTHERD_OPT_IN or 0 */

    uint32_t service_count;        /* 1 … 64; 0 for a profile that listens */
    uint32_t characteristic_count; /* 0 … 256 */
    uint32_t control_count;        /* 0 … 64 */
    uint32_t task_count;           /* 0 … 64 */
    uint32_t advertisement_count;  /* 0 … 64; 0 for a profile that connects */
    uint32_t reserved;             /* 0 */

    const char *name;                                      /* [a-z0-9_-]+; the name in the configuration */
    const char *title;                                     /* human-readable */
    const char *const *services;                           /* a device matches if it has one of them */
    const gattherd_characteristic *const *characteristics; /* NULL if there are none */
    const gattherd_control *const *controls;               /* NULL if there are none */
    const gattherd_task *const *tasks;                     /* NULL if there are none */
    const gattherd_advertisement *const *advertisements;   /* NULL if there are none */

    void *context; /* passed to session_create and encode */

    /*
     * Create and destroy the decoder state of one connection, or of one device that advertises. `sender` is NULL for
     * a connection, and for payloads without an address in tests and on the command line. Both functions are NULL for
     * a stateless profile; `decode` then receives NULL as its session. session_create may return NULL; session_destroy
     * is not called for it.
     */
    void *(*session_create)(void *context, const gattherd_sender *sender);
    void (*session_destroy)(void *session);

    /*
     * Decodes one payload of the characteristic or the advertisement at index `stream` and emits its samples to the
     * sink. `payload` may be NULL if `size` is 0. Must tolerate any bytes of any length.
     * NULL if the profile has neither characteristics nor advertisements.
     */
    int32_t (*decode)(void *session, uint32_t stream, const uint8_t *payload, size_t size, const gattherd_sink *sink);

    /*
     * Encodes a value for the control at index `control` into `out`, which holds `capacity` bytes. Returns the number
     * of bytes; or calls `sink->fail` (no other member) and returns GATTHERD_REJECT. The value has the control's kind
     * and is in its range. NULL if the profile has no controls.
     */
    int32_t (*encode)(
        void *context,
        uint32_t control,
        const gattherd_control_value *value,
        uint8_t *out,
        size_t capacity,
        const gattherd_sink *sink);
} gattherd_profile;

/*
 * The entry point. Called by one thread, before all other functions; `host_minor` is the host's
 * GATTHERD_PROFILE_MINOR. Returns the same table each time, or NULL to decline this host.
 */
typedef const gattherd_profile *(*gattherd_profile_entry)(uint32_t host_minor);

#ifdef __cplusplus
}
#endif
#endif
