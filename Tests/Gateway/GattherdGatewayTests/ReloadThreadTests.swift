import Dispatch
import GattherdSync
import Testing

@testable import GattherdGateway

@Suite(.timeLimit(.minutes(1))) struct ReloadThreadTests {
    @Test func `files that are read in time are the result`() async throws {
        let thread = ReloadThread(limit: .seconds(50))
        for number in 1...3 {
            #expect(try await thread.result(again: { Issue.record("another reload") }, of: { number }) == number)
        }
    }

    @Test func `a reload that hangs fails, starts no other one, and is repeated when it ends`() async throws {
        let thread = ReloadThread(limit: .milliseconds(1))
        let gate = DispatchSemaphore(value: 0)
        let again = LatestValue(false)
        await #expect(throws: GatewayError.self) {
            try await thread.result(again: { again.set(true) }, of: { gate.wait() })
        }
        await #expect(throws: GatewayError.self) {
            try await thread.result(again: {}, of: { Issue.record("a second thread reads") })
        }
        #expect(!again.state)
        gate.signal()
        for await isDue in again.watch() where isDue { break }
        while (try? await thread.result(again: {}, of: { true })) == nil { await Task.yield() }
    }
}
