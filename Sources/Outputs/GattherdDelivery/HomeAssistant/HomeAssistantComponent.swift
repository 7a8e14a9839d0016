import GattherdModel

/// One entity of a device in Home Assistant.
struct HomeAssistantComponent {
    enum Value {
        case plain(SampleValue)
        case list([String])
        /// Topics that must say `online`, instead of those of the whole device.
        case availability([String])
    }

    /// Unique in the device.
    let key: String
    /// The kind of entity, for example `sensor`.
    let platform: String
    /// In the order in which they are written.
    private var members: [(key: String, value: Value)] = []

    /// - Parameters:
    ///   - key: Unique in the device.
    ///   - platform: The kind of entity.
    ///   - device: Whose.
    ///   - name: In `snake_case`; becomes the entity's name and part of its id.
    ///   - home: Knows the identifiers.
    init(_ key: String, _ platform: String, of device: DeviceDescription, named name: String, in home: HomeAssistant) {
        self.key = key
        self.platform = platform
        let entity = "\(device.device)_\(name)".replacing("-", with: "_")
        members = [
            ("platform", .plain(.text(platform))),
            ("unique_id", .plain(.text("\(home.identifier(of: device.address))_\(key)"))),
            ("default_entity_id", .plain(.text("\(platform).\(entity)"))),
            ("name", .plain(.text(Self.words(name)))),
        ]
    }

    mutating func set(_ key: String, _ value: Value) {
        members.append((key, value))
    }

    mutating func set(_ key: String, _ text: String?) {
        if let text { set(key, .plain(.text(text))) }
    }

    /// Writes the key and the object.
    func write(to writer: inout JSONWriter) {
        writer.key(key)
        writer.beginObject()
        for member in members {
            writer.key(member.key)
            switch member.value {
            case .plain(let value): writer.value(value)
            case .list(let texts): writer.list(texts) { $0.string($1) }
            case .availability(let topics): writer.list(topics) { $0.object([("topic", .text($1))]) }
            }
        }
        writer.endObject()
    }

    /// `heart_rate` as `Heart rate`.
    private static func words(_ name: String) -> String {
        let text = name.replacing("_", with: " ")
        return text.prefix(1).uppercased() + text.dropFirst()
    }
}

/// Jinja templates, which pick a value out of a payload.
enum HomeAssistantTemplate {
    /// A number; what is not there changes nothing, `null` makes the state unknown, of a list the last one counts.
    static func number(_ metric: MetricDescriptor) -> String { "{{ \(value(metric, default: "''")) }}" }

    /// A text; Home Assistant takes an empty one for a state, so what is not there is replaced by the state as it is.
    static func text(_ metric: MetricDescriptor) -> String {
        "{% set v = \(value(metric, default: "states(entity_id) if has_value(entity_id) else none")) %}"
            + "{{ ('on' if v else 'off') if v is boolean else v }}"
    }

    /// `true` or `false`.
    static func boolean(_ metric: MetricDescriptor) -> String {
        "{% set v = \(value(metric, default: "''")) %}"
            + "{{ v if v is none or v == '' else 'true' if v in [true, 'true', 'on'] else 'false' }}"
    }

    private static func value(_ metric: MetricDescriptor, default other: String) -> String {
        let value = "value_json['\(metric.name)']"
        guard metric.isRepeated else { return "\(value) if '\(metric.name)' in value_json else \(other)" }
        return "(\(value) | last) if value_json['\(metric.name)'] | default([], true) else \(other)"
    }
}
