import GattherdModel

/// The texts of the Device Information Service, by device.
struct DeviceFacts {
    /// The texts of one device; `nil` for those that it does not have.
    struct Texts: Hashable, Sendable {
        var manufacturer: String?
        var model: String?
        var hardware: String?
        var firmware: String?
        var software: String?
        var serial: String?
    }

    /// The profile that reads the service.
    private static let profile = "device-information"
    /// The longest text that is kept, in bytes.
    private static let longest = 200
    /// The text that each metric has.
    private static let members: [String: any WritableKeyPath<Texts, String?> & Sendable] = [
        "manufacturer_name": \.manufacturer, "model_number": \.model, "hardware_revision": \.hardware,
        "firmware_revision": \.firmware, "software_revision": \.software, "serial_number": \.serial,
    ]

    private var facts: [String: Texts] = [:]

    /// True if a stream has facts.
    static func contains(_ stream: StreamDefinition) -> Bool { stream.profile == profile }

    /// True for the name of a metric with a fact.
    static func isFact(_ metric: String) -> Bool { members[metric] != nil }

    subscript(device: String) -> Texts { facts[device] ?? Texts() }

    /// Records the facts of a reading; returns true if one is new.
    mutating func record(_ reading: JournalReading) -> Bool {
        guard Self.contains(reading.stream) else { return false }
        let before = self[reading.stream.device]
        var texts = before
        for sample in reading.samples where reading.stream.metrics.indices.contains(sample.metric) {
            guard case .text(let text) = sample.value, !text.isEmpty,
                let member = Self.members[reading.stream.metrics[sample.metric].name]
            else { continue }
            texts[keyPath: member] = text.cut(toBytes: Self.longest)
        }
        facts[reading.stream.device] = texts
        return texts != before
    }

    mutating func remove(_ device: String) {
        facts[device] = nil
    }
}

extension DeviceFacts.Texts {
    /// The members of a description, in the order of writing.
    var described: KeyValuePairs<String, String?> {
        [
            "manufacturer": manufacturer, "model": model, "hardware": hardware, "firmware": firmware,
            "software": software,
        ]
    }
}
