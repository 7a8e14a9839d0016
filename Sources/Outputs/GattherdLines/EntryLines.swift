package import GattherdModel

/// The lines of entries: one JSON object each, with the member `type` first.
///
/// Readings have the members of their MQTT payload after `device` and `stream`.
package enum EntryLines {
    package static func text(of entries: [JournalEntry]) -> [UInt8] {
        var writer = JSONWriter(reserving: entries.count * 160)
        var text: [UInt8] = []
        for entry in entries {
            writer.write(entry)
            text += writer.bytes
            text.append(UInt8(ascii: "\n"))
            writer.removeAll()
        }
        return text
    }
}

extension JSONWriter {
    fileprivate mutating func write(_ entry: JournalEntry) {
        switch entry {
        case .reading(let reading): write(reading)
        case .event(let event, let seq): write(event, seq)
        case .reject(let reject, let seq): write(reject, seq)
        case .correction(let correction, let seq): write(correction, seq)
        }
    }

    private mutating func write(_ reading: JournalReading) {
        begin("reading")
        member("device", reading.stream.device)
        member("stream", reading.stream.stream)
        // The members of the payload, without its braces.
        let payload = JSONWriter.bytes(reserving: 160) { reading.writeJSON(to: &$0) }
        raw(payload.dropFirst().dropLast())
        endObject()
    }

    private mutating func write(_ event: LifecycleEvent, _ seq: Int64) {
        begin("event", seq)
        key("ts")
        timestamp(event.time)
        if let device = event.device { member("device", device) }
        member("kind", event.kind)
        key("detail")
        raw(event.detail.utf8)
        endObject()
    }

    private mutating func write(_ reject: Reject, _ seq: Int64) {
        begin("reject", seq)
        key("ts")
        timestamp(reject.time)
        member("device", reject.device)
        member("characteristic", reject.characteristic)
        member("payload", Self.hexadecimal(reject.payload))
        member("reason", reject.reason)
        endObject()
    }

    private mutating func write(_ correction: ClockCorrection, _ seq: Int64) {
        begin("correction", seq)
        for (name, number) in [("after", correction.after), ("through", correction.through)] {
            key(name)
            integer(number)
        }
        key("shift")
        real(correction.shift / .seconds(1))
        endObject()
    }

    private mutating func begin(_ type: String, _ seq: Int64? = nil) {
        beginObject()
        member("type", type)
        guard let seq else { return }
        key("seq")
        integer(seq)
    }

    private mutating func member(_ name: String, _ value: String) {
        key(name)
        string(value)
    }

    private static func hexadecimal(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789abcdef".utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}
