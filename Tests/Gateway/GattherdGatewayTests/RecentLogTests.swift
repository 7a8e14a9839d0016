import GattherdLog
import GattherdSync
import Testing

/// The newest entries of the log, which the dashboard shows.
@Suite struct RecentLogTests {
    private func filled(_ recent: RecentLog, _ count: Int) {
        for index in 0..<count {
            recent.append(LogEntry(level: .info, message: "entry", fields: [LogField("index", index)]))
        }
    }

    private func indices(_ recent: RecentLog) -> [String] {
        recent.records(from: .trace, device: nil, limit: 10_000).flatMap(\.entry.fields).map(\.value)
    }

    @Test func `new entries replace the oldest`() throws {
        let recent = RecentLog(capacity: 16) { "now" }
        filled(recent, 100)
        let kept = indices(recent)
        #expect(kept.last == "99")
        #expect((13...16).contains(kept.count))
        #expect(kept == (100 - kept.count..<100).map { "\($0)" })
    }

    @Test func `the texts of the recent log have a bounded size, and long ones are cut`() {
        let recent = RecentLog(capacity: 1000, byteLimit: 4000) { "now" }
        let long = String(repeating: "x", count: 100_000)
        for _ in 0..<50 { recent.append(LogEntry(level: .info, message: "m", fields: [LogField("text", long)])) }
        let texts = indices(recent)
        #expect(!texts.isEmpty && texts.reduce(0) { $0 + $1.utf8.count } < 5000)
    }

    @Test func `entries are chosen by level and device, the newest of them`() {
        let recent = RecentLog { "now" }
        recent.append(LogEntry(level: .debug, message: "a", fields: [LogField("device", "strap")]))
        recent.append(LogEntry(level: .warning, message: "b", fields: [LogField("device", "strap")]))
        recent.append(LogEntry(level: .error, message: "c", fields: [LogField("device", "dial")]))
        recent.append(LogEntry(level: .warning, message: "d", fields: [LogField("device", "strap")]))
        func messages(_ level: LogLevel, _ device: String?, _ limit: Int = 10) -> [String] {
            recent.records(from: level, device: device, limit: limit).map(\.entry.message)
        }
        #expect(messages(.trace, nil) == ["a", "b", "c", "d"])
        #expect(messages(.info, "strap") == ["b", "d"])
        #expect(messages(.error, nil) == ["c"])
        #expect(messages(.info, "strap", 1) == ["d"])
    }
}
