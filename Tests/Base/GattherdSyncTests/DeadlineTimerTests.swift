import GattherdSync
import Testing

/// Timers whose deadlines move.
struct DeadlineTimerTests {
    private let loop = EventLoop(name: "deadlines")

    /// Runs `body` on the loop; returns what happened within 40 ms, with a mark at 15 ms.
    private func happenings(_ body: @escaping @Sendable (DeadlineTimer, LoopTime, Notes) -> Void) async -> [String] {
        defer { loop.stop() }
        return await withCheckedContinuation { done in
            loop.execute { [loop] in
                let (time, notes) = (LoopTime(loop), Notes())
                let timer = DeadlineTimer(time)
                loop.schedule(after: .milliseconds(15)) {
                    notes.list.append("mark")
                    loop.schedule(after: .milliseconds(25)) {
                        withExtendedLifetime(timer) { done.resume(returning: notes.list) }
                    }
                }
                body(timer, time, notes)
            }
        }
    }

    @Test func `a deadline that moves to a later time fires once, then`() async {
        let order = await happenings { timer, time, notes in
            timer.set(time.now + .milliseconds(2)) { notes.list.append("first") }
            timer.set(time.now + .milliseconds(25)) { notes.list.append("second") }
        }
        #expect(order == ["mark", "second"])
    }

    @Test func `a deadline that moves to an earlier time fires then`() async {
        let order = await happenings { timer, time, notes in
            timer.set(time.now + .milliseconds(25)) { notes.list.append("first") }
            timer.set(time.now + .milliseconds(2)) { notes.list.append("second") }
        }
        #expect(order == ["second", "mark"])
    }

    @Test func `a cancelled deadline does not fire, also after it has moved`() async {
        let order = await happenings { timer, time, notes in
            timer.set(time.now + .milliseconds(2)) { notes.list.append("first") }
            timer.set(time.now + .milliseconds(25)) { notes.list.append("second") }
            timer.set(nil)
            if timer.isSet { notes.list.append("set") }
        }
        #expect(order == ["mark"])
    }

    @Test func `an action may set the timer again`() async {
        let order = await happenings { timer, time, notes in
            timer.set(time.now + .milliseconds(1)) {
                notes.list.append(timer.isSet ? "still set" : "fired")
                timer.set(time.now + .milliseconds(25)) { notes.list.append("again") }
            }
        }
        #expect(order == ["fired", "mark", "again"])
    }
}

/// The happenings in order; on the loop's thread only.
private final class Notes {
    var list: [String] = []
}
