import GattherdGATT
import GattherdModel

extension Conversion {
    /// Converts the bits of a number that is not a plain integer.
    func outcome(of type: FieldType, pattern: UInt64) -> DecodeOutcome {
        let (word, doubleWord) = (UInt16(truncatingIfNeeded: pattern), UInt32(truncatingIfNeeded: pattern))
        switch type {
        case .real(4, _): return outcome(of: Float(bitPattern: doubleWord), pattern: pattern)
        case .real: return outcome(of: Double(bitPattern: pattern), pattern: pattern)
        case .sfloat: return outcome(of: IEEE11073Number(sfloat: word), pattern: pattern)
        case .float: return outcome(of: IEEE11073Number(float: doubleWord), pattern: pattern)
        case .integer, .boolean, .dateTime, .date, .uuid, .text, .terminatedText, .wideText, .decimal, .octets:
            return DecodeOutcome(.null)
        }
    }

    /// Returns the value of a source that gives the raw number 0; null if it has none.
    func zero(of action: DecodeProgram.Step.Action) -> SampleValue {
        switch action {
        case .read(.decimal): outcome(of: Double(0), pattern: 0).value
        case .read(let type) where !type.isInteger: outcome(of: type, pattern: 0).value
        case .reinterpret(_, let type): outcome(of: type, pattern: 0).value
        case .formula: outcome(ofFormula: 0).value
        case .increase: ratio(0, 1) ?? .null
        case .aggregate(let aggregate, _): aggregate == .count ? .integer(0) : .real(0)
        case .read, .compute, .skip, .decrypt, .deltas, .ignore, .objects, .group:
            outcome(of: Int64(0), pattern: 0).value
        }
    }
}
