import Testing

@testable import GattherdDaemon

/// What waits to be decoded.
struct IntakeTests {
    @Test func `the memory of the usual is kept, and that of a stall given back`() {
        var buffer = Intake.Buffer()
        buffer.octets = Array(repeating: 0, count: 10_000)
        buffer.removeAll()
        #expect(buffer.octets.capacity >= 10_000)
        buffer.octets = Array(repeating: 0, count: 1 << 20)
        buffer.removeAll()
        #expect(buffer.octets.capacity < 1 << 20)
    }
}
