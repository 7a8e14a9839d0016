import GattherdSync
import Glibc
import TestKit
import Testing

@testable import GattherdDBus

@Suite(.timeLimit(.minutes(3))) struct ConnectionCoreTests {
    /// Ends a connection by `end`, and returns true if the other side saw no end before the handlers had run.
    private func runsHandlersFirst(_ end: @escaping @Sendable (ConnectionCore, Int32) -> Void) async throws -> Bool {
        var ends: [Int32] = [-1, -1]
        try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        let (own, other) = (ends[0], ends[1])
        let loop = EventLoop(name: "test")
        let isOpen = await withCheckedContinuation { seen in
            loop.execute {
                let socket = BusSocket(owning: own, passesDescriptors: true)
                let core = ConnectionCore(socket, on: loop, readDelay: .milliseconds(2))
                core.handlers.onDisconnect {
                    var byte: UInt8 = 0
                    let count = unsafe recv(other, &byte, 1, Int32(MSG_DONTWAIT))
                    seen.resume(returning: count == -1 && errno == EAGAIN)
                }
                core.attach()
                end(core, other)
            }
        }
        var byte: UInt8 = 0
        #expect(unsafe recv(other, &byte, 1, 0) == 0)
        close(other)
        loop.stop()
        return isOpen
    }

    @Test func `the handlers of the end run before the bus sees the connection close`() async throws {
        #expect(try await runsHandlersFirst { core, _ in core.shutDown() })
    }

    @Test func `the handlers of the end run first also after invalid bytes of the bus`() async throws {
        #expect(try await runsHandlersFirst { _, other in _ = unsafe send(other, "not a D-Bus message", 19, 0) })
    }

    @Test func `at most one thread waits for a bus that hangs`() async throws {
        let bus = try PrivateBus()
        let address = DBusAddress.address(bus.address)
        let loop = EventLoop(name: "test")
        bus.pause()
        for _ in 0..<10 {
            await #expect(throws: DBusError.self) {
                try await DBusConnection.open(address, on: loop, timeout: .milliseconds(20))
            }
            #expect(address.hangingThreads <= 1)
        }
        bus.resume()
        let connection = try await DBusConnection.open(address, on: loop)
        #expect(await connection.isConnected)
        await connection.close()
        loop.stop()
    }

    @Test func `a backlog is read in one bounded batch per turn of the loop`() async throws {
        var ends: [Int32] = [-1, -1]
        try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        let (own, other) = (ends[0], ends[1])
        let signal = try OutgoingMessage.signal("/a", "a.b", "C", to: nil, []).bytes(serial: 1)
        let backlog = Array(repeatElement(signal, count: Turns.messages).joined())
        try #require(unsafe send(other, backlog, backlog.count, Int32(MSG_DONTWAIT)) == backlog.count)
        let loop = EventLoop(name: "test")
        let counts = await withCheckedContinuation { read in
            loop.execute { Turns(own, on: loop) { read.resume(returning: $0) }.start() }
        }
        #expect(counts.reduce(0, +) == Turns.messages)
        #expect(counts.allSatisfy { $0 <= 256 }, "\(counts)")
        close(other)
        loop.stop()
    }
}

/// The numbers of messages that a connection handles in the turns of its loop, until all have come.
private final class Turns {
    static let messages = 1500

    private let core: ConnectionCore
    private let loop: EventLoop
    private let report: ([Int]) -> Void
    private var counts: [Int] = []
    private var count = 0

    init(_ descriptor: Int32, on loop: EventLoop, _ report: @escaping ([Int]) -> Void) {
        let socket = BusSocket(owning: descriptor, passesDescriptors: true)
        core = ConnectionCore(socket, on: loop, readDelay: .milliseconds(2))
        (self.loop, self.report) = (loop, report)
    }

    func start() {
        core.handlers.onSignal { [self] _ in count += 1 }
        core.attach()
        endTurn()
    }

    private func endTurn() {
        counts.append(count)
        count = 0
        guard counts.reduce(0, +) < Self.messages else {
            core.shutDown()
            return report(counts)
        }
        loop.schedule(after: .zero) { [self] in endTurn() }
    }
}
