import CGattherdProfile

/// A metric of a stream.
public struct Metric: Hashable, Sendable {
    /// The meaning of a metric's values over time.
    public enum Kind: UInt32, Sendable, CaseIterable {
        /// A quantity that rises and falls.
        case gauge
        /// A count that only grows, until it wraps or is reset.
        case counter
        /// A label, or on and off.
        case state
        /// An occurrence, such as a button press.
        case event
    }

    /// The name in `snake_case`.
    public let name: String
    /// The unit's symbol, for example `bpm`; `nil` for a bare number.
    public let unit: String?
    public let kind: Kind
    /// True if one payload may have several values.
    public let isRepeated: Bool
    /// True if all values are Booleans, or unknown.
    public let isBoolean: Bool
    /// The width, 1 to 64 bits, of a counter that wraps; `nil` if unknown or never.
    public let wraps: Int?

    public init(
        _ name: String,
        unit: String? = nil,
        kind: Kind = .gauge,
        isRepeated: Bool = false,
        isBoolean: Bool = false,
        wraps: Int? = nil
    ) {
        self.name = name
        self.unit = unit
        self.kind = kind
        self.isRepeated = isRepeated
        self.isBoolean = isBoolean
        self.wraps = wraps
    }
}

/// The metrics of a characteristic: an `enum` with raw type `Int`, with one case per metric, numbered from 0.
public protocol MetricSet: RawRepresentable, CaseIterable, Sendable where RawValue == Int {
    var metric: Metric { get }
}

extension Metric {
    func table(in memory: inout TableMemory) -> UnsafePointer<gattherd_metric>? {
        unsafe memory.value(
            gattherd_metric(
                struct_size: UInt32(MemoryLayout<gattherd_metric>.size),
                kind: kind.rawValue,
                flags: (isRepeated ? GATTHERD_METRIC_REPEATED : 0) | (isBoolean ? GATTHERD_METRIC_BOOLEAN : 0),
                reserved: 0,
                name: memory.text(name),
                unit: memory.text(unit),
                wrap_bits: UInt32(clamping: wraps ?? 0),
                reserved_1: 0
            )
        )
    }
}
