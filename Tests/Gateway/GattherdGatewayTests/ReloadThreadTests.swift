import Dispatch
import GattherdModel
import GattherdSync
import Testing

@testable import GattherdGateway

@Suite(.timeLimit(.minutes(1))) struct ReloadThreadTests {
    /// A thread with a limit that the system refuses while `isRefused` is true.
    private static func thread(limit: Duration, isRefused: Locked<Bool> = Locked(false)) -> ReloadThread<Int> {
        var threads = ReloadThreads()
        threads.limit = limit
        let start = threads.start
        threads.start = { name, body in !isRefused.withLock(\.self) && start(name, body) }
        return ReloadThread(threads)
    }

    /// A reload that exceeds its limit until the gate opens.
    private static func hang(_ thread: ReloadThread<Int>, _ gate: DispatchSemaphore) async -> LatestValue<Bool> {
        let hasEnded = LatestValue(false)
        let error = await #expect(throws: GatewayError.self) {
            try await thread.result(ended: { hasEnded.set(true) }) {
                gate.wait()
                return 1
            }
        }
        #expect(error?.kind == .unread)
        return hasEnded
    }

    @Test func `files that are read in time are the result`() async throws {
        let thread = Self.thread(limit: .seconds(50))
        for number in 1...3 {
            let result = try await thread.result(ended: { Issue.record("a late end") }, of: { number })
            #expect(result == number)
            #expect(thread.takeLateEnd() == nil)
        }
    }

    @Test func `the late result of a reload that exceeds the limit is taken once, without another reading`() async {
        let (thread, gate) = (Self.thread(limit: .milliseconds(1)), DispatchSemaphore(value: 0))
        let hasEnded = await Self.hang(thread, gate)
        #expect(!hasEnded.state)
        #expect(thread.takeLateEnd() == nil)
        gate.signal()
        for await isDue in hasEnded.watch() where isDue { break }
        #expect(thread.takeLateEnd() == .read(1))
        #expect(thread.takeLateEnd() == nil)
    }

    @Test func `a request during a reload that hangs fails, starts no thread, and makes its result outdated`() async {
        let (thread, gate) = (Self.thread(limit: .milliseconds(1)), DispatchSemaphore(value: 0))
        let hasEnded = await Self.hang(thread, gate)
        let error = await #expect(throws: GatewayError.self) {
            try await thread.result(ended: {}) {
                Issue.record("a second thread reads")
                return 2
            }
        }
        #expect(error?.kind == .unread)
        gate.signal()
        for await isDue in hasEnded.watch() where isDue { break }
        #expect(thread.takeLateEnd() == .outdated)
    }

    @Test func `a reload without a thread fails, and keeps the late result of an earlier one`() async throws {
        let isRefused = Locked(false)
        let thread = Self.thread(limit: .milliseconds(1), isRefused: isRefused)
        let gate = DispatchSemaphore(value: 0)
        let hasEnded = await Self.hang(thread, gate)
        gate.signal()
        for await isDue in hasEnded.watch() where isDue { break }
        isRefused.withLock { $0 = true }
        let error = await #expect(throws: GatewayError.self) { try await thread.result(ended: {}, of: { 2 }) }
        #expect(error?.kind == .noThread)
        #expect(thread.takeLateEnd() == .read(1))
        let second = await #expect(throws: GatewayError.self) { try await thread.result(ended: {}, of: { 3 }) }
        #expect(second?.kind == .noThread, "the thread that was refused does not count as one that hangs")
        #expect(thread.takeLateEnd() == nil)
    }

    @Test func `a reload after the end of a late one discards its result`() async throws {
        let (thread, gate) = (Self.thread(limit: .milliseconds(1)), DispatchSemaphore(value: 0))
        let hasEnded = await Self.hang(thread, gate)
        gate.signal()
        for await isDue in hasEnded.watch() where isDue { break }
        // The second reload may be late too.
        let second = LatestValue(false)
        let result = try? await thread.result(ended: { second.set(true) }, of: { 2 })
        if result == nil { for await isDue in second.watch() where isDue { break } }
        #expect(thread.takeLateEnd() == (result == nil ? .read(2) : nil))
    }
}

@Suite struct ReloadStateTests {
    @Test func `the status tells files that hang from wrong ones`() {
        var state = ReloadState()
        state.record(.unread("a file system hangs"))
        #expect(state.status?.error == "a file system hangs" && state.status?.unread == true)
        state.record(.failed("g.yaml:1:1: error"))
        #expect(state.status?.error == "g.yaml:1:1: error" && state.status?.unread == nil)
        state.record(.unread("a file system hangs"))
        state.record(.done(waiting: []))
        #expect(state.status == nil)
    }
}

extension ReloadThread<Int>.LateEnd: Equatable {
    static func == (one: Self, other: Self) -> Bool {
        switch (one, other) {
        case (.read(let one), .read(let other)): one == other
        case (.outdated, .outdated): true
        default: false
        }
    }
}
