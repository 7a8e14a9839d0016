import GattherdGATT
import TestKit
import Testing

@testable import GattherdModel

/// Messages that devices split over several notifications.
struct MessageAssemblyTests {
    /// The messages and rejects that an assembly gave.
    private final class Results {
        var messages: [[UInt8]] = []
        var rejects: [String] = []

        /// Accepts messages whose last byte is the sum of the others.
        func handle(_ octets: Span<UInt8>, _ discarded: PayloadError?) -> Bool {
            let octets = octets.indices.map { octets[$0] }
            let isRight = octets.dropLast().reduce(0, &+) == octets.last
            if discarded == nil && isRight { messages.append(octets) }
            let reason = discarded?.description ?? (isRight ? nil : "wrong sum")
            if let reason { rejects.append("\(reason): \(Hexadecimal.text(octets.span))") }
            return reason == nil
        }
    }

    /// An assembly and its results.
    private struct Bench {
        private var assembly: MessageAssembly
        private var time = Timestamp(microseconds: 1_000_000)
        private let results = Results()

        init(_ rule: MessageRule) { assembly = MessageAssembly(rule) }

        var messages: [[UInt8]] { results.messages }
        var rejects: [String] { results.rejects }

        /// Adds a notification.
        mutating func receive(_ octets: [UInt8], after pause: Duration = .zero) {
            time = time.advanced(by: pause)
            assembly.receive(octets.span, at: time) { [results] in results.handle($0, $1) }
        }

        mutating func finish() {
            assembly.finish { [results] in results.handle($0, $1) }
        }
    }

    private static func rule(_ beginnings: String..., extent: MessageRule.Extent) throws -> MessageRule {
        MessageRule(beginnings: try beginnings.map { try #require(BytePattern($0)) }, extent: extent)
    }

    /// A start byte, a length, the contents and their sum.
    private static func counted() throws -> MessageRule {
        try rule("DD", extent: .field(at: 1, width: 1, isBigEndian: false, add: 3))
    }

    private static func message(_ contents: [UInt8]) -> [UInt8] {
        let octets = [0xDD, UInt8(contents.count)] + contents
        return octets + [octets.reduce(0, &+)]
    }

    @Test func `a whole message after an incomplete one is not lost with it`() throws {
        var bench = Bench(try Self.counted())
        bench.receive([0xDD, 200, 1, 2, 3])
        bench.receive(Self.message([7, 8]))
        #expect(bench.messages.isEmpty)
        bench.receive(Self.message([9]), after: .seconds(3))
        #expect(bench.messages == [Self.message([7, 8]), Self.message([9])])
        #expect(bench.rejects.count == 1)
        bench.receive([0xDD, 200] + Self.message([5]) + [0xDD])
        bench.finish()
        #expect(bench.messages.last == Self.message([5]))
    }

    @Test func `the end pattern is not searched in the start pattern of a message`() throws {
        var bench = Bench(try Self.rule("7E", extent: .end([0x7E])))
        bench.receive([0x7E, 0x01])
        bench.receive([0xFC, 0x7E])
        bench.finish()
        #expect(bench.rejects == ["wrong sum: 7e01fc7e"])
    }

    @Test func `a message ends after the bytes that its length counts`() throws {
        var bench = Bench(try Self.counted())
        for part in [[0xDD], [3, 1], [2, 3, 0xE6]] as [[UInt8]] { bench.receive(part) }
        #expect(bench.messages == [[0xDD, 3, 1, 2, 3, 0xE6]])
        #expect(bench.rejects.isEmpty)
    }

    @Test func `a notification can end one message and begin the next`() throws {
        var bench = Bench(try Self.counted())
        let (one, two) = (Self.message([1, 2]), Self.message([3]))
        bench.receive(Array(one.prefix(3)))
        bench.receive(Array(one.dropFirst(3)) + Array(two.prefix(2)))
        bench.receive(Array(two.dropFirst(2)) + two)
        #expect(bench.messages == [one, two, two])
    }

    @Test func `bytes before a message are rejected once`() throws {
        var bench = Bench(try Self.counted())
        bench.receive([1, 2, 3] + Self.message([9]))
        #expect(bench.messages == [Self.message([9])])
        #expect(bench.rejects == ["no message begins with these bytes: 010203"])
    }

    @Test func `after a lost notification the next message is found in the bytes of the broken one`() throws {
        var bench = Bench(try Self.counted())
        let (long, short) = (Self.message(Array(1...20)), Self.message([7]))
        bench.receive(Array(long.prefix(10)))
        bench.receive(short + short)
        bench.receive(short)
        bench.receive(Self.message([8]))
        #expect(bench.messages == [short, short, short, Self.message([8])])
        #expect(bench.rejects.count == 1)
    }

    @Test func `a message whose rest does not arrive in time is rejected`() throws {
        var bench = Bench(try Self.counted())
        bench.receive(Array(Self.message([1, 2, 3]).prefix(4)))
        bench.receive(Self.message([4]), after: .seconds(3))
        bench.receive(Array(Self.message([5]).prefix(1)), after: .seconds(3))
        bench.finish()
        #expect(bench.messages == [Self.message([4])])
        #expect(
            bench.rejects == [
                "incomplete message: 4 of 6 bytes: dd030102", "incomplete message: 1 bytes: dd",
            ]
        )
    }

    @Test func `a message has a fixed length, or ends with certain bytes`() throws {
        var fixed = Bench(MessageRule(extent: .fixed(3)))
        fixed.receive([1, 2])
        fixed.receive([3, 4, 5, 9, 1])
        #expect(fixed.messages == [[1, 2, 3], [4, 5, 9]])
        var ended = Bench(MessageRule(extent: .end([0x0D, 0x0D])))
        ended.receive([0, 0x0D])
        ended.receive([0x0D])
        #expect(ended.messages == [[0, 0x0D, 0x0D]])
    }

    @Test func `noise between messages is skipped, and kept within a message`() throws {
        var rule = try Self.counted()
        rule.ignored = [try #require(BytePattern("41 54")), try #require(BytePattern("C8 ?? ??"))]
        var bench = Bench(rule)
        bench.receive([0x41])
        bench.receive([0x54, 0xC8, 1])
        bench.receive([2, 0xDD, 2])
        bench.receive([0x41, 0x54, 0x74, 0x41, 0x54])
        #expect(bench.messages == [[0xDD, 2, 0x41, 0x54, 0x74]])
        #expect(bench.rejects.isEmpty)
    }

    @Test func `a message without an end is given up at its longest length`() {
        var bench = Bench(MessageRule(extent: .end([0])))
        for _ in 0..<100 { bench.receive(Array(repeating: 1, count: 100)) }
        let bytes = bench.rejects.compactMap { $0.split(separator: ": ").last.map { $0.utf8.count / 2 } }
        let discarded = bytes.reduce(0, +)
        #expect(discarded >= 10_000 - MessageRule.longest - 100)
        #expect(bench.messages.isEmpty)
    }

    @Test func `a message without a start pattern is rejected and skipped as a whole`() {
        var bench = Bench(MessageRule(extent: .end([10])))
        bench.receive(Array(repeating: 1, count: 90) + [10, 4, 6, 10])
        bench.receive(Array(repeating: 1, count: 15) + [10])
        #expect(bench.messages == [[4, 6, 10]])
        #expect(bench.rejects.count == 2)
    }

    @Test func `one notification gives a bounded number of messages`() {
        var bench = Bench(MessageRule(extent: .fixed(1)))
        bench.receive(Array(repeating: 0, count: 512))
        #expect(bench.messages.count == MessageAssembly.mostMessages)
        #expect(bench.rejects.count == 1)
        bench.receive([0])
        #expect(bench.messages.count == MessageAssembly.mostMessages + 1)
    }

    @Test(.timeLimit(.minutes(1)))
    func `messages are the same however they are split`() throws {
        var generator = SplitMix(state: 7)
        for _ in 0..<500 {
            let sent = (0..<Int.random(in: 1...8, using: &generator)).map { _ in
                Self.message(generator.payload(atMost: 60))
            }
            var bench = Bench(try Self.counted())
            var rest = sent.flatMap(\.self)[...]
            while !rest.isEmpty {
                let part = rest.prefix(Int.random(in: 1...40, using: &generator))
                bench.receive(Array(part))
                rest = rest.dropFirst(part.count)
            }
            #expect(bench.messages == sent)
            #expect(bench.rejects.isEmpty)
        }
    }

    @Test func `a message that is cut at any byte does not cost the next one after a pause`() throws {
        let message = Self.message(Array(0..<30))
        for length in message.indices {
            var bench = Bench(try Self.counted())
            bench.receive(Array(message.prefix(length)))
            bench.receive(message, after: .seconds(5))
            #expect(bench.messages == [message])
            #expect(bench.rejects.count == min(length, 1))
        }
    }

    @Test(.timeLimit(.minutes(1)))
    func `random bytes never trap, and no byte is reported twice`() throws {
        var generator = SplitMix(state: 11)
        let rules = [
            try Self.counted(), try Self.rule("00", "FF ??", extent: .fixed(300)),
            try Self.rule("01", extent: .field(at: 2, width: 4, isBigEndian: true, add: -1)),
            MessageRule(extent: .end([7])), MessageRule(extent: .fixed(MessageRule.longest)),
        ]
        for rule in rules {
            var assembly = MessageAssembly(rule)
            var (sent, seen) = (0, 0)
            for _ in 0..<2000 {
                let octets = generator.payload(atMost: 64).map { $0 & 0x0F }
                sent += octets.count
                assembly.receive(octets.span, at: Timestamp(microseconds: 1)) { octets, discarded in
                    seen += octets.count
                    return discarded == nil
                }
            }
            assembly.finish { octets, _ in
                seen += octets.count
                return false
            }
            #expect(seen == sent)
        }
    }
}
