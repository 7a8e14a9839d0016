import GattherdYAML

/// Reads `scale`, `offset`, `clamp` and `range`.
enum ScaleReader {
    /// Returns `nil` after a reported error.
    static func scale(_ field: MappingReader) -> Scale? {
        let scale = field.has("scale") ? field.value("scale", .number) : .one
        let offset = field.has("offset") ? field.value("offset", .number) : .zero
        guard let scale, let offset else { return nil }
        guard let both = Scale(scale: scale, offset: offset) else {
            field.report("scale and offset must be fractions of less than 53 bits, and the scale not 0", at: "scale")
            return nil
        }
        return both
    }

    /// Reads `[lowest, highest]`, in the unit of the value.
    static func range(_ field: MappingReader, _ key: String) -> ClosedRange<Double>? {
        guard let node = field.node(key) else { return nil }
        guard let elements = node.elements, elements.count == 2 else {
            field.findings.report("a \(key) is a list of two bounds, such as [0, 100]", at: node.position)
            return nil
        }
        let grammar = ProfileGrammar<Rational>.number
        guard let low = grammar.read(elements[0], field.findings), let high = grammar.read(elements[1], field.findings)
        else { return nil }
        guard low.value <= high.value else {
            field.findings.report("the lower bound comes first", at: node.position)
            return nil
        }
        return low.value...high.value
    }
}

/// Reads `enum` and `set`.
enum LabelReader {
    private static let maximumLabels = 256

    /// Reads raw values or bits and their labels, in the order of the text; `nil` if absent.
    static func labels(
        _ field: MappingReader,
        _ key: String,
        _ isWhole: Bool,
        _ range: ClosedRange<Int64>?
    ) -> [Conversion.Label]? {
        guard let node = field.node(key) else { return nil }
        guard let members = node.members, !members.isEmpty, members.count <= maximumLabels else {
            let (what, example) =
                key == "enum" ? ("raw values", "{0: off, 1: on}") : ("bits", "{0: moved, 1: too loose}")
            field.findings.report(
                "labels are a mapping of 1 to \(maximumLabels) \(what), such as \(example)",
                at: node.position
            )
            return []
        }
        if !isWhole { field.report("'\(key)' is for integers", at: key) }
        let grammar = ProfileGrammar<Int64>.integer(range ?? .min ... .max)
        var seen: Set<Int64> = []
        return members.compactMap { member in
            let raw = grammar.read(member.key, field.findings)
            let label = ProfileGrammar<String>.words.read(member.value, field.findings)
            guard let raw, let label else { return nil }
            if !seen.insert(raw).inserted {
                field.findings.report("\(raw) has a label already", at: member.key.position)
            }
            return Conversion.Label(raw: raw, text: label)
        }
    }
}

/// Reads `unknown`.
enum UnknownReader {
    /// Reads the bits of raw values that mean unknown, with their reasons.
    ///
    /// `type` is `nil` for a source without bytes. `signedBits` is the width of a signed field or bit range.
    static func patterns(_ field: MappingReader, type: FieldType?, signedBits: Int?) -> [Conversion.Unknown] {
        guard let node = field.node("unknown") else { return [] }
        if let members = node.members {
            return members.compactMap { member in
                let reason = ProfileGrammar<String>.words.read(member.value, field.findings)
                let pattern = pattern(member.key, type, signedBits, field.findings)
                guard let pattern, let reason else { return nil }
                return Conversion.Unknown(pattern: pattern, reason: reason)
            }
        }
        return (node.elements ?? [node]).compactMap { element in
            pattern(element, type, signedBits, field.findings).map { Conversion.Unknown(pattern: $0, reason: nil) }
        }
    }

    private static func pattern(
        _ node: YAMLNode,
        _ type: FieldType?,
        _ signedBits: Int?,
        _ findings: ProfileFindings
    ) -> UInt64? {
        if let signedBits { return pattern(node, signedBits: signedBits, findings) }
        let bits = Int64(8 * min(8, type?.width ?? 8))
        let mask: UInt64 = bits == 64 ? .max : (1 << UInt64(bits)) - 1
        if bits == 64, let text = node.text, text.hasPrefix("0x"), let all = UInt64(text.dropFirst(2), radix: 16) {
            return all
        }
        let lowest = type.map { $0.integerRange?.lowerBound ?? 0 } ?? .min
        let highest = bits == 64 ? Int64.max : Int64(mask)
        guard let raw = ProfileGrammar<Int64>.integer(lowest...highest).read(node, findings) else { return nil }
        return UInt64(bitPattern: raw) & mask
    }

    private static func pattern(_ node: YAMLNode, signedBits: Int, _ findings: ProfileFindings) -> UInt64? {
        let shift = Int64(64 - signedBits)
        let range = Int64.min >> shift...Int64.max >> (shift - 1)
        return ProfileGrammar<Int64>.integer(range).read(node, findings).map {
            UInt64(bitPattern: ($0 << shift) >> shift)
        }
    }
}

/// Reads `is`.
enum ExpectedReader {
    /// Reads the allowed raw values.
    static func numbers(_ field: MappingReader, _ range: ClosedRange<Int64>) -> [Int64] {
        guard let node = field.node("is") else { return [] }
        let grammar = ProfileGrammar<Int64>.integer(range)
        return (node.elements ?? [node]).compactMap { grammar.read($0, field.findings) }
    }
}
