public import GattherdModel

/// A selection of history; `nil` means all.
public struct HistoryQuery: Hashable, Sendable {
    /// The device's slug.
    public var device: String?
    public var metric: String?
    /// The first instant.
    public var since: Timestamp?
    /// The first instant after the selection.
    public var until: Timestamp?

    public init(
        device: String? = nil,
        metric: String? = nil,
        since: Timestamp? = nil,
        until: Timestamp? = nil
    ) {
        self.device = device
        self.metric = metric
        self.since = since
        self.until = until
    }
}

extension HistoryQuery {
    /// The instants, in microseconds since 1970.
    var times: Range<Int64> {
        let start = since?.microseconds ?? .min
        return start..<max(start, until?.microseconds ?? .max)
    }

    func asks(for device: String, _ metric: String) -> Bool {
        self.device ?? device == device && self.metric ?? metric == metric
    }
}
