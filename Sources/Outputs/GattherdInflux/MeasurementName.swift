public import GattherdModel

/// The rule that names the measurement of a stream's points: text with placeholders.
public struct MeasurementName: Hashable, Sendable {
    private enum Part: Hashable, Sendable {
        case text(String)
        case placeholder(Placeholder)
    }

    private enum Placeholder: String, Hashable, Sendable {
        case device, profile, stream
    }

    /// The name of the stream.
    public static let stream = MeasurementName([.placeholder(.stream)])

    private let parts: [Part]

    private init(_ parts: [Part]) {
        self.parts = parts
    }

    /// Parses for example `ble_{stream}`; `nil` if it is empty, too long, or has another placeholder than `{device}`,
    /// `{profile}` and `{stream}`.
    ///
    /// InfluxDB keeps names that begin with `_` for itself.
    public init?(_ text: String) {
        guard (1...256).contains(text.utf8.count), !text.hasPrefix("_") else { return nil }
        guard text.unicodeScalars.allSatisfy({ $0.value >= 0x20 && $0.value != 0x7F }) else { return nil }
        var (parts, rest) = ([Part](), text[...])
        while let first = rest.first {
            let literal = rest.prefix { $0 != "{" && $0 != "}" }
            rest = rest[literal.endIndex...]
            if !literal.isEmpty { parts.append(.text(String(literal))) }
            guard first == "{" || !rest.isEmpty else { break }
            guard let placeholder = Self.placeholder(&rest) else { return nil }
            parts.append(.placeholder(placeholder))
        }
        self.init(parts)
    }

    private static func placeholder(_ rest: inout Substring) -> Placeholder? {
        guard rest.popFirst() == "{", let end = rest.firstIndex(of: "}") else { return nil }
        defer { rest = rest[rest.index(after: end)...] }
        return Placeholder(rawValue: String(rest[..<end]))
    }

    /// True if the names of different streams may be equal: a tag must distinguish them.
    var needsStreamTag: Bool { !parts.contains(.placeholder(.stream)) }

    /// The measurement of a stream.
    public func name(for stream: StreamDefinition) -> String {
        parts.reduce(into: "") { name, part in
            switch part {
            case .text(let text): name += text
            case .placeholder(.device): name += stream.device
            case .placeholder(.profile): name += stream.profile
            case .placeholder(.stream): name += stream.stream
            }
        }
    }
}
