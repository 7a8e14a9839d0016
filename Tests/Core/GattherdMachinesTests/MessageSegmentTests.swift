import GattherdGATT
import GattherdModel
import Testing

/// Messages in segments, whose headers say which is the first and the last.
struct MessageSegmentTests {
    /// The messages and rejects that an assembly gave; messages of one byte are refused.
    private final class Results {
        var messages: [[UInt8]] = []
        var rejects: [String] = []

        func handle(_ octets: Span<UInt8>, _ discarded: PayloadError?) -> Bool {
            if let discarded {
                rejects.append("\(discarded): \(Hexadecimal.text(octets))")
            } else {
                messages.append(octets.indices.map { octets[$0] })
            }
            return discarded == nil && octets.count != 1
        }
    }

    /// An assembly and its results.
    private struct Bench {
        private var assembly = MessageAssembly(MessageRule(extent: .segments))
        private var time = Timestamp(microseconds: 1_000_000)
        private let results = Results()

        var messages: [[UInt8]] { results.messages }
        var rejects: [String] { results.rejects }

        mutating func receive(_ octets: [UInt8]..., after pause: Duration = .zero) {
            for notification in octets {
                time = time.advanced(by: pause)
                assembly.receive(notification.span, at: time) { [results] in results.handle($0, $1) }
            }
        }

        mutating func finish() {
            assembly.finish { [results] in results.handle($0, $1) }
        }
    }

    /// The header of a segment.
    private func header(_ counter: UInt8, isFirst: Bool = false, isLast: Bool = false) -> UInt8 {
        counter << 2 | (isLast ? 2 : 0) | (isFirst ? 1 : 0)
    }

    @Test func `a segment that is first and last is a message`() {
        var bench = Bench()
        bench.receive([3, 1, 2], [3], [header(9, isFirst: true, isLast: true), 0xFF])
        #expect(bench.messages == [[1, 2], [], [0xFF]])
        bench.finish()
        #expect(bench.rejects.isEmpty)
    }

    @Test func `segments are joined without their headers, and the counter wraps`() {
        var bench = Bench()
        bench.receive([header(63, isFirst: true), 1, 2], [header(0), 3], [header(1, isLast: true), 4])
        #expect(bench.messages == [[1, 2, 3, 4]])
        #expect(bench.rejects.isEmpty)
    }

    @Test func `a missing segment rejects the message and its rest`() {
        var bench = Bench()
        bench.receive([header(0, isFirst: true), 1], [header(2), 3], [header(3, isLast: true), 4], [3, 5])
        #expect(bench.messages == [[5]])
        #expect(
            bench.rejects == [
                "incomplete message: 1 bytes: 01", "no message is continued by this segment: 0803",
                "no message is continued by this segment: 0e04",
            ]
        )
    }

    @Test func `a new first segment and a pause end an unfinished message`() {
        var bench = Bench()
        bench.receive([header(0, isFirst: true), 1], [header(0, isFirst: true), 2])
        bench.receive([header(1, isLast: true), 3], after: .seconds(3))
        #expect(bench.messages.isEmpty)
        #expect(
            bench.rejects.map { $0.prefix(18) } == ["incomplete message", "incomplete message", "no message is cont"]
        )
        bench.receive([])
        #expect(bench.rejects.count == 4)
    }

    @Test func `a message of several segments is rejected above 1,024 bytes`() {
        var bench = Bench()
        let contents = [UInt8](repeating: 7, count: 512)
        bench.receive([header(0, isFirst: true)] + contents, [header(1)] + contents, [header(2, isLast: true)])
        #expect(bench.messages.map(\.count) == [1024])
        bench.receive([header(0, isFirst: true)] + contents, [header(1)] + contents, [header(2, isLast: true), 7])
        #expect(bench.messages.count == 1)
        #expect(bench.rejects.count == 2)
    }
}
