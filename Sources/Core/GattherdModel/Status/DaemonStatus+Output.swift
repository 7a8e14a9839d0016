extension DaemonStatus.Output {
    /// The age in seconds of the oldest waiting entry from which an output is behind.
    public static let longestLag = 120.0

    /// Creates the state of an output without entries.
    public init(_ name: String, kind: String? = nil, state: OutputStatus.State, target: String) {
        self.name = name
        self.kind = kind ?? name
        self.state = state.rawValue
        self.target = target
        (backlog, lag) = (0, 0)
        (delivered, skipped, errors) = (0, 0, 0)
    }

    /// True unless the last attempt failed, no attempt has succeeded yet, or the output ends.
    public var isUp: Bool {
        state == OutputStatus.State.connected.rawValue || state == OutputStatus.State.idle.rawValue
    }

    /// True if the oldest waiting entry is older than ``longestLag``.
    public var isBehind: Bool { lag.map { $0 > Self.longestLag } ?? false }

    /// The reason why the output is down or behind, in a few words; `nil` for a good output.
    public var problem: String? {
        if !isUp { return error ?? state }
        guard isBehind, let lag else { return nil }
        return "\(Int64(min(lag, 1e15))) s behind, with a backlog of \(backlog)" + (error.map { ": \($0)" } ?? "")
    }
}

extension Output {
    /// Returns the current state for the status of the daemon.
    public func summary(at now: Timestamp) -> DaemonStatus.Output {
        let status = status
        var summary = DaemonStatus.Output(name, kind: kind, state: status.state, target: status.target)
        (summary.backlog, summary.lag) = (status.backlog, status.lag(now))
        (summary.delivered, summary.skipped, summary.errors) = (status.delivered, status.skipped, status.errors)
        summary.error = status.problem
        summary.nextTry = status.nextTry?.rfc3339
        return summary
    }
}

extension OutputStatus {
    /// Returns the age of the oldest waiting entry in seconds; `nil` if it is not known.
    fileprivate func lag(_ now: Timestamp) -> Double? {
        guard backlog > 0 else { return 0 }
        guard let waitingSince else { return nil }
        let milliseconds = (Double(now.microseconds) - Double(waitingSince.microseconds)) / 1000
        return max(0, milliseconds.rounded(.down)) / 1000
    }
}

extension JSONWriter {
    /// Writes the state of an output in the form of the MQTT request `health`.
    package mutating func output(_ output: DaemonStatus.Output) {
        beginObject()
        for (name, text) in [("name", output.name), ("state", output.state)] {
            key(name)
            string(text)
        }
        key("backlog")
        integer(output.backlog)
        key("lag")
        optional(output.lag) { $0.real($1) }
        key("behind")
        boolean(output.isBehind)
        key("error")
        optional(output.error) { $0.string($1) }
        endObject()
    }
}
