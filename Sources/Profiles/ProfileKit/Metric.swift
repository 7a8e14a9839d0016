/// What a metric's numbers mean over time.
public enum MetricKind: UInt32, Sendable, CaseIterable {
    /// A quantity that goes up and down.
    case gauge
    /// A count that only grows, until it wraps or is reset.
    case counter
    /// One of a few labels, or on and off.
    case state
    /// Something that happened.
    case event
}

/// What a profile says once about one quantity.
public struct Metric: Hashable, Sendable {
    /// `snake_case`.
    public let name: String
    /// The unit's symbol, for example `bpm`; `nil` for a bare number.
    public let unit: String?
    public let kind: MetricKind
    /// One payload may give it several times.
    public let isRepeated: Bool
    /// After how many bits, 1 to 64, a counter starts again at 0; `nil` when it does not, or that is not known.
    public let wraps: Int?

    public init(
        _ name: String,
        unit: String? = nil,
        kind: MetricKind = .gauge,
        isRepeated: Bool = false,
        wraps: Int? = nil
    ) {
        self.name = name
        self.unit = unit
        self.kind = kind
        self.isRepeated = isRepeated
        self.wraps = wraps
    }
}

/// The metrics of one characteristic: an `enum` with raw type `Int`, one case each, numbered from 0 as Swift does.
public protocol MetricSet: RawRepresentable, CaseIterable, Sendable where RawValue == Int {
    var metric: Metric { get }
}
