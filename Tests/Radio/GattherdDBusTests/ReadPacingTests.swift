import Testing

@testable import GattherdDBus

/// The read schedule of a busy connection.
struct ReadPacingTests {
    private let start = SuspendingClock.now
    private let longest = Duration.milliseconds(100)

    @Test func `rare messages are read at once`() {
        var pacing = ReadPacing(longest: longest)
        for turn in 0..<100 {
            #expect(pacing.read(1, isAll: true, at: start + .milliseconds(25) * turn) == nil)
        }
    }

    /// The pacing after nine reads, one every five milliseconds: a pause begins.
    private func busy() -> (pacing: ReadPacing, now: SuspendingClock.Instant) {
        var pacing = ReadPacing(longest: longest)
        for turn in 0..<8 { #expect(pacing.read(1, isAll: true, at: start + .milliseconds(5) * turn) == nil) }
        #expect(pacing.read(1, isAll: true, at: start + .milliseconds(40)) == longest)
        return (pacing, start + .milliseconds(40))
    }

    @Test func `fast messages are read in groups until they become few`() {
        var (pacing, now) = busy()
        for count in [16, 19, 2] {
            now += longest
            #expect(pacing.read(count, isAll: true, at: now) == longest)
        }
        #expect(pacing.read(1, isAll: true, at: now + longest) == nil)
        #expect(pacing.read(1, isAll: true, at: now + longest + .milliseconds(1)) == nil)
    }

    /// The pauses are in microseconds; the longest pause is a multiple of each.
    @Test(arguments: [(500, 100_000), (1000, 100_000), (3125, 33_333), (50_000, 2500), (100_000, 2000)])
    func `a pause gathers about the same number of messages at any rate`(rate: Int, pause: Int) {
        var (pacing, now) = busy()
        var next = longest
        var pauses: [Duration] = []
        for _ in 0..<20 {
            now += next
            let count = Int((next * rate / .seconds(1)).rounded())
            next = pacing.read(count, isAll: true, at: now) ?? .zero
            pauses.append(next)
        }
        #expect((0.95...1.05).contains((pauses.suffix(2).max() ?? .zero) / .microseconds(pause)))
        #expect(pauses.count { $0 == ReadPacing.shortest } < 4 || pause < 3000, "looks are few")
    }

    /// The pauses are in microseconds; other sockets have 63 times as many messages as the fullest one at most.
    @Test(arguments: [(50, 100_000), (1000, 100_000), (3125, 33_333)])
    func `the fullest of several sockets determines the pause`(rate: Int, pause: Int) {
        var (pacing, now) = busy()
        var next = longest
        for _ in 0..<20 {
            now += next
            let count = max(1, Int((next * rate / .seconds(1)).rounded()))
            next = pacing.read(count, of: 64 * count, isAll: true, at: now) ?? .zero
        }
        #expect((0.95...1.05).contains(next / .microseconds(pause)))
    }

    @Test func `single messages of several sockets are worth a pause`() {
        var (pacing, now) = busy()
        for _ in 0..<3 {
            now += longest
            #expect(pacing.read(1, of: 2, isAll: true, at: now) == longest)
        }
        #expect(pacing.read(1, of: 1, isAll: true, at: now + longest) == nil)
    }

    /// A quarter of the socket's capacity is 48 short or 23 long messages.
    ///
    /// The kernel reports the socket as writable again when that much is free.
    @Test(arguments: [0, 150], [23, 48])
    func `a backlog in the bus is read at once, although the socket holds little of it`(
        rate: Int,
        refill: Int
    ) {
        var (pacing, now) = busy()
        let end = now + .seconds(6)
        var (waiting, next) = (20_000, longest)
        while waiting > 0, now < end {
            now += next
            waiting += Int((next * rate / .seconds(1)).rounded())
            let count = min(refill, waiting)
            waiting -= count
            next = pacing.read(count, isAll: true, at: now) ?? .milliseconds(1)
        }
        #expect(waiting == 0)
        for _ in 0..<9 { now += pacing.read(0, isAll: true, at: now + ReadPacing.shortest) ?? .zero }
        #expect(pacing.read(15, isAll: true, at: now + longest) == longest)
    }

    @Test func `checks of a slow bus become longer each time`() {
        var (pacing, now) = busy()
        let start = now
        var (waiting, next, empty) = (5000, longest, 0)
        while waiting > 0, now < start + .seconds(9) {
            now += next
            // At every second read the bus has not had the time.
            empty = next < .milliseconds(4) ? empty + 1 : 0
            let count = empty % 2 == 1 ? 0 : min(48, waiting)
            waiting -= count
            next = pacing.read(count, isAll: true, at: now) ?? .milliseconds(1)
        }
        #expect(now - start < .seconds(3))
    }

    /// In milliseconds; 64 devices start to notify, all at once, during a check.
    @Test(arguments: [20, 23, 100], [0, 1, 3, 7, 15])
    func `a higher rate is not mistaken for a backlog`(period: Int, phase: Int) {
        var (pacing, now) = busy()
        var next = longest
        repeat {
            now += next
            next = pacing.read(33, isAll: true, at: now) ?? .zero
        } while next != ReadPacing.shortest
        let start = now - .milliseconds(phase)
        var (reported, pauses) = (0, [Duration]())
        while now < start + .seconds(10) {
            now += next
            let count =
                Int((now - start) / .milliseconds(period)) * 64 + Int((now - start) / .milliseconds(9)) - reported
            reported += count
            next = pacing.read(count, isAll: true, at: now) ?? .milliseconds(9)
            pauses.append(next)
        }
        #expect(pauses.suffix(100).count { $0 < .milliseconds(25) } <= 30)
    }

    /// A bus whose socket holds 167 messages; it has more whenever the reader is slow.
    private struct Bus {
        private var reported = 0
        private var (socket, queue) = (0, 0)

        /// All that the socket has, when so many messages have been sent since the start.
        mutating func read(sent: Int) -> Int {
            queue += sent - reported
            reported = sent
            let room = min(queue, 167 - socket)
            let count = socket + room
            queue -= room
            socket = min(queue, 167)
            queue -= socket
            return count
        }
    }

    /// 64 devices notify 50 times a second, independently or half of them together.
    ///
    /// After two seconds nearly nothing arrives for a while, then the delayed messages.
    @Test(arguments: [1, 32], [60, 90, 300])
    func `a short stall of the bus has no lasting effect`(together: Int, stall: Int) {
        var pacing = ReadPacing(longest: longest)
        var (bus, now, late) = (Bus(), start, 0)
        while now < start + .seconds(8) {
            let elapsed = now - start
            let isStalled = (2000..<2000 + stall).contains(Int(elapsed / .milliseconds(1)))
            let span = isStalled ? .seconds(2) + (elapsed - .seconds(2)) / 30 : elapsed
            let sent = Int(span / .microseconds(312.5 * Double(together))) * together
            let pause = pacing.read(bus.read(sent: sent), isAll: true, at: now) ?? .milliseconds(1)
            let isSteady = elapsed > .seconds(1) && !(2...3.6).contains(elapsed / .seconds(1))
            if isSteady, !(.milliseconds(30)...(.milliseconds(60))).contains(pause) { late += 1 }
            now += pause
        }
        #expect(late < 20)
    }

    @Test func `the first pause already fits the rate`() {
        var pacing = ReadPacing(longest: longest)
        var pause: Duration?
        for turn in 0..<9 { pause = pacing.read(10, isAll: true, at: start + .milliseconds(1) * turn) }
        #expect((10.0...65.0).contains((pause ?? .zero) / .milliseconds(1)))
    }

    @Test func `no pause is longer than the limit`() {
        var pacing = ReadPacing(longest: .milliseconds(7))
        for turn in 0..<8 { _ = pacing.read(1, isAll: true, at: start + .milliseconds(5) * turn) }
        #expect(pacing.read(1, isAll: true, at: start + .milliseconds(40)) == .milliseconds(7))
    }

    @Test func `a backlog beyond one turn is read without a pause`() {
        var (pacing, now) = busy()
        #expect(pacing.read(256, isAll: false, at: now + .milliseconds(5)) == nil)
        #expect(pacing.read(256, isAll: false, at: now + .milliseconds(6)) == nil)
        #expect(pacing.read(20, isAll: true, at: now + .milliseconds(7)) != nil)
    }

    @Test func `a turn without messages changes nothing`() {
        var (pacing, now) = busy()
        #expect(pacing.read(0, isAll: true, at: now + .milliseconds(1)) == nil)
        #expect(pacing.read(3, isAll: true, at: now + longest) == longest)
    }
}
