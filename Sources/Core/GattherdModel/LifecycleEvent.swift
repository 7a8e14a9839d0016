/// Something that happened to the gateway or one of its devices, for `events`, MQTT and people.
public struct LifecycleEvent: Hashable, Sendable {
    public let time: Timestamp
    /// The device's slug; `nil` for the gateway as a whole.
    public let device: String?
    /// What kind of thing, for example `link`, `adapter`, `bluetoothd`, `broker`, `control`, `history`.
    public let kind: String
    /// A JSON object.
    public let detail: String

    /// Makes an event whose detail is a JSON object already.
    public init(time: Timestamp, device: String?, kind: String, detail: String) {
        self.time = time
        self.device = device
        self.kind = kind
        self.detail = detail
    }

    /// The most bytes of a text in the detail of an event; longer ones are cut.
    public static let longestText = 512

    /// Makes an event whose detail is an object with `members`; `nil` values are left out, long texts are cut.
    public init(
        time: Timestamp,
        device: String? = nil,
        kind: String,
        members: some Sequence<(key: String, value: SampleValue?)>
    ) {
        self.time = time
        self.device = device
        self.kind = kind
        let json = JSONWriter.octets { writer in
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

    /// Makes an event whose detail is an object with `members`; `nil` values are left out, long texts are cut.
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
