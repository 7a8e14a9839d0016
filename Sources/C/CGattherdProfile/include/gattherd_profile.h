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
 * Text       UTF-8. Strings in the table end with a NUL and have at most 255 bytes before it. Names of profiles,
 *            streams, metrics and controls have at most 64 bytes, text samples at most 4096.
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

/* A metric of a stream. */
typedef struct gattherd_metric {
    uint32_t struct_size; /* sizeof(gattherd_metric) */
    uint32_t kind;        /* GATTHERD_METRIC_GAUGE … */
    uint32_t flags;       /* GATTHERD_METRIC_REPEATED or 0 */
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
} gattherd_characteristic;

/* ---- Kinds of controls: gattherd_control.kind ---- */
#define GATTHERD_CONTROL_INTEGER 0u /* integer_min … integer_max */
#define GATTHERD_CONTROL_REAL 1u    /* real_min … real_max */
#define GATTHERD_CONTROL_BOOLEAN 2u
#define GATTHERD_CONTROL_CHOICE 3u  /* one of the labels */
#define GATTHERD_CONTROL_TRIGGER 4u /* no value */

/* gattherd_control.flags */
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

    /* Emit one sample of the metric at index `metric` of the characteristic. At most 4096 per call. */
    void (*integer)(void *context, uint32_t metric, int64_t value);
    void (*real)(void *context, uint32_t metric, double value); /* NaN and infinities become `null` */
    void (*boolean)(void *context, uint32_t metric, uint8_t value); /* 0 is false */
    void (*text)(void *context, uint32_t metric, const char *utf8, size_t size); /* without NUL */
    void (*null)(void *context, uint32_t metric); /* the value is unknown */

    /* Report the reason of a failure, at most once; then return GATTHERD_REJECT. */
    void (*fail)(void *context, const char *utf8, size_t size);
} gattherd_sink;

/* Results of `decode`. */
#define GATTHERD_OK 0       /* decoded; samples may be empty */
#define GATTHERD_REJECT (-1) /* not decoded; samples of the call are discarded */

/* ---- The table: gattherd_profile.flags ---- */
#define GATTHERD_OPT_IN 1u /* only for devices whose configuration names the profile */

typedef struct gattherd_profile {
    uint32_t abi_major;   /* GATTHERD_PROFILE_MAJOR; read before all other members */
    uint32_t abi_minor;   /* GATTHERD_PROFILE_MINOR */
    uint32_t struct_size; /* sizeof(gattherd_profile) */

    uint32_t service_count;        /* 1 … 64 */
    uint32_t characteristic_count; /* 0 … 256 */
    uint32_t control_count;        /* 0 … 64 */

    const char *name;                                      /* [a-z0-9_-]+; the name in the configuration */
    const char *title;                                     /* human-readable */
    const char *const *services;                           /* a device matches if it has one of them */
    const gattherd_characteristic *const *characteristics; /* NULL if there are none */
    const gattherd_control *const *controls;               /* NULL if there are none */

    void *context; /* passed to session_create and encode */

    /*
     * Create and destroy the decoder state of one connection. Both are NULL for a stateless profile; `decode` then
     * receives NULL as its session. session_create may return NULL; session_destroy is not called for it.
     */
    void *(*session_create)(void *context);
    void (*session_destroy)(void *session);

    /*
     * Decodes one payload of the characteristic at index `characteristic` and emits its samples to the sink.
     * `payload` may be NULL if `size` is 0. Must tolerate any bytes of any length.
     * NULL if the profile has no characteristics.
     */
    int32_t (*decode)(
        void *session, uint32_t characteristic, const uint8_t *payload, size_t size, const gattherd_sink *sink);

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

    uint32_t flags;      /* GATTHERD_OPT_IN or 0 */
    uint32_t reserved_1; /* 0 */
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
