import GattherdMachines
import GattherdModel
import Testing

@Suite struct ControlThrottleTests {
    typealias Event = ControlThrottle.Event
    typealias Effect = ControlThrottle.Effect

    struct Step: Sendable {
        let at: Int
        let event: Event
        let effects: [Effect]

        init(_ at: Int, _ event: Event, _ effects: [Effect] = []) {
            self.at = at
            self.event = event
            self.effects = effects
        }
    }

    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let steps: [Step]

        init(_ name: String, _ steps: [Step]) {
            testDescription = name
            self.steps = steps
        }
    }

    private static func set(_ value: Int64, _ ticket: Int) -> Event { .set(.integer(value), ticket) }
    private static func write(_ value: Int64, _ ticket: Int) -> Effect { .write(.integer(value), ticket) }
    private static func ok(_ ticket: Int, _ value: Int64) -> Effect { .answer(ticket, .success(.integer(value))) }
    private static let removed = Event.removed(.notReady(device: "d"))
    private static func superseded(_ ticket: Int) -> Effect { .answer(ticket, .failure(.superseded)) }

    static let rows = [
        Row(
            "the last of three values within the interval is written at its end",
            [
                Step(0, set(10, 1)), Step(20, set(20, 2), [superseded(1)]), Step(90, set(30, 3), [superseded(2)]),
                Step(99, .tick), Step(100, .tick, [write(30, 3)]), Step(110, .written(3), [ok(3, 30)]),
            ]
        ),
        Row(
            "a later value starts an interval of its own",
            [
                Step(0, set(30, 1)), Step(100, .tick, [write(30, 1)]), Step(110, .written(1), [ok(1, 30)]),
                Step(150, set(40, 2)), Step(249, .tick), Step(250, .tick, [write(40, 2)]),
            ]
        ),
        Row(
            "a value that returns within the interval is answered and not written",
            [
                Step(0, set(40, 1)), Step(100, .tick, [write(40, 1)]), Step(110, .written(1), [ok(1, 40)]),
                Step(251, set(50, 2)), Step(300, set(40, 3), [superseded(2)]), Step(351, .tick, [ok(3, 40)]),
            ]
        ),
        Row(
            "no write starts during another or within the interval after it",
            [
                Step(0, set(1, 1)), Step(100, .tick, [write(1, 1)]), Step(110, set(2, 2)), Step(300, .tick),
                Step(320, .written(1), [ok(1, 1)]), Step(419, .tick), Step(420, .tick, [write(2, 2)]),
            ]
        ),
        Row(
            "the interval also follows a slow write that fails",
            [
                Step(0, set(1, 1)), Step(100, .tick, [write(1, 1)]), Step(110, set(2, 2)),
                Step(900, .failed(1, .refused("no"), retryable: false), [.answer(1, .failure(.refused("no")))]),
                Step(999, .tick), Step(1000, .tick, [write(2, 2)]),
            ]
        ),
        Row(
            "a value that the device already shows is not written",
            [
                Step(0, set(5, 1)), Step(100, .tick, [write(5, 1)]), Step(110, .written(1), [ok(1, 5)]),
                Step(111, .observed(.integer(6))), Step(120, set(6, 2)), Step(220, .tick, [ok(2, 6)]),
                Step(230, set(5, 3)), Step(330, .tick, [write(5, 3)]),
            ]
        ),
        Row(
            "a change at the device does not stop a pending write",
            [
                Step(0, set(5, 1)), Step(50, .observed(.integer(9))), Step(100, .tick, [write(5, 1)]),
            ]
        ),
        Row(
            "a value set without a link is written when the link returns",
            [
                Step(0, .notReady), Step(10, set(5, 1)), Step(200, .tick), Step(3000, .ready, [write(5, 1)]),
            ]
        ),
        Row(
            "a value expires after too long without a link",
            [
                Step(0, .notReady), Step(10, set(5, 1)), Step(10_109, .tick),
                Step(10_110, .tick, [.answer(1, .failure(.timedOut))]), Step(20_000, .ready),
            ]
        ),
        Row(
            "a write that failed with the link is retried, other failures are answered",
            [
                Step(0, set(5, 1)), Step(100, .tick, [write(5, 1)]),
                Step(110, .failed(1, .notReady(device: "d"), retryable: true)),
                Step(360, .tick, [write(5, 1)]),
                Step(370, .failed(1, .refused("no"), retryable: false), [.answer(1, .failure(.refused("no")))]),
            ]
        ),
        Row(
            "after a failed write the former value is written again",
            [
                Step(0, set(5, 1)), Step(100, .tick, [write(5, 1)]), Step(110, .written(1), [ok(1, 5)]),
                Step(120, set(7, 2)), Step(220, .tick, [write(7, 2)]), Step(225, .observed(.integer(5))),
                Step(230, .failed(2, .timedOut, retryable: false), [.answer(2, .failure(.timedOut))]),
                Step(240, set(5, 3)), Step(340, .tick, [write(5, 3)]),
            ]
        ),
        Row(
            "a value reported after a failed write is not written",
            [
                Step(0, set(7, 1)), Step(100, .tick, [write(7, 1)]),
                Step(110, .failed(1, .timedOut, retryable: false), [.answer(1, .failure(.timedOut))]),
                Step(120, .observed(.integer(7))), Step(130, set(7, 2)), Step(230, .tick, [ok(2, 7)]),
            ]
        ),
        Row(
            "a waiting value fails when its device has left",
            [
                Step(0, set(5, 1)), Step(50, removed, [.answer(1, .failure(.notReady(device: "d")))]),
                Step(60, .ready), Step(100, .tick),
            ]
        ),
        Row(
            "a write to a device that has left is not repeated, and its value is not that of the next device",
            [
                Step(0, set(5, 1)), Step(100, .tick, [write(5, 1)]), Step(105, removed), Step(106, .ready),
                Step(107, .failed(1, .timedOut, retryable: true), [.answer(1, .failure(.timedOut))]),
                Step(110, set(6, 2)), Step(210, .tick, [write(6, 2)]), Step(215, removed), Step(216, .ready),
                Step(220, .written(2), [ok(2, 6)]),
                Step(230, set(6, 3)), Step(330, .tick, [write(6, 3)]),
            ]
        ),
        Row(
            "an answer to another write changes nothing",
            [Step(0, set(5, 1)), Step(100, .tick, [write(5, 1)]), Step(101, .written(7)), Step(102, .tick)]
        ),
        Row(
            "a trigger is written each time",
            [
                Step(0, .set(.trigger, 1)), Step(100, .tick, [.write(.trigger, 1)]),
                Step(110, .written(1), [.answer(1, .success(.trigger))]), Step(120, .set(.trigger, 2)),
                Step(220, .tick, [.write(.trigger, 2)]),
            ]
        ),
        Row(
            "the same value is written again after a reconnect",
            [
                Step(0, set(5, 1)), Step(100, .tick, [write(5, 1)]), Step(110, .written(1), [ok(1, 5)]),
                Step(120, .notReady), Step(130, .ready), Step(140, set(5, 2)), Step(240, .tick, [write(5, 2)]),
            ]
        ),
    ]

    @Test(arguments: rows)
    func `each sequence of events has the expected effects`(row: Row) {
        var throttle = ControlThrottle(interval: .milliseconds(100), isReported: true)
        for step in row.steps {
            let effects = throttle.handle(step.event, at: .milliseconds(step.at))
            #expect(effects == step.effects, "at \(step.at) ms")
        }
    }

    @Test func `the same value is written again if the device does not report its changes`() {
        var throttle = ControlThrottle(interval: .zero)
        #expect(throttle.handle(.set(.boolean(true), 1), at: .zero) == [.write(.boolean(true), 1)])
        _ = throttle.handle(.written(1), at: .zero)
        #expect(throttle.handle(.set(.boolean(true), 2), at: .zero) == [.write(.boolean(true), 2)])
    }

    @Test func `a value is written at once without an interval`() {
        var throttle = ControlThrottle(interval: .zero)
        #expect(throttle.handle(.set(.boolean(true), 1), at: .zero) == [.write(.boolean(true), 1)])
    }

    @Test(arguments: [10, 15, 3600])
    func `a value is written however long the interval is, also after a slow write`(seconds: Int) {
        var throttle = ControlThrottle(interval: .seconds(seconds))
        var now = Duration.zero
        for ticket in 1...3 {
            #expect(throttle.handle(Self.set(Int64(ticket), ticket), at: now) == [])
            // The former write ends.
            now += .seconds(seconds - 1)
            if ticket > 1 { #expect(throttle.handle(.written(ticket - 1), at: now).count == 1) }
            now = throttle.deadline ?? now
            #expect(throttle.handle(.tick, at: now) == [Self.write(Int64(ticket), ticket)])
        }
    }

    @Test func `a failed write that cannot be repeated in time is answered at once`() {
        var throttle = ControlThrottle(interval: .seconds(15))
        _ = throttle.handle(Self.set(5, 1), at: .zero)
        _ = throttle.handle(.tick, at: .seconds(15))
        let failure = Event.failed(1, .notReady(device: "d"), retryable: true)
        let answer = throttle.handle(failure, at: .seconds(16))
        #expect(answer == [.answer(1, .failure(.notReady(device: "d")))])
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `every request is answered exactly once in random histories`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        var throttle = ControlThrottle(interval: .milliseconds(100))
        var now = Duration.zero
        var answers: [Int: Int] = [:]
        var writing: Int?
        var ended = Duration.milliseconds(-100)
        func step(_ event: Event) {
            for effect in throttle.handle(event, at: now) {
                switch effect {
                case .answer(let ticket, _): answers[ticket, default: 0] += 1
                case .write(_, let ticket):
                    #expect(writing == nil, "one write at a time")
                    #expect(now >= ended + .milliseconds(100), "not within the interval after another")
                    writing = ticket
                }
            }
        }
        func answer(_ ticket: Int) {
            writing = nil
            ended = now
            let failure = Event.failed(ticket, .notReady(device: "d"), retryable: Bool.random(using: &random))
            step(Bool.random(using: &random) ? .written(ticket) : failure)
        }
        for ticket in 0..<500 {
            now += .milliseconds(Int.random(in: 1...150, using: &random))
            step(.set(.integer(.random(in: 0...5, using: &random)), ticket))
            if let writing, Bool.random(using: &random) { answer(writing) }
            step([.tick, .ready, .notReady, .observed(.integer(3))].randomElement(using: &random) ?? .tick)
        }
        step(.ready)
        while writing != nil || throttle.deadline != nil {
            if let writing { answer(writing) }
            now = max(now, throttle.deadline ?? now)
            step(.tick)
        }
        #expect(answers.count == 500 && answers.values.allSatisfy { $0 == 1 })
    }
}
