import GattherdGATT
public import GattherdYAML

/// All problems of a scenario.
public struct ScenarioError: Error, Hashable, Sendable, CustomStringConvertible {
    public struct Problem: Hashable, Sendable, CustomStringConvertible {
        public let file: String
        public let position: YAMLPosition
        public let text: String

        /// The problem in the format of compilers: `file:line:column: error: text`.
        public var description: String { "\(file):\(position): error: \(text)" }
    }

    /// The problems in the order of the text.
    public let problems: [Problem]

    public var description: String { problems.map(\.description).joined(separator: "\n") }
}

extension Scenario {
    /// Reads a scenario; `README.md` of this module describes the format.
    ///
    /// - Parameters:
    ///   - text: YAML.
    ///   - file: What errors call it.
    /// - Throws: ``ScenarioError`` with all problems.
    public init(_ text: String, file: String) throws(ScenarioError) {
        let problems = ProblemList(file: file)
        self.init()
        do throws(YAMLError) {
            if let root = try YAML.parse(text) { self = ScenarioReader(problems).scenario(root) }
        } catch {
            problems.add(error.problem, at: error.position)
        }
        if let error = problems.error { throw error }
    }
}

/// Parses a scenario: its timing, its adapters and the list of peripherals.
private struct ScenarioReader {
    private let problems: ProblemList

    init(_ problems: ProblemList) {
        self.problems = problems
    }

    func scenario(_ root: YAMLNode) -> Scenario {
        var fields = MappingFields(root, "a scenario", problems)
        var scenario = Scenario()
        if let node = fields.node("timing") { scenario.timing = timing(node) }
        if let nodes = fields.list("adapters") { scenario.adapters = adapters(nodes) }
        let peripherals = PeripheralReader(problems, adapters: scenario.adapters)
        for node in fields.list("peripherals") ?? [] { scenario.peripherals += peripherals.peripherals(node) }
        fields.finish()
        checkUniqueness(of: scenario.peripherals, fields.position)
        return scenario
    }

    /// Parses `timing`: a word for all durations, or single durations.
    private func timing(_ node: YAMLNode) -> Timing {
        switch node.text {
        case "realistic": return Timing()
        case "quick": return .quick
        case let word?: problems.add("'\(word)' is not one of realistic, quick", at: node.position)
        case nil: return durations(node)
        }
        return Timing()
    }

    private func durations(_ node: YAMLNode) -> Timing {
        var fields = MappingFields(node, "'timing'", problems)
        var timing = Timing()
        let durations: [(String, WritableKeyPath<Timing, Duration>)] = [
            ("disconnect", \.disconnect), ("connect_timeout", \.connectTimeout),
            ("temporary_timeout", \.temporaryTimeout), ("att_timeout", \.attTimeout),
            ("supervision_timeout", \.supervisionTimeout), ("pairing_timeout", \.pairingTimeout),
        ]
        for (key, path) in durations {
            guard let duration = fields.duration(key) else { continue }
            timing[keyPath: path] = duration
        }
        fields.finish()
        return timing
    }

    private func adapters(_ nodes: [YAMLNode]) -> [AdapterSpec] {
        let adapters = nodes.enumerated().map { adapter($1, number: $0) }
        for (index, node) in nodes.enumerated()
        where adapters[..<index].contains(where: { $0.name == adapters[index].name }) {
            problems.add("there is another adapter '\(adapters[index].name)'", at: node.position)
        }
        return adapters
    }

    private func adapter(_ node: YAMLNode, number: Int) -> AdapterSpec {
        var fields = MappingFields(node, "an adapter", problems)
        var adapter = AdapterSpec()
        adapter.name =
            fields.value("name", "an adapter's name; write hci and a number", Self.adapterName) ?? "hci\(number)"
        let address = fields.address("address")?.description
        adapter.address =
            address ?? "00:00:5E:00:53:" + (number < 16 ? "0" : "") + String(number, radix: 16, uppercase: true)
        adapter.slots = fields.integer("slots", in: 1...255)
        adapter.isPowered = fields.boolean("powered") ?? true
        adapter.isPresent = fields.boolean("present") ?? true
        fields.finish()
        return adapter
    }

    private static func adapterName(_ text: String) -> String? {
        guard text.hasPrefix("hci"), let number = UInt8(text.dropFirst(3)) else { return nil }
        return "hci\(number)"
    }

    private func checkUniqueness(of peripherals: [PeripheralSpec], _ position: YAMLPosition) {
        var names: Set<String> = []
        var addresses: Set<BluetoothAddress> = []
        for peripheral in peripherals {
            if !names.insert(peripheral.name).inserted {
                problems.add("there are two peripherals '\(peripheral.name)'", at: position)
            }
            if !addresses.insert(peripheral.address).inserted {
                problems.add("two peripherals have the address \(peripheral.address)", at: position)
            }
        }
    }
}

/// Collects the problems of one scenario.
///
/// Confined to one thread.
final class ProblemList {
    private let file: String
    private var problems: [ScenarioError.Problem] = []

    init(file: String) {
        self.file = file
    }

    /// The folder of the file with a trailing slash; empty for the current folder.
    var folder: String { file.lastIndex(of: "/").map { String(file[...$0]) } ?? "" }

    func add(_ text: String, at position: YAMLPosition) {
        problems.append(ScenarioError.Problem(file: file, position: position, text: text))
    }

    /// The collected problems; `nil` if there are none.
    var error: ScenarioError? {
        problems.isEmpty ? nil : ScenarioError(problems: problems.sorted { $0.position < $1.position })
    }
}
