import GattherdGateway
import GattherdModel

/// An explanation of a device's state: its past, the next step and its time, and advice.
struct DeviceExplanation {
    /// The data of an explanation.
    struct Sources {
        var device: String
        var address: String
        /// The status of the daemon; `nil` if none runs.
        var status: DaemonStatus?
        /// The events of the device and of the gateway, oldest first.
        var events: [LifecycleEvent]
        /// The limit of a connection attempt.
        var connectTimeout: Duration
        /// The path of the configuration, and the first error in it.
        var configuration = ConfigurationFile.standardPath
        var configurationError: String?
    }

    /// The maximum number of lines about the past.
    private static let limit = 20

    let device: String
    let address: String
    let now: Timestamp
    let link: DaemonStatus.Device?
    /// The current state, in one sentence.
    let headline: String
    let lines: [ExplainedEvent]
    /// The daemon's next step and its time.
    let next: String
    let advice: [String]

    init(_ sources: Sources, now: Timestamp) {
        self.now = now
        device = sources.device
        address = sources.address
        let link = sources.status?.devices.first { $0.device == sources.device }
        self.link = link
        let past = [ExplainedEvent](sources.events)
        let heard = link?.lastHeard.flatMap { Timestamp(rfc3339: $0.utf8) }.map { time in
            ExplainedEvent(time, "last heard" + (link?.rssi.map { ", with \($0) dBm" } ?? ""))
        }
        lines = (past + [heard].compactMap(\.self)).sorted { $0.time < $1.time }.suffix(Self.limit)
        let present = DeviceState(sources, link, now: now)
        headline = present.headline
        next = present.next
        advice = present.advice
    }

    /// The explanation as text; times are UTC.
    var text: String {
        let model = link?.model.map { ", \($0)" } ?? ""
        var text = "\(device) (\(address)\(model)): \(Terminal.harmless(headline))\n"
        if !lines.isEmpty {
            text += "\nRecent events (UTC)\n"
            var day: Substring = ""
            for line in lines {
                let (date, clock) = Self.parts(line.time)
                if date != day { text += "  \(date)\n" }
                day = date
                text += "    \(clock)  \(Terminal.harmless(line.text))\(times(line))\n"
            }
        }
        if let lease = link?.lease {
            let words = LeaseWords(lease).lines.map { "    \(Terminal.harmless($0))\n" }
            text += "\nWhich gateway connects it\n" + words.joined()
        }
        text += "\nWhat comes next\n    \(next)\n"
        if !advice.isEmpty { text += "\nWhat may help\n" + advice.map { "    \(Terminal.harmless($0))\n" }.joined() }
        return text
    }

    private func times(_ line: ExplainedEvent) -> String {
        guard line.count > 1 else { return "" }
        let (date, clock) = Self.parts(line.first)
        let since = date == Self.parts(line.time).date ? "\(clock)" : "\(date) \(clock)"
        return " (\(line.count) times since \(since))"
    }

    private static func parts(_ time: Timestamp) -> (date: Substring, clock: Substring) {
        let text = time.rfc3339
        return (text.prefix(10), text.dropFirst(11).prefix(8))
    }

    func writeJSON(to writer: inout JSONWriter) {
        writer.beginObject()
        for (key, value) in [("device", device), ("address", address), ("headline", headline)] {
            writer.key(key)
            writer.string(value)
        }
        let facts = [
            ("model", link?.model), ("state", link?.state), ("since", link?.since), ("next_retry", link?.nextRetry),
        ]
        for (key, value) in facts {
            writer.key(key)
            writer.optional(value) { $0.string($1) }
        }
        writer.key("next")
        writer.string(next)
        writer.key("advice")
        writer.array(advice) { $0.string($1) }
        if let lease = link?.lease {
            writer.key("lease")
            LeaseWords(lease).writeJSON(to: &writer)
        }
        writer.key("story")
        writer.array(lines) { $1.writeJSON(to: &$0) }
        writer.endObject()
    }
}

extension ExplainedEvent {
    fileprivate func writeJSON(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.key("time")
        writer.timestamp(time)
        writer.key("first")
        writer.timestamp(first)
        writer.key("count")
        writer.integer(count)
        writer.key("text")
        writer.string(text)
        writer.endObject()
    }
}
