import GattherdSync
import Glibc
import Testing

/// A loop with a group, whose handlers record the bytes that they read.
private final class Fixture: @unchecked Sendable {
    let loop = EventLoop(name: "group")
    /// Confined to the loop's thread, as are the others.
    private var group: DescriptorGroup?
    private var read: [UInt8] = []
    private var reports = 0
    private var awaited: (count: Int, CheckedContinuation<Void, Never>)?

    /// Runs `body` with the group on the loop's thread.
    func with<Result: Sendable>(_ body: @escaping @Sendable (DescriptorGroup) -> Result) async -> Result {
        await withCheckedContinuation { done in
            loop.execute { [self] in done.resume(returning: body(openGroup())) }
        }
    }

    private func openGroup() -> DescriptorGroup {
        if let group { return group }
        let group = DescriptorGroup(on: loop) { [self] in
            reports += 1
            _ = self.group?.callHandlers()
        }
        self.group = group
        return group
    }

    /// Watches a reader; each report reads one byte.
    func watch(_ reader: Int32) async {
        await with { [self] group in
            do throws(WatchError) {
                try group.watch(reader, for: .readable) { [self] _ in
                    var octet: UInt8 = 0
                    if unsafe Glibc.read(reader, &octet, 1) == 1 { read.append(octet) }
                    if let awaited, read.count >= awaited.count {
                        self.awaited = nil
                        awaited.1.resume()
                    }
                }
            } catch {
                Issue.record(error)
            }
        }
    }

    /// The bytes that were read, once there are so many.
    func bytes(_ count: Int) async -> [UInt8] {
        await withCheckedContinuation { (done: CheckedContinuation<Void, Never>) in
            loop.execute { [self] in
                guard read.count < count else { return done.resume() }
                awaited = (count, done)
            }
        }
        return await with { [self] _ in read }
    }

    var reportCount: Int { get async { await with { [self] _ in reports } } }

    /// Waits for a turn of the loop in which all descriptors were looked at.
    func turn() async {
        for _ in 0..<2 {
            await withCheckedContinuation { done in
                loop.execute { [self] in loop.schedule(after: .zero) { done.resume() } }
            }
        }
    }
}

@Suite(.timeLimit(.minutes(3))) struct DescriptorGroupTests {
    private let fixture = Fixture()
    private let pipes = (0..<150).map { _ in Pipe() }

    @Test func `all descriptors of a group are reported`() async {
        for pipe in pipes { await fixture.watch(pipe.reader) }
        for pipe in pipes { pipe.write("a") }
        #expect(await fixture.bytes(150).count == 150)
        fixture.loop.stop()
    }

    @Test func `a paused group reports nothing, and afterwards what came meanwhile`() async {
        await fixture.watch(pipes[0].reader)
        await fixture.with { group in #expect(throws: Never.self) { try group.pause() } }
        await fixture.watch(pipes[1].reader)
        pipes[0].write("a")
        pipes[1].write("b")
        await fixture.turn()
        #expect(await fixture.reportCount == 0)
        await fixture.with { group in #expect(throws: Never.self) { try group.resume() } }
        #expect(await fixture.bytes(2).sorted() == Array("ab".utf8))
        fixture.loop.stop()
    }

    @Test func `a group that is paused before its first descriptor reports nothing`() async {
        await fixture.watch(pipes[0].reader)
        let reader = pipes[0].reader
        await fixture.with { group in
            group.unwatch(reader)
            #expect(throws: Never.self) { try group.pause() }
        }
        await fixture.watch(pipes[1].reader)
        pipes[1].write("b")
        await fixture.turn()
        #expect(await fixture.reportCount == 0)
        fixture.loop.stop()
    }

    @Test func `handlers can be called during a pause`() async {
        await fixture.watch(pipes[0].reader)
        await fixture.with { group in #expect(throws: Never.self) { try group.pause() } }
        pipes[0].write("a")
        #expect(await fixture.with { $0.callHandlers() })
        #expect(await fixture.bytes(1) == Array("a".utf8))
        fixture.loop.stop()
    }

    @Test func `more descriptors than one call handles are announced`() async {
        for pipe in pipes { await fixture.watch(pipe.reader) }
        await fixture.with { group in #expect(throws: Never.self) { try group.pause() } }
        for pipe in pipes { pipe.write("a") }
        #expect(await !fixture.with { $0.callHandlers() })
        #expect(await fixture.with { $0.callHandlers() })
        #expect(await fixture.bytes(150).count == 150)
        fixture.loop.stop()
    }

    @Test func `a removed descriptor is not reported, and the group can be used again`() async {
        await fixture.watch(pipes[0].reader)
        let reader = pipes[0].reader
        await fixture.with { $0.unwatch(reader) }
        pipes[0].write("a")
        await fixture.watch(pipes[1].reader)
        pipes[1].write("b")
        #expect(await fixture.bytes(1) == Array("b".utf8))
        fixture.loop.stop()
    }

    @Test func `watching a plain file is an error, and leaves the group empty`() async {
        let file = unsafe open("/proc/self/status", O_RDONLY)
        let fails = await fixture.with { group in
            do throws(WatchError) {
                try group.watch(file, for: .readable) { _ in }
                return false
            } catch {
                return true
            }
        }
        #expect(fails)
        close(file)
        await fixture.watch(pipes[0].reader)
        pipes[0].write("a")
        #expect(await fixture.bytes(1) == Array("a".utf8))
        fixture.loop.stop()
    }
}
