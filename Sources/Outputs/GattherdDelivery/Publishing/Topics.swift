import GattherdModel

/// Every topic that the gateway publishes to or listens to.
struct Topics: Sendable {
    let gateway: String
    let base: String

    init(gateway: String) {
        self.gateway = gateway
        base = "gattherd/\(gateway)"
    }

    /// `online` or `offline`; the last will.
    var state: String { "\(base)/bridge/state" }
    var info: String { "\(base)/bridge/info" }
    var event: String { "\(base)/bridge/event" }
    /// Matches every ``Request/set``.
    var sets: String { "\(base)/+/+/set" }
    /// Matches every ``Request/bridge``.
    var requests: String { "\(base)/bridge/request/+" }

    func response(_ verb: String) -> String { "\(base)/bridge/response/\(verb)" }
    func availability(_ device: String) -> String { "\(base)/\(device)/availability" }
    func connection(_ device: String) -> String { "\(base)/\(device)/connection" }
    func reading(_ device: String, _ stream: String) -> String { "\(base)/\(device)/\(stream)" }
    func scalar(_ device: String, _ stream: String, _ metric: String) -> String {
        "\(base)/\(device)/\(stream)/\(metric)"
    }
    func set(_ device: String, _ control: String) -> String { "\(base)/\(device)/\(control)/set" }
    func result(_ device: String, _ control: String) -> String { "\(base)/\(device)/\(control)/result" }
    /// Matches all that can be retained of a device.
    func all(of device: String) -> String { "\(base)/\(device)/#" }
    /// Matches what is retained of every device that there ever was.
    var availabilities: String { "\(base)/+/availability" }

    /// The longest topic that is looked at, in octets; ours are far shorter.
    private static let longest = 1024
    /// The most levels of a topic that we answer to; some brokers end the session for more.
    private static let mostLevels = 20

    /// False if no message of any use to us can have the topic.
    func isReasonable(_ topic: String) -> Bool {
        !topic.isEmpty && topic.utf8.count <= Self.longest
    }

    /// True if an answer may go where the request wants it.
    ///
    /// An answer is nothing that the gateway's other topics may carry: it could be a request, or look like a reading. The
    /// same holds for other gateways and for Home Assistant, whose trees our user may write to. `$` begins the broker's own.
    func isAnswerable(_ topic: String, homePrefix: String) -> Bool {
        guard isReasonable(topic), !topic.hasPrefix("$"), !topic.utf8.contains(where: { "+#\0".utf8.contains($0) })
        else {
            return false
        }
        let levels = topic.split(separator: "/", omittingEmptySubsequences: false)
        guard levels.count <= Self.mostLevels else { return false }
        return topic.hasPrefix("\(base)/bridge/response/") && levels.last != "set"
            || (levels[0] != "gattherd" && !topic.hasPrefix("\(homePrefix)/"))
    }

    /// What a message on one of our subscriptions is about.
    enum Request: Hashable, Sendable {
        case set(device: String, control: String)
        case bridge(verb: String)

        /// True if all of its names could be those of a device, a control or a verb.
        var hasValidNames: Bool {
            switch self {
            case .set(let device, let control): Slug.isValid(device) && Slug.isValid(control)
            case .bridge(let verb): Slug.isValid(verb)
            }
        }
    }

    /// What is asked on `topic`; `nil` when it is no request.
    func request(_ topic: String) -> Request? {
        let levels = levels(topic)
        guard levels.count == 3 else { return nil }
        if levels[0] == "bridge", levels[1] == "request" { return .bridge(verb: levels[2]) }
        return levels[2] == "set" && levels[0] != "bridge" ? .set(device: levels[0], control: levels[1]) : nil
    }

    /// The device whose stream, metric or state `topic` is.
    func device(_ topic: String) -> String? {
        let levels = levels(topic)
        return levels.count > 1 && levels[0] != "bridge" ? levels[0] : nil
    }

    /// The levels after the base.
    private func levels(_ topic: String) -> [String] {
        guard topic.hasPrefix("\(base)/") else { return [] }
        return topic.dropFirst(base.count + 1).split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    }
}
