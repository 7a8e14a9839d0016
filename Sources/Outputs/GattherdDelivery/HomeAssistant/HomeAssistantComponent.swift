import GattherdModel

/// The owner of entities: a device in Home Assistant.
struct HomeAssistantOwner {
    /// The device's identifier, with which the identifiers of its entities begin.
    let identifier: String
    /// The name in the ids of its entities, a slug.
    let slug: String
}

/// One entity of a device in Home Assistant.
struct HomeAssistantComponent {
    enum Value {
        case plain(SampleValue)
        case list([String])
        /// The topics that must be `online`, instead of the topics of the whole device.
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
    ///   - key: The component's key, unique in the device.
    ///   - platform: The kind of entity.
    ///   - owner: The entity's device.
    ///   - name: The name in `snake_case`; becomes the entity's name and part of its id.
    init(_ key: String, _ platform: String, of owner: HomeAssistantOwner, named name: String) {
        self.key = key
        self.platform = platform
        let entity = "\(owner.slug)_\(name)".replacing("-", with: "_")
        members = [
            ("platform", .plain(.text(platform))),
            ("unique_id", .plain(.text(HomeAssistantIdentity.entity(key, of: owner.identifier)))),
            ("default_entity_id", .plain(.text("\(platform).\(entity)"))),
            ("name", .plain(.text(HomeAssistantWords.name(name)))),
        ]
    }

    mutating func set(_ key: String, _ value: Value) {
        members.append((key, value))
    }

    mutating func set(_ key: String, _ text: String?) {
        if let text { set(key, .plain(.text(text))) }
    }

    /// Makes the entity a diagnostic one.
    ///
    /// - Parameter isHidden: True if it is disabled until a person enables it.
    mutating func setDiagnostic(isHidden: Bool = false) {
        set("entity_category", "diagnostic")
        if isHidden { set("enabled_by_default", .plain(.boolean(false))) }
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
}

/// The names of entities in words.
enum HomeAssistantWords {
    /// Words with a special spelling.
    private static let spellings = [
        "rssi": "RSSI", "rr": "RR", "uv": "UV", "co2": "CO₂", "co": "CO", "voc": "VOC", "tvoc": "TVOC", "pm1": "PM1",
        "pm25": "PM2.5", "pm10": "PM10", "id": "ID", "utc": "UTC",
    ]

    /// Returns a `snake_case` name as words: `heart_rate` as `Heart rate`.
    static func name(_ name: String) -> String {
        let words = words(of: name).map { spellings[String($0)] ?? String($0) }
        let text = words.joined(separator: " ")
        return text.prefix(1).uppercased() + text.dropFirst()
    }

    /// The words of a `snake_case` name; PM2.5, which has an underscore for the point, is one of them.
    static func words(of name: String) -> [Substring] {
        name.replacing("pm2_5", with: "pm25").split(separator: "_")
    }
}
