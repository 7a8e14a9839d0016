import GattherdGATT

/// The bytes of a write with places for numbers, such as `3A3A11 {now:u32be} {since:u32be}`.
public struct WriteTemplate: Hashable, Sendable {
    /// A number that is known when the bytes are written.
    public enum Variable: Hashable, Sendable {
        /// The number of the next record.
        case next
        /// The index of the wanted block.
        case index
        /// The time of the newest stored record, in seconds by the device's clock.
        case since
        /// The current time.
        case time(WriteTime.Unit)
        /// An option of the profile.
        case option(String)
    }

    /// A part of the bytes.
    public enum Part: Hashable, Sendable {
        case octets([UInt8])
        /// A number plus a constant.
        case number(Variable, plus: Int64, octets: Int, isBigEndian: Bool)
    }

    public var parts: [Part]
    /// The checksum that is added to them.
    public var checksum: Checksum?

    public init(_ octets: [UInt8]) {
        parts = [.octets(octets)]
    }

    /// Parses `82 04 {index:u16le}`; `nil` for an invalid text.
    ///
    /// - Parameters:
    ///   - text: The bytes in hexadecimal, and the numbers in braces.
    ///   - options: The names of the profile's options.
    public init?(_ text: String, options: [String] = []) {
        var parts: [Part] = []
        for piece in text.split(separator: "{", omittingEmptySubsequences: false).enumerated() {
            let halves = piece.element.split(separator: "}", omittingEmptySubsequences: false)
            guard halves.count == (piece.offset == 0 ? 1 : 2), let rest = halves.last else { return nil }
            if piece.offset > 0 {
                guard let number = Self.number(String(halves[0]), options) else { return nil }
                parts.append(number)
            }
            guard !rest.allSatisfy(\.isWhitespace) else { continue }
            guard let octets = Hexadecimal.octets(rest), octets.count <= 512 else { return nil }
            parts.append(.octets(octets))
        }
        guard !parts.isEmpty, parts.count <= 16 else { return nil }
        self.parts = parts
    }

    /// Parses `now:u32be` or `year-2000:u8`.
    private static func number(_ text: String, _ options: [String]) -> Part? {
        let words = text.split(separator: ":")
        guard words.count == 2, let (variable, plus) = sum(words[0], options) else { return nil }
        let type = words[1]
        let isBigEndian = type.hasSuffix("be")
        let bits = type.dropFirst().prefix { $0.isNumber }
        guard type.first == "u", let width = Int(bits), (8...56).contains(width), width.isMultiple(of: 8),
            ["", "le", "be"].contains(type.dropFirst(1 + bits.count))
        else { return nil }
        return .number(variable, plus: plus, octets: width / 8, isBigEndian: isBigEndian)
    }

    private static func sum(_ text: Substring, _ options: [String]) -> (Variable, Int64)? {
        let name = text.prefix { $0 != "+" && $0 != "-" }
        let rest = text.dropFirst(name.count)
        guard let plus = rest.isEmpty ? 0 : Int64(rest), plus.magnitude <= 1 << 40 else { return nil }
        switch String(name) {
        case "next": return (.next, plus)
        case "index": return (.index, plus)
        case "since": return (.since, plus)
        case let name where options.contains(name): return (.option(name), plus)
        case let name: return WriteTime.Unit(rawValue: name).map { (.time($0), plus) }
        }
    }

    /// The variables of the parts.
    public var variables: [Variable] {
        parts.compactMap { if case .number(let variable, _, _, _) = $0 { variable } else { nil } }
    }

    /// True if the bytes contain the number.
    public func contains(_ variable: Variable) -> Bool { variables.contains(variable) }

    /// The number of bytes, without those of the checksum.
    public var count: Int {
        parts.reduce(0) { count, part in
            switch part {
            case .octets(let fixed): count + fixed.count
            case .number(_, _, let width, _): count + width
            }
        }
    }

    /// Returns the bytes; `nil` if a number or the checksum does not fit.
    public func octets(_ value: (Variable) -> Int64?) -> [UInt8]? {
        var octets: [UInt8] = []
        for part in parts {
            guard let more = Self.octets(of: part, value) else { return nil }
            octets += more
        }
        return checksum.map { $0.inserted(into: octets) } ?? octets
    }

    private static func octets(of part: Part, _ value: (Variable) -> Int64?) -> [UInt8]? {
        switch part {
        case .octets(let fixed): return fixed
        case .number(let variable, let plus, let width, let isBigEndian):
            guard let (number, overflow) = value(variable)?.addingReportingOverflow(plus), !overflow,
                (1...7).contains(width), (0..<1 << Int64(8 * width)).contains(number)
            else { return nil }
            let bytes = (0..<width).map { UInt8(truncatingIfNeeded: number >> Int64(8 * $0)) }
            return isBigEndian ? bytes.reversed() : bytes
        }
    }

    /// Returns the template with the values of options in place of their names.
    package func resolved(_ option: (String) -> Int64?) -> WriteTemplate {
        var resolved = self
        resolved.parts = parts.map { part in
            guard case .number(.option, _, _, _) = part else { return part }
            let octets = Self.octets(of: part) { if case .option(let name) = $0 { option(name) } else { nil } }
            return octets.map { .octets($0) } ?? part
        }
        return resolved.completed
    }

    /// The template, as fixed bytes if it has no numbers.
    package var completed: WriteTemplate {
        guard variables.isEmpty, let octets = octets({ _ in nil }) else { return self }
        return WriteTemplate(octets)
    }
}

extension WriteTemplate: ExpressibleByArrayLiteral {
    public init(arrayLiteral elements: UInt8...) {
        self.init(elements)
    }
}

extension WriteTemplate: CustomStringConvertible {
    /// The text form, for example `820400 {index:u16le}`.
    public var description: String {
        let words = parts.map { part in
            switch part {
            case .octets(let fixed): return Hexadecimal.text(fixed.span)
            case .number(let variable, let plus, let width, let isBigEndian):
                let sum = plus == 0 ? "\(variable)" : "\(variable)\(plus < 0 ? "" : "+")\(plus)"
                return "{\(sum):u\(8 * width)\(width == 1 ? "" : isBigEndian ? "be" : "le")}"
            }
        }
        return words.joined(separator: " ") + (checksum == nil ? "" : " and a checksum")
    }
}

extension WriteTemplate.Variable: CustomStringConvertible {
    public var description: String {
        switch self {
        case .next: "next"
        case .index: "index"
        case .since: "since"
        case .time(let unit): unit.rawValue
        case .option(let name): name
        }
    }
}
