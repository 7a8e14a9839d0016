/// A kind of mapping in a profile: its name in errors and its allowed keys.
struct MappingKind: Sendable {
    let title: String
    let keys: [String]

    static let profile = MappingKind(
        title: "a profile",
        keys: [
            "contract", "profile", "title", "services", "opt_in", "stand_in", "characteristics", "controls",
            "on_connect", "advertisement", "options", "identify", "tested",
        ]
    )
    static let characteristic = MappingKind(
        title: "a characteristic",
        keys: [
            "uuid", "stream", "service", "subscribe", "read", "required", "silence", "notify", "length", "check",
            "fields", "tests",
        ]
    )
    static let advertisement = MappingKind(
        title: "an advertisement",
        keys: [
            "manufacturer", "service_data", "after", "name", "begins", "length", "stream", "silence", "again",
            "counter", "envelope", "check", "fields", "tests",
        ]
    )
    static let model = MappingKind(
        title: "a model",
        keys: [
            "brand", "model", "name", "manufacturer", "service_data", "begins", "length", "service", "active_scan",
            "key",
        ]
    )
    static let part = MappingKind(title: "a part", keys: ["manufacturer", "service_data", "begins", "length"])
    static let check = MappingKind(
        title: "a check",
        keys: ["kind", "poly", "init", "xor", "reflect", "bytes", "at", "order"]
    )
    static let objects = MappingKind(title: "'objects'", keys: ["id", "size"])
    static let decrypt = MappingKind(
        title: "a decryption",
        keys: ["cipher", "key", "nonce", "aad", "tag", "until", "key_check", "replay", "reversed"]
    )
    static let subscribe = MappingKind(title: "'subscribe'", keys: ["read"])
    static let read = MappingKind(title: "'read'", keys: ["every"])
    static let field = MappingKind(
        title: "a field",
        keys: [
            "metric", "flags", "skip", "fields", "type", "from", "as", "increase", "when", "repeat", "length", "size",
            "signed", "scale", "offset", "base", "unit", "kind", "wraps", "unknown", "enum", "set", "range", "is",
            "over", "still", "numbered", "times", "share", "decrypt",
            "objects", "kinds", "ignore", "table", "clamp", "formula", "decimals", "reset",
        ] + Aggregate.allCases.map(\.rawValue)
    )
    static let option = MappingKind(title: "an option", keys: ["default", "range", "unit"])
    static let test = MappingKind(title: "a test", keys: ["hex", "address", "key", "expect", "reject"])
    static let control = MappingKind(
        title: "a control",
        keys: [
            "name", "uuid", "service", "type", "trigger", "prefix", "suffix", "range", "enum", "scale", "offset",
            "unit", "response", "throttle", "echo", "answer",
        ]
    )
    static let task = MappingKind(
        title: "a task",
        keys: ["uuid", "service", "write", "listen", "response", "answer", "required", "resume"]
    )
    static let resume = MappingKind(title: "'resume'", keys: ["stream", "metric", "write", "type"])
    static let answer = MappingKind(title: "an answer", keys: ["uuid", "service", "ok", "error", "within"])
}
