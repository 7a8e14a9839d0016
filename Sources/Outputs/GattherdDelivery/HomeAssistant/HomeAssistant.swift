import GattherdModel

/// What Home Assistant is told about devices, so that it shows them by itself: its MQTT discovery, one payload
/// for each device.
struct HomeAssistant: Sendable {
    let topics: Topics
    /// What its topics begin with.
    let prefix: String
    /// Of gattherd.
    let version: String

    /// Where it says `online` after it has started.
    var status: String { "\(prefix)/status" }

    /// Matches the discovery payloads of all devices, also those of other programs.
    var all: String { "\(prefix)/device/+/config" }

    /// Where a device's payload goes; empty and retained, it removes the device.
    func topic(of address: String) -> String { "\(prefix)/device/\(identifier(of: address))/config" }

    /// Stays the same when the device is renamed, and is unique among all gateways of a broker.
    func identifier(of address: String) -> String {
        "gattherd_\(topics.gateway)_" + address.lowercased().filter { $0.isHexDigit }
    }

    /// The device that a payload, or its start, describes; `nil` when it is of another program or gateway.
    func device(in payload: [UInt8]) -> String? {
        let start = Array(#"{"availability":[{"topic":"\#(topics.state)"},{"topic":"\#(topics.base)/"#.utf8)
        guard payload.starts(with: start) else { return nil }
        let name = payload.dropFirst(start.count).prefix { $0 != UInt8(ascii: "/") }
        return String(decoding: name, as: UTF8.self)
    }

    /// The JSON object that describes a device.
    func payload(for device: DeviceDescription) -> [UInt8] {
        let parts = components(of: device)
        return JSONWriter.octets { writer in
            writer.beginObject()
            // First, so that the start tells whose payload it is.
            writer.key("availability")
            writer.list([topics.state, topics.availability(device.device)]) { $0.object([("topic", .text($1))]) }
            writer.key("availability_mode")
            writer.string("all")
            writer.key("device")
            write(device, to: &writer)
            writer.key("origin")
            writer.object([("name", .text("gattherd")), ("sw_version", .text(version))])
            writer.key("qos")
            writer.integer(1)
            writer.key("components")
            writer.beginObject()
            for part in parts { part.write(to: &writer) }
            writer.endObject()
            writer.endObject()
        }
    }

    private func write(_ device: DeviceDescription, to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("identifiers")
        writer.list([identifier(of: device.address)]) { $0.string($1) }
        writer.key("connections")
        writer.list([["bluetooth", device.address]]) { writer, pair in writer.list(pair) { $0.string($1) } }
        writer.key("name")
        writer.string(device.device)
        writer.endObject()
    }

    private func components(of device: DeviceDescription) -> [HomeAssistantComponent] {
        var parts: [HomeAssistantComponent] = []
        for part in sensors(of: device) + controls(of: device) + diagnostics(of: device)
        where !parts.contains(where: { $0.key == part.key }) {
            parts.append(part)
        }
        return parts
    }
}

extension JSONWriter {
    /// Writes an array, each element by `write`.
    mutating func list<Element>(_ elements: [Element], _ write: (inout JSONWriter, Element) -> Void) {
        beginArray()
        for element in elements { write(&self, element) }
        endArray()
    }

    mutating func object(_ members: [(key: String, value: SampleValue)]) {
        beginObject()
        for member in members {
            key(member.key)
            value(member.value)
        }
        endObject()
    }
}
