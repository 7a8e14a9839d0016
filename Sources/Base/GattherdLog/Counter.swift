import Synchronization

/// A growing number.
///
/// Any thread may add to it, including C callbacks.
public final class Counter: Sendable {
    /// The name in `snake_case` with unit and `_total`, for example `payloads_dropped_total`.
    public let name: String
    /// The explanation for people: a sentence without a full stop.
    public let help: String
    private let count = Atomic<UInt64>(0)

    public init(_ name: StaticString, _ help: StaticString) {
        self.name = "\(name)"
        self.help = "\(help)"
    }

    public func add(_ amount: UInt64 = 1) {
        count.wrappingAdd(amount, ordering: .relaxed)
    }

    public var value: UInt64 { count.load(ordering: .relaxed) }
}

/// An output with counters of its own, which the metrics show with its name.
public protocol Counting: Sendable {
    /// All counters; callable from any thread.
    var allCounters: [Counter] { get }
}
