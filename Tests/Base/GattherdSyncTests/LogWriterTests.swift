import GattherdSync
import Glibc
import TestKit
import Testing

@testable import GattherdLog

/// A log whose reader blocks until it is resumed.
private final class Reader: Sendable {
    let entries = Locked<[LogEntry]>([])
    private let gate: (out: Int32, in: Int32)
    private let stops: Int

    /// Blocks at each of the first `stops` entries until it is resumed.
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
            var byte: UInt8 = 0
            if count <= self.stops { _ = unsafe read(self.gate.out, &byte, 1) }
        }
    }

    func resume() {
        _ = unsafe write(gate.in, [1], 1)
    }

    var messages: [String] { entries.withLock { $0.map(\.message) } }
}

@Suite(.timeLimit(.minutes(1))) struct LogWriterTests {
    private func entry(_ number: Int) -> LogEntry {
        LogEntry(level: .info, message: "\(number)", fields: [])
    }

    @Test func `a blocked log reader delays nobody and receives all entries in order`() async throws {
        let reader = try Reader()
        let writer = reader.makeWriter()
        for number in 0..<100 { writer.enqueue(entry(number)) }
        try await eventually { reader.messages == ["0"] }
        reader.resume()
        await writer.flush(within: .seconds(60))
        #expect(reader.messages == (0..<100).map { "\($0)" })
    }

    @Test func `lost entries are counted and reported`() async throws {
        let reader = try Reader()
        let writer = reader.makeWriter()
        for number in 0..<(LogWriter.capacity + 7) { writer.enqueue(entry(number)) }
        reader.resume()
        await writer.flush(within: .seconds(60))
        writer.enqueue(entry(-1))
        await writer.flush(within: .seconds(60))
        let written = reader.entries.withLock { $0 }
        #expect(written.prefix(LogWriter.capacity).map(\.message) == (0..<LogWriter.capacity).map { "\($0)" })
        let (lost, next) = (try #require(written.dropLast().last), try #require(written.last))
        #expect(written.count == LogWriter.capacity + 2)
        #expect(lost.level == .warning && lost.fields.first == LogField("count", 7))
        #expect(next.message == "-1")
    }

    @Test func `lost entries are reported at the place of the gap`() async throws {
        let reader = try Reader(stops: 2)
        let writer = reader.makeWriter()
        for number in 0..<(LogWriter.capacity + 7) { writer.enqueue(entry(number)) }
        reader.resume()
        // The first entry after the gap, while others are still queued.
        try await eventually { reader.messages.count == 2 }
        writer.enqueue(entry(-1))
        reader.resume()
        await writer.flush(within: .seconds(60))
        let messages = reader.messages
        #expect(messages.count == LogWriter.capacity + 2)
        #expect(messages.last == "-1" && messages.dropLast().last != "\(LogWriter.capacity - 1)")
    }

    @Test func `flushing a blocked log ends at its time limit`() async throws {
        let reader = try Reader()
        let writer = reader.makeWriter()
        writer.enqueue(entry(0))
        writer.enqueue(entry(1))
        await writer.flush(within: .milliseconds(10))
        #expect(!reader.messages.contains("1"))
        reader.resume()
        await writer.flush(within: .seconds(60))
        #expect(reader.messages == ["0", "1"])
    }
}
