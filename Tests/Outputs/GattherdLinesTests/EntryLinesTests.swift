import GattherdLines
import GattherdModel
import Testing

@Suite struct EntryLinesTests {
    private static let stream = StreamDefinition(
        device: "strap",
        profile: "heart-rate",
        stream: "heart_rate",
        metrics: [MetricDescriptor(name: "heart_rate"), MetricDescriptor(name: "rr_interval", isRepeated: true)]
    )
    private static let time = Timestamp(microseconds: 1_795_512_000_000_000)

    private func line(_ entry: JournalEntry) -> String {
        String(decoding: EntryLines.text(of: [entry]), as: UTF8.self)
    }

    @Test func `a reading's line has the device, the stream, then the MQTT payload`() {
        let samples = [
            Sample(metric: 0, value: .integer(85)), Sample(metric: 1, value: .real(0.5)),
            Sample(metric: 1, value: .real(0.75)),
        ]
        let reading = JournalReading(
            seq: 7,
            stream: Self.stream,
            time: Self.time,
            source: .notify,
            samples: samples[...]
        )
        var payload = JSONWriter()
        reading.writeJSON(to: &payload)
        let members = String(decoding: payload.bytes.dropFirst(), as: UTF8.self)
        let start = #"{"type":"reading","device":"strap","stream":"heart_rate","#
        #expect(line(.reading(reading)) == start + members + "\n")
        #expect(members.hasPrefix(#""seq":7,"#) && members.hasSuffix(#""heart_rate":85,"rr_interval":[0.5,0.75]}"#))
    }

    @Test func `events, rejects and corrections have a type and a number`() {
        let event = LifecycleEvent(time: Self.time, device: "strap", kind: "link", ["state": .text("ready")])
        #expect(
            line(.event(event, seq: 8))
                == #"{"type":"event","seq":8,"ts":"\#(Self.time.rfc3339)","device":"strap","kind":"link","#
                + #""detail":{"state":"ready"}}"# + "\n"
        )
        let gateway = LifecycleEvent(time: Self.time, device: nil, kind: "daemon", ["state": .text("started")])
        #expect(!line(.event(gateway, seq: 9)).contains("device"))
        let reject = Reject(
            time: Self.time,
            device: "strap",
            characteristic: "2a37",
            payload: [0x00, 0xFF],
            reason: "too\nshort"
        )
        #expect(
            line(.reject(reject, seq: 10))
                == #"{"type":"reject","seq":10,"ts":"\#(Self.time.rfc3339)","device":"strap","#
                + #""characteristic":"2a37","payload":"00ff","reason":"too\u000ashort"}"# + "\n"
        )
        let correction = ClockCorrection(after: 3, through: 6, shift: .milliseconds(-1500))
        #expect(
            line(.correction(correction, seq: 11))
                == #"{"type":"correction","seq":11,"after":3,"through":6,"shift":-1.5}"# + "\n"
        )
    }

    @Test func `each entry is one line, also with line breaks in its texts`() {
        let text = StreamDefinition(
            device: "a",
            profile: "p",
            stream: "s",
            metrics: [MetricDescriptor(name: "text")]
        )
        let entries = (Int64(1)...50).map { seq in
            let sample = Sample(metric: 0, value: .text("\"\n\u{0}\u{2028}\\"))
            return JournalEntry.reading(
                JournalReading(seq: seq, stream: text, time: Self.time, source: .read, samples: [sample][...])
            )
        }
        let lines = EntryLines.text(of: entries).split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        #expect(lines.count == 51 && lines.last?.isEmpty == true)
    }
}
