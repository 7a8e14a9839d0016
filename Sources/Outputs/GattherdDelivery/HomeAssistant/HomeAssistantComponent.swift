import GattherdModel

/// One entity of a device in Home Assistant.
struct HomeAssistantComponent {
    enum Value {
        case plain(SampleValue)
        case list([String])
        /// The topics that must say `online`, instead of those of the whole device.
        case availability([String])
    }

    /// The component's key, unique in the device.
    let key: String
    /// The kind of entity, for example `sensor`.
    let platform: String
    /// The members in the order of writing.
    private var members: [(key: String, value: Value)] = []

    /// Creates the component.
    ///
    /// - Parameters:
    /// - key: The component's key, unique in the device.
    /// - platform: The kind of entity.
    /// - device: The entity's device.
    /// - name: The name in `snake_case`; becomes the entity's name and part of its id.
    /// - home: The discovery, which provides the identifiers.
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

    /// The name as words: `heart_rate` as `Heart rate`.
    private static func words(_ name: String) -> String {
        let text = name.replacing("_", with: " ")
        return text.prefix(1).uppercased() + text.dropFirst()
    }
}

/// The Jinja templates, which extract a value from a payload: a reading, or an array of readings.
///
/// Of an array, the last reading with the metric counts.
enum HomeAssistantTemplate {
    /// A number.
    ///
    /// A missing value changes nothing, `null` makes the state unknown, and the last element of a list counts.
    static func number(_ metric: MetricDescriptor, isBatched: Bool = false) -> String {
        let value = value(metric, isBatched, default: "''")
        return "\(value.preparation){{ \(value.expression) }}"
    }

    /// A text.
    ///
    /// Home Assistant accepts an empty text as a state, so a missing value is replaced by the current state.
    static func text(_ metric: MetricDescriptor, isBatched: Bool = false) -> String {
        let value = value(metric, isBatched, default: "states(entity_id) if has_value(entity_id) else none")
        return "\(value.preparation){% set v = \(value.expression) %}"
            + "{{ ('on' if v else 'off') if v is boolean else v }}"
    }

    /// A Boolean as `true` or `false`.
    static func boolean(_ metric: MetricDescriptor, isBatched: Bool = false) -> String {
        let value = value(metric, isBatched, default: "''")
        return "\(value.preparation){% set v = \(value.expression) %}"
            + "{{ v if v is none or v == '' else 'true' if v in [true, 'true', 'on'] else 'false' }}"
    }

    private static func value(
        _ metric: MetricDescriptor,
        _ isBatched: Bool,
        default other: String
    ) -> (preparation: String, expression: String) {
        let name = metric.name
        let object = isBatched ? "r" : "value_json"
        // `selectattr` takes a name of digits for an index.
        let last = "value_json | selectattr('\(name)', 'defined') | list | last | default({}, true)"
        let isIndex = name.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
        let preparation = !isBatched ? "" : "{% set r = \(isIndex ? "value_json | last" : last) %}"
        let value = "\(object)['\(name)']"
        let expression =
            metric.isRepeated
            ? "(\(value) | last) if \(value) | default([], true) else \(other)"
            : "\(value) if '\(name)' in \(object) else \(other)"
        return (preparation, expression)
    }
}
