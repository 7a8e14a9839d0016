/// The peripherals of a scenario and their devices in the configuration.
public struct TestPeripherals: Sendable {
    /// One entry of the scenario and its devices.
    public struct Entry: Sendable {
        let name: String
        let kind: String
        let count: Int
        /// Additional members of the scenario's entry.
        let scenario: String
        /// Additional members of each device in the configuration; nil for unconfigured peripherals.
        let device: String?

        /// Makes `count` peripherals of one of the simulator's kinds.
        ///
        /// Their name is `name`; with a count, `name-1` and so on. `scenario` and `device` are additional members of
        /// their entries in YAML flow style, for example `rate: 10, rr: 2` and `notify: socket`. Without a `device`
        /// they are not configured.
        public init(
            _ kind: String,
            _ name: String,
            count: Int = 1,
            _ scenario: String = "",
            device: String? = ""
        ) {
            self.name = name
            self.kind = kind
            self.count = count
            self.scenario = scenario
            self.device = device
        }
    }

    private let entries: [Entry]
    private let adapter: String
    private let timing: String

    /// Makes peripherals of one scenario.
    ///
    /// `adapter` has members of the adapter's entry, for example `slots: 3`.
    public init(_ entries: Entry..., adapter: String = "slots: 64") {
        self.init(entries, adapter: adapter)
    }

    /// Makes peripherals of one scenario with members of the scenario's `timing`, which the real stack ignores.
    public init(_ entries: [Entry], adapter: String = "slots: 64", timing: String = "") {
        self.entries = entries
        self.adapter = adapter
        self.timing = timing
    }

    /// Names and addresses of the configured devices.
    public var devices: [(name: String, address: String)] {
        configured.map { ($0.name, $0.address) }
    }

    /// The scenario in YAML.
    public var scenario: String {
        let lines = entries.enumerated().map { index, entry in
            var members = ["name: \(entry.name)", "kind: \(entry.kind)", "address: '\(Self.address(index, 1))'"]
            if entry.count > 1 { members.append("count: \(entry.count)") }
            if !entry.scenario.isEmpty { members.append(entry.scenario) }
            return "  - {\(members.joined(separator: ", "))}"
        }
        return """
            timing: {\(timing)}
            adapters: [{name: hci0, address: "00:1B:DC:0F:00:01", \(adapter)}]
            peripherals:
            \(lines.joined(separator: "\n"))

            """
    }

    var settings: String {
        let lines = configured.map { device in
            let more = device.more.isEmpty ? "" : ", \(device.more)"
            return "  - {name: \(device.name), address: \"\(device.address)\"\(more)}"
        }
        return lines.joined(separator: "\n")
    }

    private var configured: [(name: String, address: String, more: String)] {
        entries.enumerated().flatMap { index, entry in
            guard let more = entry.device else { return [(name: String, address: String, more: String)]() }
            return (1...entry.count).map { number in
                (entry.count > 1 ? "\(entry.name)-\(number)" : entry.name, Self.address(index, number), more)
            }
        }
    }

    private static func address(_ entry: Int, _ number: Int) -> String {
        "C0:DE:00:\(hexadecimal(entry + 1)):00:\(hexadecimal(number))"
    }

    private static func hexadecimal(_ value: Int) -> String {
        (value < 16 ? "0" : "") + String(value, radix: 16, uppercase: true)
    }
}
