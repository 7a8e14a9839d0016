import GattherdModel

/// The names by which Home Assistant tells devices and their entities apart.
package enum HomeAssistantIdentity {
    /// The identifier of a device at an address.
    package static func device(_ address: String, of gateway: String) -> String {
        "gattherd_\(gateway)_" + address.lowercased().filter { $0.isHexDigit }
    }

    /// The key of a metric's entity, unique in its device.
    package static func key(stream: String, metric: String) -> String { "\(stream)-\(metric)" }

    /// The `unique_id` of an entity.
    package static func entity(_ key: String, of device: String) -> String { "\(device)_\(key)" }
}

/// The MQTT discovery of Home Assistant, with one payload for each device and one for the gateway.
struct HomeAssistant: Sendable {
    let topics: Topics
    /// The gateway's name.
    let gateway: String
    /// The first level of Home Assistant's topics.
    let prefix: String
    /// The version of gattherd.
    let version: String
    /// The dashboard's address; `nil` if no other host can open it.
    var configurationURL: String?

    /// The topic on which Home Assistant may publish `online` after its start.
    var status: String { "\(prefix)/status" }

    /// Home Assistant's own default, which stays `homeassistant/status` if only the prefix of discovery is changed.
    ///
    /// `nil` if it is ``status``.
    var defaultStatus: String? { prefix == "homeassistant" ? nil : "homeassistant/status" }

    /// The filter for the discovery payloads of all devices, including those of other programs.
    var all: String { "\(prefix)/device/+/config" }

    /// The topic of a device's payload; an empty retained message on it removes the device.
    func topic(of address: String) -> String { "\(prefix)/device/\(identifier(of: address))/config" }

    /// The device's identifier, which survives a rename and is unique among all gateways of a broker.
    func identifier(of address: String) -> String { HomeAssistantIdentity.device(address, of: gateway) }

    /// The device that a payload, or its start, describes; `nil` if it belongs to another program or gateway.
    func device(in payload: [UInt8]) -> String? {
        guard payload.starts(with: start) else { return nil }
        let name = payload.dropFirst(start.count).prefix { $0 != UInt8(ascii: "/") }
        return String(decoding: name, as: UTF8.self)
    }

    /// The start of all payloads, up to the name of the device.
    private var start: [UInt8] {
        let availability = JSONWriter.bytes { writer in
            writer.beginObject()
            writer.key("availability")
            writer.list([topics.state, topics.availability("")]) { $0.object([("topic", .text($1))]) }
        }
        return Array(availability.dropLast(#"/availability"}]"#.utf8.count))
    }

    /// The JSON object that describes a device.
    ///
    /// - Parameters:
    ///   - device: The device's streams and controls.
    ///   - batched: The streams that publish arrays of readings.
    ///   - presentation: The names and alerts of devices.
    ///   - facts: The texts of its Device Information Service.
    /// - Returns: The payload.
    func payload(
        for device: DeviceDescription,
        batched: Set<String> = [],
        presentation: Presentation = Presentation(),
        facts: DeviceFacts.Texts = DeviceFacts.Texts()
    ) -> [UInt8] {
        let parts = components(of: device, batched, presentation.alerts.filter { $0.concerns(device) })
        return JSONWriter.bytes { writer in
            writer.beginObject()
            // The first member, so that the start of a payload identifies its gateway.
            writer.key("availability")
            writer.list([topics.state, topics.availability(device.device)]) { $0.object([("topic", .text($1))]) }
            writer.key("availability_mode")
            writer.string("all")
            writer.key("device")
            write(device, presentation.labels[device.device] ?? DeviceLabel(), facts, to: &writer)
            writeOrigin(to: &writer)
            writer.key("components")
            writer.beginObject()
            for part in parts { part.write(to: &writer) }
            writer.endObject()
            writer.endObject()
        }
    }

    func writeOrigin(to writer: inout JSONWriter) {
        writer.key("origin")
        writer.object([("name", .text("gattherd")), ("sw_version", .text(version))])
        writer.key("qos")
        writer.integer(1)
    }

    /// The owner of a device's entities.
    func owner(_ device: DeviceDescription) -> HomeAssistantOwner {
        HomeAssistantOwner(identifier: identifier(of: device.address), slug: device.device)
    }

    private func write(
        _ device: DeviceDescription,
        _ label: DeviceLabel,
        _ facts: DeviceFacts.Texts,
        to writer: inout JSONWriter
    ) {
        writer.beginObject()
        writer.key("identifiers")
        writer.list([identifier(of: device.address)]) { $0.string($1) }
        writer.key("connections")
        writer.list([["bluetooth", device.address]]) { writer, pair in writer.list(pair) { $0.string($1) } }
        writer.texts([
            "name": label.title ?? device.device, "manufacturer": facts.manufacturer, "model": facts.model,
            "hw_version": facts.hardware, "sw_version": facts.firmware ?? facts.software,
            "serial_number": facts.serial, "suggested_area": label.area, "via_device": gatewayIdentifier,
        ])
        writer.endObject()
    }

    private func components(
        of device: DeviceDescription,
        _ batched: Set<String>,
        _ alerts: [AlertRule]
    ) -> [HomeAssistantComponent] {
        var parts: [HomeAssistantComponent] = []
        let values = sensors(of: device, batched) + controls(of: device, batched)
        for part in values + link(of: device) + alerts.map({ alert($0, of: device) })
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
        self.members(members)
        endObject()
    }

    /// Writes the members of an object that have a text.
    mutating func texts(_ members: KeyValuePairs<String, String?>) {
        for (name, text) in members {
            guard let text else { continue }
            key(name)
            string(text)
        }
    }

    /// Writes members of an object.
    mutating func members(_ members: [(key: String, value: SampleValue)]) {
        for member in members {
            key(member.key)
            value(member.value)
        }
    }
}
