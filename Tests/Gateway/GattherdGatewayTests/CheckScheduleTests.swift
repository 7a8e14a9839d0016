import GattherdSync
import TestKit
import Testing

@testable import GattherdGateway

@Suite(.timeLimit(.minutes(1))) struct CheckScheduleTests {
    @Test func `a shorter interval ends the current wait`() async throws {
        let schedule = CheckSchedule(.seconds(100_000))
        let checks = Locked(0)
        let task = Task { await schedule.run { checks.withLock { $0 += 1 } } }
        schedule.set(.milliseconds(1))
        try await eventually { checks.withLock { $0 } > 1 }
        task.cancel()
        await task.value
    }

    @Test func `checks follow the shortest time to forget, and waiting peripherals`() {
        let interval = CheckSchedule.interval
        #expect(interval([], false) == .seconds(900))
        #expect(interval([.seconds(86_400), .seconds(60)], false) == .seconds(30))
        #expect(interval([.milliseconds(1)], false) == .seconds(1))
        #expect(interval([.seconds(86_400)], true) == .seconds(10))
        #expect(interval([.seconds(4)], true) == .seconds(2))
    }
}
