import GattherdGateway
import GattherdHistory
import GattherdModel
import Glibc

/// Findings about the outputs: their state, and the entries that they skipped.
struct OutputCheck {
    /// The age of the oldest gap that is reported.
    private static let memory = Duration.seconds(7 * 86_400)
    private static let limit = 500

    private let outputs: [DaemonStatus.Output]
    private let events: [LifecycleEvent]
    private let now: Timestamp

    /// - Parameters:
    ///   - outputs: The outputs of the running daemon.
    ///   - events: The events of the kind `output`, oldest first.
    ///   - now: The current time.
    init(_ outputs: [DaemonStatus.Output], _ events: [LifecycleEvent], now: Timestamp) {
        self.outputs = outputs
        self.events = events
        self.now = now
    }

    /// Returns the newest events about outputs in a history; none if it cannot be read.
    static func events(in path: String) -> [LifecycleEvent] {
        guard unsafe access(path, R_OK) == 0 else { return [] }
        return (try? HistoryReader(path: path).events(kinds: ["output"], newest: limit)) ?? []
    }

    var findings: [DoctorFinding] { outputs.map(state) + outputs.compactMap(gaps) }

    private func state(_ output: DaemonStatus.Output) -> DoctorFinding {
        if let problem = output.problem(now: now) {
            let severity = output.isUp || output.error == nil ? DoctorFinding.Severity.warning : .error
            return DoctorFinding("output", severity, problem, remedy: output.remedy)
        }
        let text = "'\(output.name)' delivers to \(output.target)"
        guard let error = output.error else { return .good("output", text) }
        return DoctorFinding("output", .note, "\(text): \(error)")
    }

    /// Returns the finding about the entries that an output skipped in the last seven days.
    private func gaps(_ output: DaemonStatus.Output) -> DoctorFinding? {
        let gaps = events.compactMap { OutputGap($0) }.filter { gap in
            gap.output == output.name && gap.time > now.advanced(by: .zero - Self.memory)
        }
        guard let last = gaps.last else { return nil }
        let entries = gaps.reduce(Int64(0)) { $0.addingReportingOverflow($1.entries).partialValue }
        let place = gaps.count == 1 ? "at" : "in \(gaps.count) gaps, the last at"
        let text = "'\(output.name)' skipped \(OutputGap.words(entries)) \(place) \(last.time.rfc3339): \(last.words)"
        return DoctorFinding("output", .warning, text, remedy: last.remedy)
    }
}

/// A gap in the entries that an output delivers.
struct OutputGap: Hashable {
    let time: Timestamp
    let output: String
    /// The skipped entries have higher numbers than this, up to and including ``through``; `nil` if they are not
    /// consecutive.
    let after: Int64?
    let through: Int64
    let entries: Int64
    let reason: String?

    /// Reads a gap from an event; `nil` for other events.
    init?(_ event: LifecycleEvent) {
        guard event.kind == "output" else { return nil }
        let detail = EventDetail(event)
        guard let output = detail.output, let through = detail.through ?? detail.seq else { return nil }
        time = event.time
        self.output = output
        (after, self.through) = (detail.after, through)
        entries = max(1, detail.entries ?? detail.count ?? 1)
        reason = detail.reason ?? detail.error
    }

    /// The place of the gap and its reason.
    var words: String {
        let first = after.map { $0.addingReportingOverflow(1).partialValue } ?? through
        let place =
            through > first ? "seq \(first) to \(through)" : "\(entries > 1 ? "the last with " : "")seq \(through)"
        return place + (reason.map { ": \($0)" } ?? "")
    }

    var remedy: String {
        let range = after.map { "seq > \($0) AND seq <= \(through)" } ?? "seq = \(through)"
        return "history has them until they are deleted by age or size: SELECT * FROM history WHERE \(range)"
    }

    /// Returns a number of entries in words.
    static func words(_ entries: Int64) -> String { entries == 1 ? "1 entry" : "\(entries) entries" }
}

extension DaemonStatus.Output {
    /// Returns the problem and its start; `nil` for an output that is up and not behind.
    func problem(now: Timestamp) -> String? {
        guard problem != nil else { return nil }
        let waiting = backlog > 0 ? "\(OutputGap.words(backlog)) \(backlog == 1 ? "waits" : "wait")" : nil
        let since = waiting == nil ? nil : lagWords.map { "the oldest for \($0)" }
        let next = nextTry.flatMap { RelativeTime.ahead($0, now) }.map { "next try \($0)" }
        let parts = [waiting, since, next].compactMap(\.self).joined(separator: ", ")
        let state = isUp ? "is behind in delivering to \(target)" : "does not deliver to \(target)"
        let cause = error ?? (isUp ? nil : DisplayWords.output(self.state))
        let text = "'\(name)' \(state)" + (cause.map { ": \($0)" } ?? "")
        return parts.isEmpty ? text : "\(text); \(parts)"
    }

    /// The remedy for a ``problem(now:)``.
    var remedy: String {
        isUp
            ? "it catches up if the receiver accepts more than arrives: compare 'gattherd status --watch'"
            : "correct the receiver, or the section '\(name)' of the configuration; waiting entries are delivered then"
    }
}
