import GattherdModel

/// The type of a metric, which is stable in a birth and only widens from birth to birth.
///
/// Profiles do not declare types. A metric starts with the type of its kind, and values of other types widen it. A
/// wider type holds all values of the narrower ones, so a metric has few types in its life.
enum MetricType: Int, Hashable, Comparable, Sendable {
    case boolean
    case integer
    case real
    case text
    case reals
    case texts

    static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

    /// The type before any value is known.
    init(of metric: MetricDescriptor) {
        self =
            switch metric.kind {
            case _ where metric.isRepeated: .reals
            case .gauge: .real
            case .counter: .integer
            case .state, .event: .text
            }
    }

    /// The narrowest type of a value; `nil` for an unknown value, which fits every type.
    init?(of value: SampleValue, isRepeated: Bool) {
        switch value {
        case .null: return nil
        case .boolean: self = isRepeated ? .texts : .boolean
        case .integer: self = isRepeated ? .reals : .integer
        case .real: self = isRepeated ? .reals : .real
        case .text: self = isRepeated ? .texts : .text
        }
    }

    /// Returns the narrowest type that holds the values of both.
    func widened(to other: MetricType) -> MetricType {
        guard self != other else { return self }
        // Numbers and booleans have no common type but text.
        return min(self, other) == .boolean ? .text : max(self, other)
    }

    var datatype: SparkplugDatatype {
        switch self {
        case .boolean: .boolean
        case .integer: .int64
        case .real: .double
        case .text: .string
        case .reals: .doubleArray
        case .texts: .stringArray
        }
    }

    /// Encodes the values of a metric in one reading; `nil` for an unknown value.
    ///
    /// A metric that is not repeated has one value.
    func encode(_ values: [SampleValue]) -> SparkplugMetric.Value? {
        switch self {
        case .reals: return .bytes(values.flatMap { Self.littleEndian($0.numberOrFlag ?? .nan) })
        case .texts: return .bytes(values.flatMap { Array($0.words.utf8.filter { $0 != 0 }) + [0] })
        case .boolean, .integer, .real, .text: break
        }
        switch (self, values.first ?? .null) {
        case (_, .null): return nil
        case (.boolean, .boolean(let flag)): return .boolean(flag)
        case (.integer, .integer(let number)): return .long(UInt64(bitPattern: number))
        case (.real, let value): return value.numberOrFlag.map { .double($0) }
        case (.text, let value): return .string(value.words)
        default: return nil
        }
    }

    private static func littleEndian(_ number: Double) -> [UInt8] {
        stride(from: UInt64(0), to: 64, by: 8).map { UInt8(truncatingIfNeeded: number.bitPattern >> $0) }
    }
}

extension SampleValue {
    /// The value as text; empty for an unknown value.
    fileprivate var words: String {
        switch self {
        case .integer(let number): "\(number)"
        case .real(let number): "\(number)"
        case .boolean(let flag): "\(flag)"
        case .text(let text): text
        case .null: ""
        }
    }
}
