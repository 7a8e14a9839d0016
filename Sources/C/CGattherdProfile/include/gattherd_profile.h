/*
 * The contract between gattherd and a native profile.
 *
 * A native profile is a shared library that exports one function, `gattherd_profile_v1`. It returns a table that says
 * what the profile decodes, and holds the functions that do it. Nothing else is looked up in the library.
 *
 * Versions   The symbol's suffix and `abi_major` are one number: another one means another contract, and the host
 *            refuses the library. Within a major, structures grow at their end only; `struct_size` says how much of a
 *            structure its author knew. Fill it with `sizeof` and leave what you do not use zero: the host takes what
 *            a smaller structure does not have as zero, and does not look at what a larger one has more.
 * Ownership  Whoever makes a thing keeps it. The table and all it points to live as long as the process (the library
 *            is never unloaded). What is passed to a function is borrowed until that function returns. Nothing that
 *            one side allocated is freed by the other.
 * Files      A running library stays as it was until the process ends. Put a newer file over it with `install`, which
 *            makes a new file that takes the name; `cp` writes into the old one, and so into the code that runs.
 * Text       UTF-8. What is in the table ends with a NUL and has at most 255 octets before it; the names of profiles,
 *            streams, metrics and controls have at most 64. A text sample has at most 4096.
 * Threads    One session is used by one thread at a time, different sessions perhaps by different threads at once;
 *            `encode` may run beside them. No function may block, and none is called after `session_destroy`.
 * Trust      The host checks all of the table and every sample. It cannot check memory: a profile that writes out of
 *            bounds takes the daemon with it. What needs no such power should be a declarative profile.
 */
#ifndef GATTHERD_PROFILE_H
#define GATTHERD_PROFILE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define GATTHERD_PROFILE_MAJOR 1u /* breaking: the host refuses another one */
#define GATTHERD_PROFILE_MINOR 1u /* additive: structures have grown; "since 1" marks what the first did not have */
#define GATTHERD_PROFILE_SYMBOL "gattherd_profile_v1"

/* ---- What a metric's numbers mean over time: gattherd_metric.kind ---- */
#define GATTHERD_METRIC_GAUGE 0u   /* goes up and down */
#define GATTHERD_METRIC_COUNTER 1u /* only grows, until it wraps or is reset */
#define GATTHERD_METRIC_STATE 2u   /* one of a few labels, or on and off */
#define GATTHERD_METRIC_EVENT 3u   /* something that happened */

/* gattherd_metric.flags */
#define GATTHERD_METRIC_REPEATED 1u /* one payload may give it several times; always an array in JSON */

/* One quantity of a stream. */
typedef struct gattherd_metric {
    uint32_t struct_size; /* sizeof(gattherd_metric) */
    uint32_t kind;        /* GATTHERD_METRIC_GAUGE … */
    uint32_t flags;       /* GATTHERD_METRIC_REPEATED or 0 */
    uint32_t reserved;    /* 0 */
    const char *name;     /* [a-z0-9_]+, unique in its characteristic; not seq, ts, source, stored */
    const char *unit;     /* the unit's symbol, for example "bpm"; NULL for a bare number */
    uint32_t wrap_bits;   /* since 1: the bits after which a counter starts again at 0: 1 … 64; 0: not known */
    uint32_t reserved_1;  /* since 1: 0 */
} gattherd_metric;

/* ---- How values are asked for: gattherd_characteristic.subscription ---- */
#define GATTHERD_SUBSCRIBE_NONE 0u
#define GATTHERD_SUBSCRIBE_NOTIFY 1u
#define GATTHERD_SUBSCRIBE_INDICATE 2u
#define GATTHERD_SUBSCRIBE_POLL 3u /* read every poll_milliseconds */

/* gattherd_characteristic.flags */
#define GATTHERD_READ_AT_CONNECT 1u /* read once after each connect, before the link is ready */
#define GATTHERD_REQUIRED 2u        /* a device without it cannot be served */
#define GATTHERD_PREFERS_SOCKET 4u  /* take notifications from a socket of our own: cheap, but a stall loses some */

/* One characteristic that the profile decodes, and the stream that its readings go to. */
typedef struct gattherd_characteristic {
    uint32_t struct_size;                  /* sizeof(gattherd_characteristic) */
    uint32_t subscription;                 /* GATTHERD_SUBSCRIBE_NONE … */
    uint32_t flags;                        /* GATTHERD_READ_AT_CONNECT | … */
    uint32_t metric_count;                 /* 1 … 64 */
    const char *uuid;                      /* "2a37", or all 36 characters */
    const char *service;                   /* the service that it must be part of; NULL: any of the profile's */
    const char *stream;                    /* [a-z0-9_]+, unique in the profile; the last part of an MQTT topic */
    const gattherd_metric *const *metrics; /* metric_count of them; a sample names one by its position */
    uint64_t poll_milliseconds;            /* 100 … 86 400 000 with GATTHERD_SUBSCRIBE_POLL, else 0 */
    uint64_t silence_milliseconds;         /* the longest silence before the link is probed; 0: no limit */
    uint64_t poll_instead_milliseconds;    /* since 1: read so often where it cannot notify or indicate; 0: never */
} gattherd_characteristic;

/* ---- What a control takes: gattherd_control.kind ---- */
#define GATTHERD_CONTROL_INTEGER 0u /* integer_min … integer_max */
#define GATTHERD_CONTROL_REAL 1u    /* real_min … real_max */
#define GATTHERD_CONTROL_BOOLEAN 2u
#define GATTHERD_CONTROL_CHOICE 3u  /* one of the labels */
#define GATTHERD_CONTROL_TRIGGER 4u /* no value: something happens */

/* gattherd_control.flags */
#define GATTHERD_WRITE_WITHOUT_RESPONSE 1u /* an ATT Write Command; else a Write Request */

/* Something that people may write. */
typedef struct gattherd_control {
    uint32_t struct_size;           /* sizeof(gattherd_control) */
    uint32_t kind;                  /* GATTHERD_CONTROL_INTEGER … */
    uint32_t flags;                 /* GATTHERD_WRITE_WITHOUT_RESPONSE or 0 */
    uint32_t label_count;           /* 1 … 256 for a choice, else 0 */
    const char *name;               /* [a-z0-9_]+, unique in the profile; a part of MQTT topics */
    const char *uuid;               /* the characteristic that is written */
    const char *service;            /* the service that it must be part of; NULL: any of the profile's */
    const char *unit;               /* or NULL */
    const char *echo;               /* the stream that shows what was written; NULL: none */
    const char *const *labels;      /* label_count of them, or NULL */
    int64_t integer_min;            /* both ends are allowed values */
    int64_t integer_max;
    double real_min;
    double real_max;
    uint64_t throttle_milliseconds; /* the shortest time between two writes, the last value counts; 0: no limit */
} gattherd_control;

/* ---- A value for a control ---- */
typedef struct gattherd_control_value {
    uint32_t struct_size; /* sizeof(gattherd_control_value) of the host */
    uint32_t kind;        /* the control's kind: says which of the members below counts */
    int64_t integer;      /* integer; boolean (0 or 1); choice (the label's position) */
    double real;
} gattherd_control_value;

/* ---- The host's side of one call ---- */
typedef struct gattherd_sink {
    uint32_t struct_size; /* sizeof(gattherd_sink) of the host: use no member beyond it */
    uint32_t reserved;
    void *context; /* the host's; the first argument of every function below */

    /* Give one sample of the metric at position `metric` of the characteristic's list. At most 4096 in one call. */
    void (*integer)(void *context, uint32_t metric, int64_t value);
    void (*real)(void *context, uint32_t metric, double value); /* not finite: as `null` */
    void (*boolean)(void *context, uint32_t metric, uint8_t value); /* 0 is false */
    void (*text)(void *context, uint32_t metric, const char *utf8, size_t size); /* no NUL needed */
    void (*null)(void *context, uint32_t metric); /* the device says that it does not know */

    /* Say, at most once, why the call fails; then return GATTHERD_REJECT. */
    void (*fail)(void *context, const char *utf8, size_t size);
} gattherd_sink;

/* What `decode` returns. */
#define GATTHERD_OK 0       /* the samples are what the payload says; there may be none */
#define GATTHERD_REJECT (-1) /* the payload is not what the profile knows: its samples are forgotten */

/* ---- The table: gattherd_profile.flags ---- */
#define GATTHERD_OPT_IN 1u /* serves only devices that name the profile in the configuration */

typedef struct gattherd_profile {
    uint32_t abi_major;   /* GATTHERD_PROFILE_MAJOR; looked at before anything else */
    uint32_t abi_minor;   /* GATTHERD_PROFILE_MINOR */
    uint32_t struct_size; /* sizeof(gattherd_profile) */

    uint32_t service_count;        /* 1 … 64 */
    uint32_t characteristic_count; /* 0 … 256 */
    uint32_t control_count;        /* 0 … 64 */

    const char *name;                                      /* [a-z0-9_-]+: what configurations call it */
    const char *title;                                     /* for people */
    const char *const *services;                           /* a device matches when it has one of them */
    const gattherd_characteristic *const *characteristics; /* NULL when there are none */
    const gattherd_control *const *controls;               /* NULL when there are none */

    void *context; /* the profile's own; given to session_create and encode */

    /*
     * Begins and ends the decoding of one connection. Both NULL for a profile that remembers nothing between
     * payloads: `decode` then gets NULL as its session. A session may be NULL too; it is not destroyed.
     */
    void *(*session_create)(void *context);
    void (*session_destroy)(void *session);

    /*
     * Decodes one payload of the characteristic at position `characteristic`. `payload` may be NULL when `size` is 0;
     * any octets of any number must be survived. Needs no allocation: samples go straight into the sink.
     * NULL when the profile has no characteristics.
     */
    int32_t (*decode)(
        void *session, uint32_t characteristic, const uint8_t *payload, size_t size, const gattherd_sink *sink);

    /*
     * Writes the octets for the control at position `control` to `out`, which takes `capacity` of them, and returns
     * their number; or calls `sink->fail` (no other member) and returns GATTHERD_REJECT. The value has the control's
     * kind and lies in its range. NULL when the profile has no controls.
     */
    int32_t (*encode)(
        void *context,
        uint32_t control,
        const gattherd_control_value *value,
        uint8_t *out,
        size_t capacity,
        const gattherd_sink *sink);

    uint32_t flags;      /* since 1: GATTHERD_OPT_IN or 0 */
    uint32_t reserved_1; /* since 1: 0 */
} gattherd_profile;

/*
 * The entry. Called from one thread, before anything else of the library; `host_minor` is the minor of the host's
 * contract. Returns the same table each time, or NULL when the profile does not want to serve this host.
 */
typedef const gattherd_profile *(*gattherd_profile_entry)(uint32_t host_minor);

#ifdef __cplusplus
}
#endif
#endif
