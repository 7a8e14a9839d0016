import GattherdSync
import Testing

@Suite(.timeLimit(.minutes(1))) struct LoopClockTests {
    @Test func `a sleep does not end early`() async throws {
        let clock = LoopClock.loop
        for delay in [Duration.zero, .nanoseconds(1), .microseconds(300), .milliseconds(20)] {
            let start = clock.now
            try await Task.sleep(for: delay, clock: .loop)
            #expect(clock.now - start >= delay)
        }
    }

    @Test func `the shorter of two sleeps ends first`() async {
        let start = LoopClock.loop.now
        let order = await withTaskExecutorPreference(LoopTaskExecutor(.tasks)) {
            await withTaskGroup { group in
                for delay in [60, 20, 40] {
                    group.addTask {
                        try? await LoopClock.loop.sleep(until: start + .milliseconds(delay))
                        return delay
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
        }
        #expect(order == [20, 40, 60])
    }

    @Test func `a cancelled sleep ends at once`() async throws {
        for round in 0..<200 {
            await withThrowingTaskGroup { group in
                group.addTask { try await Task.sleep(for: .seconds(3600), clock: .loop) }
                for _ in 0..<round % 20 { await Task.yield() }
                group.cancelAll()
                await #expect(throws: CancellationError.self) { try await group.waitForAll() }
            }
        }
    }

    @Test func `tasks that prefer a loop sleep and wake on its thread`() async throws {
        let isAtHome = await withTaskExecutorPreference(LoopTaskExecutor(.tasks)) {
            let before = EventLoop.tasks.isCurrent
            try? await Task.sleep(for: .milliseconds(1), clock: .loop)
            return before && EventLoop.tasks.isCurrent
        }
        #expect(isAtHome)
    }
}
