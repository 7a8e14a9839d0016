import Testing

@testable import GattherdLines
@testable import GattherdOutputs

/// The search for an unfinished line, also on a disk that fails.
@Suite struct LinesTailTests {
    private static let fault = OutputFault(.unavailable, "the disk fails")

    private func tail(_ text: String, failing: Bool = false) -> LinesTail {
        let bytes = Array(text.utf8)
        return LinesTail(size: Int64(bytes.count)) { (position, count) throws(OutputFault) in
            if failing { throw Self.fault }
            return Array(bytes[Int(position)...].prefix(count))
        }
    }

    @Test func `an unfinished line begins after the last line break`() throws {
        let tail = tail("one\n{\"type\":\"reading")
        #expect(try tail.end() == 4)
        #expect(try tail.isUnfinishedLine(at: 4))
    }

    @Test func `zeros of a power cut may begin anywhere in a line`() throws {
        for length in 0...9 {
            let text = "{\"type\":\"".prefix(length) + String(repeating: "\0", count: 20)
            #expect(try tail("one\n" + text).isUnfinishedLine(at: 4))
        }
        #expect(try !tail("one\nab" + String(repeating: "\0", count: 20)).isUnfinishedLine(at: 4))
        #expect(try !tail("one\n{\"\0ype\":\"").isUnfinishedLine(at: 4))
    }

    @Test func `a disk that fails is not taken for an unfinished line`() {
        let tail = tail("{\"type\":\"reading\"}\n", failing: true)
        #expect(throws: Self.fault) { try tail.end() }
        #expect(throws: Self.fault) { try tail.isUnfinishedLine(at: 0) }
    }

    @Test func `an empty file has no unfinished line`() throws {
        #expect(try !tail("").isUnfinishedLine(at: 0))
    }
}
