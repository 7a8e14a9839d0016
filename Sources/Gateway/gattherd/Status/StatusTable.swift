import GattherdGateway
import GattherdModel

/// The status at one moment, and the rates since the moment before.
struct StatusSample {
    let status: DaemonStatus
    let time: Timestamp
    /// Readings per second by device since the sample before; empty for the first sample.
    private(set) var rates: [String: Double] = [:]

    init(_ status: DaemonStatus, at time: Timestamp = SystemClock.now) {
        self.status = status
        self.time = time
    }

    init(_ status: DaemonStatus, at time: Timestamp = SystemClock.now, after before: StatusSample) {
        self.init(status, at: time)
        let seconds = (time - before.time) / .seconds(1)
        guard seconds > 0, status.started == before.status.started else { return }
        let counts = Dictionary(before.status.devices.map { ($0.device, $0.readings) }) { $1 }
        for device in status.devices {
            guard let count = counts[device.device], device.readings >= count else { continue }
            rates[device.device] = Double(device.readings - count) / seconds
        }
    }
}

extension DaemonStatus.Device {
    /// The streams without a decodable payload, and the remedy; `nil` if there are none.
    var decodingAdvice: String? {
        undecodable.map {
            "all payloads are rejected: \($0.joined(separator: "; ")); \(Self.decodingRemedy(for: device))"
        }
    }

    static func decodingRemedy(for device: String) -> String {
        "firmware of another format? see: gattherd rejects --device \(device)"
    }
}

/// The status as text.
struct StatusTable {
    /// One line and its importance.
    struct Line: Equatable {
        enum Style {
            case plain
            case heading
            case dimmed
            case warning
            case bad
        }

        var text: String
        var style = Style.plain
    }

    private let sample: StatusSample
    private let file: String
    private var status: DaemonStatus { sample.status }

    /// - Parameters:
    ///   - sample: The status.
    ///   - file: The path of the configuration that led to the daemon.
    init(_ sample: StatusSample, file: String = ConfigurationFile.standardPath) {
        self.sample = sample
        self.file = file
    }

    var lines: [Line] {
        let started = RelativeTime.ago(status.started, sample.time) ?? status.started
        var lines = [
            Line(text: "gateway \(status.gateway), gattherd \(status.version), started \(started)", style: .heading)
        ]
        lines += configuration
        lines += status.adapters.map(adapter)
        if status.adapters.isEmpty {
            let advice = "no adapter, or no bluetoothd: gattherd doctor says why"
            lines.append(Line(text: "bluetooth  \(advice)", style: .bad))
        }
        lines += status.outputs.map(output)
        lines += history(status.history)
        lines += (status.alerts ?? []).map(alert)
        if status.dropped > 0 {
            lines.append(Line(text: "dropped    \(status.dropped) values: history does not keep up", style: .warning))
        }
        let problems = status.devices.compactMap { device in device.decodingAdvice.map { "\(device.device): \($0)" } }
        return lines + [Line(text: "")] + devices + downloads + problems.map { Line(text: $0, style: .warning) }
    }

    /// The downloads of stored records that run or did not succeed.
    private var downloads: [Line] {
        status.devices.flatMap { device in
            (device.records ?? []).filter { $0.state != "complete" }.map { download in
                let text = "\(device.device): stored records of \(download.stream): \(download.words)"
                return Line(text: text, style: download.state == "failed" ? .warning : .plain)
            }
        }
    }

    private var configuration: [Line] {
        guard let configuration = status.configuration else { return [] }
        var lines: [Line] = []
        if !configuration.restartNeeded.isEmpty {
            let sections = DisplayWords.list(configuration.restartNeeded)
            let text = "config     changes of \(sections) wait for a restart: systemctl restart gattherd"
            lines.append(Line(text: text, style: .warning))
        }
        if let error = configuration.error {
            // A check would read the files that hang.
            let advice = configuration.unread == true ? "" : "; run: gattherd check \(file)"
            let text = "config     the configuration was not reloaded: \(error)\(advice)"
            lines.append(Line(text: text, style: .bad))
        }
        return lines
    }

    private var devices: [Line] {
        guard !status.devices.isEmpty else {
            return [Line(text: "no devices: \(DisplayWords.firstStep)", style: .warning)]
        }
        let texts = TextTable(header, status.devices.map(row)).lines
        let styles = [Line.Style.heading] + status.devices.map { $0.isStalled ? .warning : Line.Style(state: $0.state) }
        return zip(texts, styles).map { Line(text: $0, style: $1) }
    }

    /// The column titles; the adapter is left out if there is only one.
    private var header: [String] {
        let adapter = status.adapters.count > 1 ? ["ADAPTER"] : []
        let rate = sample.rates.isEmpty ? [] : ["PER S"]
        return ["DEVICE", "STATE", "FOR"] + adapter + ["READINGS"] + rate + ["REJECTS", "LAST", "NEXT TRY", "REASON"]
    }

    private func adapter(_ adapter: DaemonStatus.Adapter) -> Line {
        let count = "\(adapter.links)\(adapter.slots.map { " of \($0)" } ?? "")"
        let links = count == "1" ? "1 link" : "\(count) links"
        let parts = [
            adapter.powered ? "on" : "off", links, waiting(for: adapter),
            adapter.connecting > 0 ? "\(adapter.connecting) connecting" : nil,
            adapter.discovering ? "scanning" : nil,
            adapter.lastRecovery.map { "last remedy: \(DisplayWords.step($0))" },
        ]
        let words = parts.compactMap(\.self).joined(separator: ", ")
        let text = "adapter    \(adapter.address) (\(adapter.name)) \(words)"
        return Line(text: text, style: !adapter.powered ? .bad : adapter.isCrowded ? .warning : .plain)
    }

    private func waiting(for adapter: DaemonStatus.Adapter) -> String? {
        guard let count = adapter.waiting, count > 0 else { return nil }
        return count == 1 ? "1 device waits for a free slot" : "\(count) devices wait for a free slot"
    }

    private func alert(_ alert: ActiveAlert) -> Line {
        let since = RelativeTime.ago(alert.since, sample.time) ?? alert.since
        return Line(text: "alert      \(alert.alert) of \(alert.device): \(alert.detail), \(since)", style: .bad)
    }

    private func history(_ history: DaemonStatus.History) -> [Line] {
        let size = mebibytes(history.size)
        var lines = [Line(text: "history    \(history.path), \(size), newest seq \(history.seq)")]
        if let error = history.error {
            lines.append(Line(text: "           cannot be written: \(error)", style: .bad))
        }
        if let clock = history.clock { lines.append(Line(text: "           \(clock)", style: .warning)) }
        if history.lost == true {
            let text = "the file was missing or empty at the start; 'gattherd db restore FILE' brings a backup back"
            lines.append(Line(text: "           \(text)", style: .bad))
        }
        for (count, words) in [
            (history.unstored, "delivered, but not stored"), (history.undelivered, "deleted before delivery"),
        ] where count > 0 {
            let readings = count == 1 ? "1 reading" : "\(count) readings"
            lines.append(Line(text: "           \(readings) \(words)", style: .warning))
        }
        return lines
    }

    private func output(_ output: DaemonStatus.Output) -> Line {
        let state = DisplayWords.output(output.state) + (output.error.map { ": \($0)" } ?? "")
        let next = output.nextTry.flatMap { RelativeTime.ahead($0, sample.time) }.map { "next try \($0)" }
        let parts = [
            state, next, "backlog \(output.backlog)", output.lagWords.map { "lag \($0)" },
            "delivered \(output.delivered)", output.skipped > 0 ? "skipped \(output.skipped)" : nil,
        ]
        let words = parts.compactMap(\.self).joined(separator: ", ")
        let isGood = output.problem == nil && output.skipped == 0
        return Line(text: "\(output.name.padded(to: 10)) \(output.target) \(words)", style: isGood ? .plain : .warning)
    }

    private func row(_ device: DaemonStatus.Device) -> [String] {
        // The state `held` already says that the device was disconnected on request.
        let cause = device.state == LinkState.held.rawValue ? nil : device.reason.map { DisplayWords.reason($0) }
        let attempt = countsAttempts(device) ? "(attempt \(device.attempt))" : ""
        let reason = [cause, device.detail].compactMap(\.self).joined(separator: ": ")
        let attempts = [reason, attempt].filter { !$0.isEmpty }.joined(separator: " ")
        let name = status.adapters.first { $0.address == device.adapter }?.name ?? "-"
        let adapter = status.adapters.count > 1 ? [name] : []
        let rate = sample.rates.isEmpty ? [] : [sample.rates[device.device].map(tenths) ?? "-"]
        return [device.device, DisplayWords.state(device.state), RelativeTime.since(device.since, sample.time) ?? "-"]
            + adapter
            + ["\(device.readings)"] + rate + [
                "\(device.rejects)", device.lastReading.flatMap { RelativeTime.ago($0, sample.time) } ?? "-",
                device.nextRetry.flatMap { RelativeTime.ahead($0, sample.time) } ?? "-", attempts,
            ]
    }

    /// True if the number of attempts is shown: from the second attempt of a link that is being made.
    private func countsAttempts(_ device: DaemonStatus.Device) -> Bool {
        switch LinkState(rawValue: device.state) {
        case .connecting, .discovering, .preparing, .backingOff, .failed, nil: device.attempt > 1
        case .waiting, .ready, .disconnecting, .disconnected, .held: false
        }
    }

    private func tenths(_ rate: Double) -> String {
        let count = Int64(min(rate * 10, 1e15).rounded())
        return "\(count / 10).\(count % 10)"
    }
}

extension StatusTable.Line.Style {
    fileprivate init(state: String) {
        switch LinkState(rawValue: state) {
        case .ready, nil: self = .plain
        case .failed: self = .bad
        case .backingOff, .disconnected: self = .warning
        case .waiting, .connecting, .discovering, .preparing, .disconnecting, .held: self = .dimmed
        }
    }
}
