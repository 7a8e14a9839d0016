import GattherdModel

/// The codes of the Record Access Control Point.
///
/// GATT Specification Supplement, "Record Access Control Point".
enum AccessControlPoint {
    static let success: UInt8 = 1
    static let noRecords: UInt8 = 6

    /// An answer of the control point.
    enum Answer: Hashable {
        case count(Int)
        case result(operation: UInt8, UInt8)

        init?(_ octets: [UInt8]) {
            guard octets.count >= 4, octets[1] == 0 else { return nil }
            switch octets[0] {
            case 5: self = .count(octets.dropFirst(2).prefix(4).reversed().reduce(0) { $0 << 8 | Int($1) })
            case 6: self = .result(operation: octets[2], octets[3])
            default: return nil
            }
        }
    }

    /// Returns operator and operand: all records, those with this number and higher ones, or those in a range.
    static func filter(_ request: RecordRequest, width: Int) -> [UInt8] {
        guard width > 0 else { return [1] }
        switch request {
        case .all, .allAfterNone: return [1]
        case .from(let number): return [3, 1] + octets(number, width)
        case .within(let range): return [4, 1] + octets(range.lowerBound, width) + octets(range.upperBound, width)
        }
    }

    private static func octets(_ number: Int64, _ width: Int) -> [UInt8] {
        (0..<width).map { UInt8(truncatingIfNeeded: number >> Int64(8 * $0)) }
    }

    static func isUnsupported(_ result: UInt8) -> Bool { [2, 3, 4, 5, 9].contains(result) }

    static func text(_ result: UInt8) -> String {
        switch result {
        case 2: "not supported"
        case 3: "invalid operator"
        case 4: "operator not supported"
        case 5: "invalid operand"
        case 7: "abort failed"
        case 8: "not completed"
        case 9: "operand not supported"
        default: "result \(result)"
        }
    }
}
