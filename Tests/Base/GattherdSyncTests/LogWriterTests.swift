import GattherdSync
import Glibc
import TestKit
import Testing

@testable import GattherdLog

/// A log whose reader stands still until it is let go on.
private final class Reader: Sendable {
    let entries = Locked<[LogEntry]>([])
    private let gate: (out: Int32, in: Int32)
    private let stops: Int

    /// Has to be let go on at each of the first `stops` entries.
    init(stops: Int = 1) throws {
        self.stops = stops
        var ends: [Int32] = [-1, -1]
        try #require(unsafe pipe(&ends) == 0)
        gate = (ends[0], ends[1])
    }

    deinit {
        close(gate.out)
        close(gate.in)
    }

    func makeWriter() -> LogWriter {
        LogWriter(now: { "now" }) { entry, _ in
            let count = self.entries.withLock { entries in
                entries.append(entry)
                return entries.count
            }
            var octet: UInt8 = 0
            if count <= self.stops { _ = unsafe read(self.gate.out, &octet, 1) }
        }
    }

    func goOn() {
        _ = unsafe write(gate.in, [1], 1)
    }

    var messages: [String] { entries.withLock { $0.map(\.message) } }
}

@Suite(.timeLimit(.minutes(1))) struct LogWriterTests {
    private func entry(_ number: Int) -> LogEntry {
        LogEntry(level: .info, message: "\(number)", fields: [])
    }

    @Test func `A reader that stands still holds nobody up, and gets all in its order`() async throws {
        let reader = try Reader()
        let writer = reader.makeWriter()
        for number in 0..<100 { writer.take(entry(number)) }
        try await eventually { reader.messages == ["0"] }
        reader.goOn()
        await writer.flush(within: .seconds(60))
        #expect(reader.messages == (0..<100).map { "\($0)" })
    }

    @Test func `What is lost is told with its number when the reader goes on`() async throws {
        let reader = try Reader()
        let writer = reader.makeWriter()
        for number in 0..<(LogWriter.capacity + 7) { writer.take(entry(number)) }
        reader.goOn()
        await writer.flush(within: .seconds(60))
        writer.take(entry(-1))
        await writer.flush(within: .seconds(60))
        let said = reader.entries.withLock { $0 }
        #expect(said.prefix(LogWriter.capacity).map(\.message) == (0..<LogWriter.capacity).map { "\($0)" })
        let (lost, next) = (try #require(said.dropLast().last), try #require(said.last))
        #expect(said.count == LogWriter.capacity + 2)
        #expect(lost.level == .warning && lost.fields.first == LogField("count", 7))
        #expect(next.message == "-1")
    }

    @Test func `What is lost is told where it is missing`() async throws {
        let reader = try Reader(stops: 2)
        let writer = reader.makeWriter()
        for number in 0..<(LogWriter.capacity + 7) { writer.take(entry(number)) }
        reader.goOn()
        // The first that finds room, while others still wait.
        try await eventually { reader.messages.count == 2 }
        writer.take(entry(-1))
        reader.goOn()
        await writer.flush(within: .seconds(60))
        let messages = reader.messages
        #expect(messages.count == LogWriter.capacity + 2)
        #expect(messages.last == "-1" && messages.dropLast().last != "\(LogWriter.capacity - 1)")
    }

    @Test func `Who waits for the last words does not wait for ever`() async throws {
        let reader = try Reader()
        let writer = reader.makeWriter()
        writer.take(entry(0))
        writer.take(entry(1))
        await writer.flush(within: .milliseconds(10))
        #expect(!reader.messages.contains("1"))
        reader.goOn()
        await writer.flush(within: .seconds(60))
        #expect(reader.messages == ["0", "1"])
    }
}
