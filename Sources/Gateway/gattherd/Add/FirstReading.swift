import GattherdConfig
import GattherdDaemon
import GattherdGateway
import GattherdHistory
import GattherdModel
import Glibc

/// The wait for the first values of a new device.
struct FirstReading {
    private static let interval = Duration.milliseconds(250)
    /// The time that is waited for further metrics: those of other streams are committed later.
    private static let settlingTime = Duration.seconds(1)

    let device: String
    let configuration: Configuration
    let limit: Duration

    /// Shows the state of the device until it has values, and no further metrics arrive.
    ///
    /// - Returns: The values, as lines.
    /// - Throws: ``CommandFailure`` if there are none within the limit.
    func wait() async throws(CommandFailure) -> [String] {
        var progress = StateLine()
        defer { progress.finish() }
        let start = ContinuousClock.now
        var last: DaemonStatus.Device?
        var shown: [String] = []
        var settling = SettlingCount(time: Self.settlingTime + configuration.history.commitInterval)
        while ContinuousClock.now - start < limit {
            if case .status(let status)? = try? await ControlClient.reply(to: .status, at: path) {
                last = status.devices.first { $0.device == device } ?? last
            }
            if let last, last.readings > 0 {
                shown = values
                if settling.isSettled(shown.count, at: .now) { return shown }
            }
            let words = last.map { LinkState(rawValue: $0.state)?.words ?? $0.state } ?? "not yet known to the daemon"
            progress.show(words, ContinuousClock.now - start, of: limit)
            guard (try? await Task.sleep(for: Self.interval)) != nil else { break }
        }
        guard shown.isEmpty else { return shown }
        throw failure(last)
    }

    private var path: String { configuration.controlSocketPath }

    /// The newest values, one line for each metric.
    private var values: [String] {
        let rows = (try? HistoryReader(path: configuration.history.path.value).latest(device: device)) ?? []
        let known = rows.filter { $0.value != .null }
        let names = known.map { row in
            let isShared = known.contains {
                $0.series.metric == row.series.metric && $0.series.stream != row.series.stream
            }
            return isShared ? "\(row.series.stream)/\(row.series.metric)" : row.series.metric
        }
        let width = names.map(\.count).max() ?? 0
        return zip(names, known).map { name, row in
            let unit = row.series.unit.map { " \($0)" } ?? ""
            return Terminal.harmless("  \(name.padded(to: width))  \(RowPrinter.text(row.value))\(unit)")
        }
    }

    private func failure(_ last: DaemonStatus.Device?) -> CommandFailure {
        let rejects = last.map { $0.rejects > 0 ? "; payloads are rejected: gattherd rejects --device \(device)" : "" }
        let time = RelativeTime.length(limit)
        return CommandFailure(
            .unavailable,
            "gattherd: '\(device)' is configured, but no value came within \(time)\(rejects ?? ""); "
                + "see: gattherd why \(device)"
        )
    }
}

/// The state of a device on one line of a terminal, or one line for each state elsewhere.
private struct StateLine {
    private let isTerminal = isatty(STDERR_FILENO) == 1
    private var last: String?

    mutating func show(_ words: String, _ time: Duration, of limit: Duration) {
        if isTerminal {
            let clock = "\(RelativeTime.length(time)) of \(RelativeTime.length(limit))"
            Terminal.replaceLine("waiting for the first value: \(Terminal.harmless(words)), \(clock)")
        } else if words != last {
            Terminal.printError("waiting for the first value: \(Terminal.harmless(words))")
        }
        last = words
    }

    mutating func finish() {
        if isTerminal, last != nil { Terminal.replaceLine("") }
    }
}
