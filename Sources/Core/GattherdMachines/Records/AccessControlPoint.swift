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

    /// Returns operator and operand: all records, or those with this number and higher ones.
    static func filter(_ request: RecordRequest, width: Int) -> [UInt8] {
        guard case .from(let number) = request, width > 0 else { return [1] }
        return [3, 1] + (0..<width).map { UInt8(truncatingIfNeeded: number >> Int64(8 * $0)) }
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
