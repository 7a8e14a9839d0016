import GattherdModel
import GattherdYAML

/// The shared values of a profile's characteristics: its options and the fields with `share: true`.
///
/// All programs have them in the same registers. A field can use those above it in the file.
struct SharedValues: Sendable {
    private static let maximumOptions = 16
    private static let maximumValues = 64

    private(set) var options: [ProfileOption] = []
    private(set) var names: [(name: String, bits: Int64, signedBits: Int?)] = []

    /// Reads the mapping `options` of a profile.
    init(_ reader: MappingReader) {
        guard let node = reader.node("options") else { return }
        guard let members = node.members, !members.isEmpty, members.count <= Self.maximumOptions else {
            let advice = "such as wheel_circumference: {default: 2105, range: [300, 4000], unit: mm}"
            reader.report("'options' is a mapping of 1 to \(Self.maximumOptions) names, \(advice)", at: "options")
            return
        }
        options = members.compactMap { Self.option($0, reader.findings) }
        names = options.map { ($0.name, 56, nil) }
    }

    private static func option(_ member: YAMLMember, _ findings: ProfileFindings) -> ProfileOption? {
        guard let name = ProfileGrammar<String>.identifier.read(member.key, findings),
            let reader = MappingReader(member.value, .option, findings: findings)
        else { return nil }
        defer { reader.finish() }
        let whole = ProfileGrammar<Int64>.integer(-(1 << 32)...1 << 32)
        let ends = reader.elements("range").compactMap { whole.read($0, findings) }
        let unit = reader.value("unit", .words)
        guard let standard = reader.required("default", whole) else { return nil }
        guard ends.count == 2, ends[0] <= standard, standard <= ends[1] else {
            reader.report("an option needs a 'range' around its default, such as [300, 4000]", at: "range")
            return nil
        }
        return ProfileOption(name: name, standard: standard, range: ends[0]...ends[1], unit: unit)
    }

    /// Adds the shared value `name` and returns its index; `nil` if there are too many.
    mutating func add(_ name: String, bits: Int64, signedBits: Int?) -> Int? {
        if let known = names.firstIndex(where: { $0.name == name }) { return known }
        guard names.count < Self.maximumValues else { return nil }
        names.append((name, bits, signedBits))
        return names.count - 1
    }

    /// Returns the values at the start of a connection.
    func initial(with settings: [String: Int64]) -> [Int64] {
        names.indices.map { index in
            guard options.indices.contains(index) else { return 0 }
            let option = options[index]
            return min(max(settings[option.name] ?? option.standard, option.range.lowerBound), option.range.upperBound)
        }
    }
}
