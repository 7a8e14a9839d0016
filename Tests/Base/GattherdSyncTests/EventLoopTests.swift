import GattherdSync
import Glibc
import Testing

/// An actor whose executor is a loop.
private actor Resident {
    private let loop: EventLoop
    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }
    private(set) var heard: [Int] = []

    init(on loop: EventLoop) {
        self.loop = loop
    }

    var isAtHome: Bool { loop.isCurrent }

    func hear(_ number: Int) {
        heard.append(number)
    }

    func fire(after delays: [Duration], cancelling cancelled: Int? = nil) async -> [Int] {
        await withCheckedContinuation { done in
            for (index, delay) in delays.enumerated() {
                let timer = loop.schedule(after: delay) { self.heard.append(index) }
                if index == cancelled { loop.cancel(timer) }
            }
            loop.schedule(after: delays.max() ?? .zero) { done.resume(returning: self.heard) }
        }
    }

    /// Reads `count` bytes from `descriptor`, then stops watching.
    func read(_ count: Int, from descriptor: Int32) async throws -> [DescriptorEvents] {
        var seen: [DescriptorEvents] = []
        return try await withCheckedThrowingContinuation { done in
            do {
                try loop.watch(descriptor, for: .readable) { [loop] ready in
                    var octet: UInt8 = 0
                    seen.append(ready)
                    _ = unsafe Glibc.read(descriptor, &octet, 1)
                    guard seen.count == count else { return }
                    loop.unwatch(descriptor)
                    done.resume(returning: seen)
                }
            } catch {
                done.resume(throwing: error)
            }
        }
    }

    /// Watches both readers; the first watcher that is called unwatches the other.
    func callsWhenEachUnwatchesTheOther(_ one: Int32, _ other: Int32) async throws -> Int {
        var calls = 0
        try loop.watch(one, for: .readable) { [loop] _ in
            calls += 1
            for descriptor in [one, other] { loop.unwatch(descriptor) }
        }
        try loop.watch(other, for: .readable) { [loop] _ in
            calls += 1
            for descriptor in [one, other] { loop.unwatch(descriptor) }
        }
        await withCheckedContinuation { done in
            loop.schedule(after: .milliseconds(5)) { done.resume() }
        }
        return calls
    }
}

extension Resident {
    /// Watches both; the first watcher that is called closes the other descriptor and reuses its number for `silent`.
    func callsOfSuccessor(_ one: Int32, _ other: Int32, silent: Int32) async throws -> Int {
        var calls = 0
        func succeed(_ descriptor: Int32, by caller: Int32) {
            for descriptor in [one, other] { loop.unwatch(descriptor) }
            dup2(silent, descriptor)
            do { try loop.watch(descriptor, for: .readable) { _ in calls += 1 } } catch { Issue.record(error) }
        }
        try loop.watch(one, for: .readable) { _ in succeed(other, by: one) }
        try loop.watch(other, for: .readable) { _ in succeed(one, by: other) }
        await withCheckedContinuation { done in
            loop.schedule(after: .milliseconds(5)) { done.resume() }
        }
        return calls
    }
}

/// Both ends of a pipe, closed with the test.
final class Pipe: Sendable {
    let reader: Int32
    let writer: Int32

    init() {
        var ends: [Int32] = [-1, -1]
        _ = unsafe pipe(&ends)
        (reader, writer) = (ends[0], ends[1])
    }

    deinit {
        for end in [reader, writer] { close(end) }
    }

    func write(_ text: String) {
        _ = unsafe Glibc.write(writer, text, text.utf8.count)
    }
}

@Suite(.timeLimit(.minutes(3))) struct EventLoopTests {
    private let loop = EventLoop(name: "loop under test")

    @Test func `an actor on the loop runs on its thread`() async {
        let resident = Resident(on: loop)
        #expect(await resident.isAtHome)
        #expect(!loop.isCurrent)
        loop.stop()
    }

    @Test func `a task that prefers the loop stays on its thread while it calls an actor`()
        async
    {
        let resident = Resident(on: loop)
        let places = await Task(executorPreference: LoopTaskExecutor(loop)) { [loop] in
            [loop.isCurrent, await resident.isAtHome, loop.isCurrent]
        }.value
        #expect(places == [true, true, true])
        loop.stop()
    }

    @Test func `closures that one thread enqueues run in order`() async {
        let resident = Resident(on: loop)
        for number in 0..<1000 {
            loop.execute { resident.assumeIsolated { $0.hear(number) } }
        }
        #expect(await resident.heard == Array(0..<1000))
        loop.stop()
    }

    @Test func `work from many threads runs completely and serially`() async {
        let resident = Resident(on: loop)
        await withDiscardingTaskGroup { group in
            for number in 0..<1000 { group.addTask { await resident.hear(number) } }
        }
        #expect(await resident.heard.sorted() == Array(0..<1000))
        loop.stop()
    }

    @Test func `timers fire by deadline, equal ones in the order they were set`() async {
        // Deadlines that differ do so by minutes, because the thread may be suspended between two calls that set them.
        let delays: [Duration] = [.zero, .zero, .seconds(-60), .seconds(-180), .seconds(-120)]
        let fired = await Resident(on: loop).fire(after: delays)
        #expect(fired == [3, 4, 2, 0, 1])
        loop.stop()
    }

    @Test func `a cancelled timer does not fire`() async {
        let fired = await Resident(on: loop).fire(after: [.zero, .milliseconds(1), .milliseconds(2)], cancelling: 1)
        #expect(fired == [0, 2])
        loop.stop()
    }

    @Test func `a watcher is called as often as the descriptor is ready`() async throws {
        let pipe = Pipe()
        pipe.write("abc")
        let seen = try await Resident(on: loop).read(3, from: pipe.reader)
        #expect(seen == [.readable, .readable, .readable])
        loop.stop()
    }

    @Test func `a watcher is called when the other end closes`() async throws {
        var ends: [Int32] = [-1, -1]
        try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        close(ends[1])
        let seen = try await Resident(on: loop).read(1, from: ends[0])
        #expect(seen.first?.contains(.hangUp) == true)
        close(ends[0])
        loop.stop()
    }

    @Test func `a watcher removed in the same turn is not called`() async throws {
        let (one, other) = (Pipe(), Pipe())
        one.write("x")
        other.write("x")
        let resident = Resident(on: loop)
        #expect(try await resident.callsWhenEachUnwatchesTheOther(one.reader, other.reader) == 1)
        loop.stop()
    }

    @Test func `an event of a closed descriptor does not reach a new watcher of the same number`() async throws {
        let (one, other, silent) = (Pipe(), Pipe(), Pipe())
        one.write("x")
        other.write("x")
        let resident = Resident(on: loop)
        #expect(try await resident.callsOfSuccessor(one.reader, other.reader, silent: silent.reader) == 0)
        loop.stop()
    }

    @Test func `watching a plain file is an error`() async {
        let file = unsafe open("/etc/passwd", O_RDONLY)
        let resident = Resident(on: loop)
        await #expect(throws: WatchError.self) {
            try await resident.read(1, from: file)
        }
        close(file)
        loop.stop()
    }

    @Test func `a job enqueued after the stop still runs`() async {
        let resident = Resident(on: loop)
        loop.stop()
        for number in 0..<100 {
            await resident.hear(number)
            loop.stop()
        }
        #expect(await resident.heard == Array(0..<100))
    }

    @Test func `work enqueued before the stop runs`() async {
        let resident = Resident(on: loop)
        await withCheckedContinuation { done in
            loop.execute { resident.assumeIsolated { $0.hear(1) } }
            loop.execute { done.resume() }
            loop.stop()
        }
    }
}
