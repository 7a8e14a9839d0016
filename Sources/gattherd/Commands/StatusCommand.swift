import FoundationEssentials
import GattherdDaemon
import GattherdModel

extension CommandSpec {
    static let status = CommandSpec(
        name: "status",
        summary: "show adapters, devices and their links, the broker and the backlog",
        options: [
            ConfigurationFile.option,
            .flag("json", "print one JSON object"),
            .flag("watch", "print again every second until Ctrl-C"),
        ],
        run: { (arguments) async throws(Failure) in try await StatusCommand(arguments).run() }
    )
}

/// Asks the running daemon how it is.
struct StatusCommand {
    private let talk: DaemonTalk
    private let isJSON: Bool
    private let isWatching: Bool

    init(_ arguments: Arguments) throws(Failure) {
        talk = try DaemonTalk(arguments)
        isJSON = arguments.has("json")
        isWatching = arguments.has("watch")
    }

    func run() async throws(Failure) {
        repeat {
            guard case .status(let status) = try talk.ask(.status) else { return }
            let text = try isJSON ? json(status) : StatusTable(status).text
            // Clears the screen where a person watches.
            Console.say(isWatching && !isJSON ? "\u{1B}[H\u{1B}[2J" + text : text)
            if isWatching { try? await Task.sleep(for: .seconds(1)) }
        } while isWatching
    }

    private func json(_ status: DaemonStatus) throws(Failure) -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(status) else { throw Failure(.software, "gattherd: no JSON") }
        return String(decoding: data, as: UTF8.self)
    }
}

/// A status for people.
struct StatusTable {
    private let status: DaemonStatus

    init(_ status: DaemonStatus) {
        self.status = status
    }

    var text: String {
        var lines = ["gateway \(status.gateway), gattherd \(status.version), since \(short(status.started))"]
        lines += status.adapters.map(adapter)
        if status.adapters.isEmpty { lines.append("bluetooth  no adapter, or no bluetoothd") }
        if let delivery = status.delivery { lines.append(broker(delivery)) }
        lines += history(status.history)
        if status.dropped > 0 { lines.append("dropped    \(status.dropped) values: history does not keep up") }
        return (lines + [""] + Table(header, status.devices.map(row)).lines).joined(separator: "\n")
    }

    /// Which adapter serves a device matters only where there are several.
    private var header: [String] {
        let adapter = status.adapters.count > 1 ? ["ADAPTER"] : []
        return ["DEVICE", "STATE", "SINCE"] + adapter + ["READINGS", "REJECTS", "LAST", "NEXT TRY", "REASON"]
    }

    private func adapter(_ adapter: DaemonStatus.Adapter) -> String {
        let links = "\(adapter.links)\(adapter.slots.map { " of \($0)" } ?? "") links"
        let parts = [
            adapter.powered ? "on" : "off", links, adapter.connecting > 0 ? "\(adapter.connecting) connecting" : nil,
            adapter.discovering ? "scanning" : nil, adapter.lastRecovery.map { "last remedy: \($0)" },
        ]
        let words = parts.compactMap(\.self).joined(separator: ", ")
        return "adapter    \(adapter.address) (\(adapter.name)) \(words)"
    }

    private func history(_ history: DaemonStatus.History) -> [String] {
        let size = mebibytes(history.size)
        var lines = ["history    \(history.path), \(size), newest seq \(history.seq)"]
        if let error = history.error { lines.append("           cannot be written: \(error)") }
        if history.unstored > 0 { lines.append("           \(history.unstored) readings delivered, but not stored") }
        if history.undelivered > 0 { lines.append("           \(history.undelivered) readings given up undelivered") }
        return lines
    }

    private func broker(_ delivery: DaemonStatus.Delivery) -> String {
        let error = delivery.error.map { ": \($0)" } ?? ""
        let counts = "backlog \(delivery.backlog), published \(delivery.published)"
        return "broker     \(delivery.broker) \(delivery.state)\(error), \(counts)"
    }

    private func row(_ device: DaemonStatus.Device) -> [String] {
        let reason = [device.reason, device.detail].compactMap { $0 }.joined(separator: ": ")
        let attempts = device.attempt > 0 ? "\(reason) (attempt \(device.attempt))" : reason
        let name = status.adapters.first { $0.address == device.adapter }?.name ?? "-"
        let adapter = status.adapters.count > 1 ? [name] : []
        return [device.device, device.state, short(device.since)] + adapter + [
            "\(device.readings)", "\(device.rejects)", device.lastReading.map(short) ?? "-",
            device.nextRetry.map(short) ?? "-", attempts,
        ]
    }

    /// The time of day is enough for eyes.
    private func short(_ time: String) -> String {
        String(time.dropFirst(11).prefix(8))
    }
}

/// Rows of text in columns.
struct Table {
    let lines: [String]

    init(_ header: [String], _ rows: [[String]]) {
        let all = [header] + rows
        let widths = header.indices.map { column in all.map { $0[column].count }.max() ?? 0 }
        lines = all.map { row in
            let cells = zip(row, widths).map { $0.padded(to: $1) }.joined(separator: "  ")
            return String(cells.reversed().drop { $0 == " " }.reversed())
        }
    }
}
