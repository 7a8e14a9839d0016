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
    ///   - file: The file's name in errors.
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

/// Parses a scenario: its timing, its adapters or gateways, and the list of peripherals.
private struct ScenarioReader {
    private let problems: ProblemList

    init(_ problems: ProblemList) {
        self.problems = problems
    }

    func scenario(_ root: YAMLNode) -> Scenario {
        var fields = MappingFields(root, "a scenario", problems)
        var scenario = Scenario()
        if let node = fields.node("timing") { scenario.timing = timing(node) }
        scenario.answersFailedAcquire = fields.boolean("answers_failed_acquire") ?? false
        readGateways(&fields, &scenario)
        let peripherals = PeripheralReader(problems, scenario)
        for node in fields.list("peripherals") ?? [] { scenario.peripherals += peripherals.peripherals(node) }
        fields.finish()
        checkUniqueness(of: scenario.peripherals, fields.position)
        return scenario
    }

    /// Parses `adapters`, or `gateways` and `air`.
    private func readGateways(_ fields: inout MappingFields, _ scenario: inout Scenario) {
        let reader = GatewayReader(problems)
        scenario.gateways = fields.list("gateways").map(reader.gateways) ?? []
        let isSite = !scenario.gateways.isEmpty
        if let node = fields.node("adapters") {
            if isSite {
                problems.add("each of the 'gateways' has adapters of its own; move 'adapters' there", at: node.position)
            }
            scenario.adapters = fields.list("adapters").map { reader.adapters($0) } ?? scenario.adapters
        }
        if let node = fields.node("air") {
            let remedy = "'air' needs 'gateways' with positions; add them, or remove it"
            if !isSite { problems.add(remedy, at: node.position) }
            scenario.air = AirReader(problems).air(node)
        }
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
