/// The title and the keys of a kind of mapping in a profile.
struct MappingSchema: Sendable {
    let title: String
    let keys: [String]

    static let profile = MappingSchema(
        title: "a profile",
        keys: [
            "contract", "profile", "title", "services", "opt_in", "stand_in", "characteristics", "controls",
            "on_connect", "advertisement", "options", "identify", "tested", "records",
        ]
    )
    static let characteristic = MappingSchema(
        title: "a characteristic",
        keys: [
            "uuid", "stream", "service", "subscribe", "read", "required", "silence", "notify", "length", "check",
            "fields", "tests", "record", "message", "poll",
        ]
    )
    static let message = MappingSchema(
        title: "'message'",
        keys: ["begins", "length", "end", "segments", "ignore", "within"]
    )
    static let messageLength = MappingSchema(title: "the length of a message", keys: ["at", "type", "add"])
    static let poll = MappingSchema(
        title: "a poll",
        keys: ["every", "write", "uuid", "service", "response", "within", "check"]
    )
    static let record = MappingSchema(
        title: "'record'",
        keys: ["number", "dense", "time", "age", "offset", "interval", "index", "total", "with"]
    )
    static let download = MappingSchema(
        title: "a download",
        keys: [
            "stream", "service", "racp", "filter", "uuid", "request", "end", "answers", "block", "first", "reads",
            "response", "clock", "start", "within", "every", "check",
        ]
    )
    static let clock = MappingSchema(title: "a clock", keys: ["uuid", "type", "unit"])
    static let advertisement = MappingSchema(
        title: "an advertisement",
        keys: [
            "manufacturer", "service_data", "after", "name", "begins", "length", "stream", "silence", "again",
            "counter", "envelope", "check", "fields", "tests",
        ]
    )
    static let model = MappingSchema(
        title: "a model",
        keys: [
            "brand", "model", "name", "manufacturer", "service_data", "begins", "length", "service", "active_scan",
            "key",
        ]
    )
    static let part = MappingSchema(title: "a part", keys: ["manufacturer", "service_data", "begins", "length"])
    static let check = MappingSchema(
        title: "a check",
        keys: ["kind", "poly", "init", "xor", "reflect", "bytes", "at", "order"]
    )
    static let objects = MappingSchema(title: "'objects'", keys: ["id", "size"])
    static let decrypt = MappingSchema(
        title: "a decryption",
        keys: ["cipher", "key", "nonce", "aad", "tag", "until", "key_check", "replay", "reversed"]
    )
    static let subscribe = MappingSchema(title: "'subscribe'", keys: ["read"])
    static let read = MappingSchema(title: "'read'", keys: ["every"])
    static let field = MappingSchema(
        title: "a field",
        keys: [
            "metric", "flags", "skip", "fields", "type", "from", "as", "increase", "when", "repeat", "length", "size",
            "signed", "scale", "offset", "base", "unit", "kind", "wraps", "unknown", "enum", "set", "range", "is",
            "over", "still", "numbered", "times", "share", "decrypt",
            "objects", "kinds", "ignore", "table", "clamp", "formula", "decimals", "reset",
            "omit", "deltas", "bits",
        ] + Aggregate.allCases.map(\.rawValue)
    )
    static let option = MappingSchema(title: "an option", keys: ["default", "range", "unit"])
    static let test = MappingSchema(title: "a test", keys: ["hex", "address", "key", "expect", "reject"])
    static let controlTest = MappingSchema(title: "a test of a control", keys: ["set", "hex", "reject"])
    static let control = MappingSchema(
        title: "a control",
        keys: [
            "name", "uuid", "service", "type", "trigger", "prefix", "suffix", "range", "enum", "scale", "offset",
            "unit", "response", "throttle", "echo", "answer", "check", "tests",
        ]
    )
    static let task = MappingSchema(
        title: "a task",
        keys: ["uuid", "service", "write", "listen", "response", "answer", "required", "resume", "check"]
    )
    static let resume = MappingSchema(title: "'resume'", keys: ["stream", "metric", "write", "type"])
    static let answer = MappingSchema(title: "an answer", keys: ["uuid", "service", "ok", "error", "within"])
}
