import GattherdModel

/// Every topic that the gateway publishes or subscribes to.
struct Topics: Sendable {
    /// The levels above all topics, for example `gattherd/lab-1`.
    let base: String
    /// The first level of ``base``, which may be shared with other gateways.
    private let root: String

    init(base: String) {
        self.base = base
        root = String(base.prefix { $0 != "/" })
    }

    /// The topic of `online` and `offline`, also of the last will.
    var state: String { "\(base)/bridge/state" }
    /// The filter for ``state``; unlike it, so that a broker that refuses the filter does not lose the topic.
    var stateFilter: String { "\(state)/#" }
    var info: String { "\(base)/bridge/info" }
    var alerts: String { "\(base)/bridge/alerts" }
    var health: String { "\(base)/bridge/health" }
    var event: String { "\(base)/bridge/event" }
    /// The filter for every ``Request/set``.
    var sets: String { "\(base)/+/+/set" }
    /// The filter for every ``Request/bridge``.
    var requests: String { "\(base)/bridge/request/+" }

    func request(_ verb: String) -> String { "\(base)/bridge/request/\(verb)" }
    func response(_ verb: String) -> String { "\(base)/bridge/response/\(verb)" }
    func availability(_ device: String) -> String { "\(base)/\(device)/availability" }
    func connection(_ device: String) -> String { "\(base)/\(device)/connection" }
    func description(_ device: String) -> String { "\(base)/\(device)/description" }
    func lease(_ device: String) -> String { "\(base)/\(device)/lease" }
    /// The retained topics of a device that are not streams.
    func states(_ device: String) -> [String] {
        [connection(device), availability(device), description(device), lease(device)]
    }
    func reading(_ device: String, _ stream: String) -> String { "\(base)/\(device)/\(stream)" }
    func scalar(_ device: String, _ stream: String, _ metric: String) -> String {
        "\(base)/\(device)/\(stream)/\(metric)"
    }
    func set(_ device: String, _ control: String) -> String { "\(base)/\(device)/\(control)/set" }
    func result(_ device: String, _ control: String) -> String { "\(base)/\(device)/\(control)/result" }
    /// The filter for all topics of a device.
    func all(of device: String) -> String { "\(base)/\(device)/#" }
    /// The filter for the retained availability of every device, past or present.
    var availabilities: String { "\(base)/+/availability" }
    /// The filter for the retained description of every device, past or present.
    var descriptions: String { "\(base)/+/description" }
    /// The filter for the retained lease of every device, past or present.
    var leases: String { "\(base)/+/lease" }

    /// The maximum length of a received topic in bytes; the gateway's own are far shorter.
    private static let longest = 1024
    /// The maximum number of levels of a response topic; some brokers end the session for more.
    private static let maximumLevels = 20

    /// False if no useful message can have the topic.
    func isReasonable(_ topic: String) -> Bool {
        !topic.isEmpty && topic.utf8.count <= Self.longest
    }

    /// True if a response may go to the topic that the request names.
    ///
    /// The gateway's other topics are excluded: a response there could act as a request or look like a reading. Other
    /// gateways and Home Assistant are excluded too, as the MQTT user may write to their topics. Other gateways are
    /// below the same first level, or below `gattherd`. Topics that start with `$` belong to the broker.
    func isAnswerable(_ topic: String, homePrefix: String) -> Bool {
        let bytes = topic.utf8
        guard isReasonable(topic), bytes.first != UInt8(ascii: "$") else { return false }
        guard !bytes.contains(where: { "+#\0".utf8.contains($0) }) else { return false }
        let levels = Self.levels(bytes[...])
        guard levels.count <= Self.maximumLevels, let first = levels.first else { return false }
        return bytes.starts(with: "\(base)/bridge/response/".utf8) && levels.last != "set"
            || (first != "gattherd" && first != root && !bytes.starts(with: "\(homePrefix)/".utf8))
    }

    /// The subject of a received message.
    enum Request: Hashable, Sendable {
        case set(device: String, control: String)
        case bridge(verb: String)

        /// True if all names are valid for a device, a control or a verb.
        var hasValidNames: Bool {
            switch self {
            case .set(let device, let control): Slug.isValid(device) && Slug.isValid(control)
            case .bridge(let verb): Slug.isValid(verb)
            }
        }
    }

    /// The request on `topic`; `nil` if the topic belongs to no request.
    func request(_ topic: String) -> Request? {
        let levels = levels(topic)
        guard levels.count == 3 else { return nil }
        if levels[0] == "bridge", levels[1] == "request" { return .bridge(verb: levels[2]) }
        return levels[2] == "set" && levels[0] != "bridge" ? .set(device: levels[0], control: levels[1]) : nil
    }

    /// The device whose stream, metric or state has the topic.
    func device(_ topic: String) -> String? {
        let levels = levels(topic)
        return levels.count > 1 && levels[0] != "bridge" ? levels[0] : nil
    }

    /// True if the topic has the availability of a device.
    func isAvailability(_ topic: String) -> Bool {
        device(topic).map { availability($0) == topic } ?? false
    }

    /// The levels after the base.
    private func levels(_ topic: String) -> [String] {
        guard topic.utf8.starts(with: "\(base)/".utf8) else { return [] }
        return Self.levels(topic.utf8.dropFirst(base.utf8.count + 1))
    }

    /// The levels of a topic, by bytes: a slash and a combining character after it are one `Character`.
    private static func levels(_ topic: Substring.UTF8View) -> [String] {
        topic.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).map { String(Substring($0)) }
    }
}

/// The topic aliases of MQTT 5, assigned up to the broker's maximum and valid for one connection.
///
/// A broker may not learn the alias of a message that it refuses, for example because of a quota. So an alias replaces
/// its topic only after the broker has accepted a message with both.
struct TopicAliases {
    /// The highest alias that the broker accepts.
    var maximum = 0
    private var aliases: [String: (number: UInt16, isKnown: Bool)] = [:]
    /// The number of aliases that the broker does not know yet.
    private var unknown = 0

    /// The alias of a message on the topic, and whether the broker knows it.
    ///
    /// - Parameters:
    ///   - topic: The topic.
    ///   - isAcknowledged: True with QoS 1; the broker does not confirm an alias of QoS 0.
    /// - Returns: The alias; `nil` if none is left, or if the message must not have one.
    mutating func number(of topic: String, isAcknowledged: Bool) -> (number: UInt16, isKnown: Bool)? {
        if let alias = aliases[topic] { return alias.isKnown || isAcknowledged ? alias : nil }
        guard isAcknowledged, aliases.count < maximum else { return nil }
        let alias = (number: UInt16(clamping: aliases.count + 1), isKnown: false)
        aliases[topic] = alias
        unknown += 1
        return alias
    }

    /// Records that the broker accepted a message of QoS 1 on the topic.
    mutating func accepted(_ topic: String) {
        guard unknown > 0, aliases[topic]?.isKnown == false else { return }
        aliases[topic]?.isKnown = true
        unknown -= 1
    }
}
