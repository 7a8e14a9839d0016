import GattherdGATT
import GattherdModel

/// The bytes around a control's value.
struct ControlFrame: Hashable, Sendable {
    let prefix: [UInt8]
    let suffix: [UInt8]
    let checksum: Checksum?

    /// Returns the bytes to write; `nil` if they cannot have the checksum.
    func octets(around value: [UInt8]) -> [UInt8]? {
        let octets = prefix + value + suffix
        return checksum.map { $0.inserted(into: octets) } ?? octets
    }
}

/// The encoding of a control's value.
enum ControlEncoding: Sendable {
    case fixed([UInt8])
    case boolean
    /// The raw value of each label.
    case choice([Int64], FieldType)
    case scaled(FieldType, Scale)

    /// The number of bytes of a value.
    var width: Int {
        switch self {
        case .fixed(let octets): octets.count
        case .boolean: 1
        case .choice(_, let type), .scaled(let type, _): type.width ?? 0
        }
    }

    /// Returns the bytes of a valid value; `nil` if the type cannot hold it.
    func octets(for value: ControlValue, _ kind: ControlKind) -> [UInt8]? {
        switch (self, value) {
        case (.fixed(let octets), _): octets
        case (.boolean, .boolean(let flag)): [flag ? 1 : 0]
        case (.choice(let raws, let type), .text(let label)): choice(raws, type, label, kind)
        case (.scaled(let type, let scale), .integer(let number)):
            scale.isIdentity ? type.octets(ofInteger: number) : type.octets(of: scale.raw(of: Double(number), type))
        case (.scaled(let type, let scale), .real(let number)): type.octets(of: scale.raw(of: number, type))
        default: nil
        }
    }

    private func choice(_ raws: [Int64], _ type: FieldType, _ label: String, _ kind: ControlKind) -> [UInt8]? {
        guard case .choice(let labels) = kind, let index = labels.firstIndex(of: label) else { return nil }
        return raws.indices.contains(index) ? type.octets(ofInteger: raws[index]) : nil
    }
}

extension Scale {
    /// Returns the raw number of a value, rounded for integer types.
    fileprivate func raw(of value: Double, _ type: FieldType) -> Double {
        let raw = raw(of: value)
        return type.isInteger ? raw.rounded() : raw
    }
}

extension FieldType {
    /// Returns the bytes of a raw number; `nil` if it does not fit.
    fileprivate func octets(of raw: Double) -> [UInt8]? {
        switch self {
        case .integer: Int64(exactly: raw).flatMap { octets(ofInteger: $0) }
        case .real(4, let isBigEndian): ordered(UInt64(Float(raw).bitPattern), 4, isBigEndian)
        case .real(_, let isBigEndian): ordered(raw.bitPattern, 8, isBigEndian)
        case .sfloat, .float, .boolean, .dateTime, .date, .uuid, .text, .terminatedText, .wideText, .decimal, .octets:
            nil
        }
    }

    fileprivate func octets(ofInteger raw: Int64) -> [UInt8]? {
        guard case .integer(let count, _, let isBigEndian) = self, integerRange?.contains(raw) == true else {
            return nil
        }
        return ordered(UInt64(bitPattern: raw), count, isBigEndian)
    }

    private func ordered(_ bits: UInt64, _ count: Int, _ isBigEndian: Bool) -> [UInt8] {
        var writer = PayloadWriter()
        writer.append(bits, octets: count)
        return isBigEndian ? writer.octets.reversed() : writer.octets
    }
}
