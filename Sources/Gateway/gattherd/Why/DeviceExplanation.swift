import GattherdGateway
import GattherdModel

/// Why a device is as it is: how it came to this, what comes next and when, what may help.
struct DeviceExplanation {
    /// What a story is told from.
    struct Sources {
        var device: String
        var address: String
        /// `nil` when no daemon runs.
        var status: DaemonStatus?
        /// Of the device and of the gateway, oldest first.
        var events: [LifecycleEvent]
        /// How long an attempt to connect may take.
        var connectTimeout: Duration
        /// The path of the configuration, and the first error in it.
        var configuration = ConfigurationFile.standardPath
        var configurationError: String?
    }

    /// How much of the past is told.
    private static let limit = 20

    let device: String
    let address: String
    let now: Timestamp
    let link: DaemonStatus.Device?
    /// What is true now, in one sentence.
    let headline: String
    let lines: [ExplainedEvent]
    /// What happens next by itself, and when.
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

    /// For people; times are UTC.
    var text: String {
        var text = "\(device) (\(address)): \(Terminal.harmless(headline))\n"
        if !lines.isEmpty {
            text += "\nHow it came to this (UTC)\n"
            var day: Substring = ""
            for line in lines {
                let (date, clock) = Self.parts(line.time)
                if date != day { text += "  \(date)\n" }
                day = date
                text += "    \(clock)  \(Terminal.harmless(line.text))\(times(line))\n"
            }
        }
        text += "\nWhat comes next\n    \(next)\n"
        if !advice.isEmpty { text += "\nWhat may help\n" + advice.map { "    \($0)\n" }.joined() }
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
        for (key, value) in [("state", link?.state), ("since", link?.since), ("next_retry", link?.nextRetry)] {
            writer.key(key)
            writer.optional(value) { $0.string($1) }
        }
        writer.key("next")
        writer.string(next)
        writer.key("advice")
        writer.beginArray()
        for words in advice { writer.string(words) }
        writer.endArray()
        writer.key("story")
        writer.beginArray()
        for line in lines { line.writeJSON(to: &writer) }
        writer.endArray()
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
