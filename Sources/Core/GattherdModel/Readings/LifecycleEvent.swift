/// An event of the gateway or a device, for the `events` view and MQTT.
public struct LifecycleEvent: Hashable, Sendable {
    public let time: Timestamp
    /// The device's name; `nil` for the gateway as a whole.
    public let device: String?
    /// The kind, for example `link`, `adapter`, `bluetoothd`, `broker`, `control`, `history`.
    public let kind: String
    /// The details as a JSON object.
    public let detail: String

    /// Creates an event from a JSON object.
    public init(time: Timestamp, device: String?, kind: String, detail: String) {
        self.time = time
        self.device = device
        self.kind = kind
        self.detail = detail
    }

    /// The maximum length in bytes of a text in the details; longer ones are cut.
    public static let longestText = 512

    /// Creates an event with `members` as details; `nil` values are omitted, long texts are cut.
    public init(
        time: Timestamp,
        device: String? = nil,
        kind: String,
        members: some Sequence<(key: String, value: SampleValue?)>
    ) {
        self.time = time
        self.device = device
        self.kind = kind
        let json = JSONWriter.bytes { writer in
            writer.beginObject()
            for (key, value) in members {
                guard let value else { continue }
                writer.key(key)
                writer.value(value.cut(toBytes: Self.longestText))
            }
            writer.endObject()
        }
        detail = String(decoding: json, as: UTF8.self)
    }

    /// Creates an event with `members` as details; `nil` values are omitted, long texts are cut.
    public init(time: Timestamp, device: String? = nil, kind: String, _ members: KeyValuePairs<String, SampleValue?>) {
        self.init(time: time, device: device, kind: kind, members: Array(members))
    }
}

extension SampleValue {
    fileprivate func cut(toBytes limit: Int) -> SampleValue {
        guard case .text(let text) = self else { return self }
        return .text(text.cut(toBytes: limit))
    }
}

extension JSONWriter {
    /// Writes an event in the form of the MQTT topic `bridge/event`.
    package mutating func event(_ event: LifecycleEvent) {
        beginObject()
        key("ts")
        timestamp(event.time)
        key("device")
        optional(event.device) { $0.string($1) }
        key("kind")
        string(event.kind)
        key("detail")
        raw(event.detail.utf8)
        endObject()
    }
}
