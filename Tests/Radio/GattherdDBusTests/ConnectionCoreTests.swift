import GattherdSync
import Glibc
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

    @Test func `the handlers of the end run before the bus sees it`() async throws {
        #expect(try await runsHandlersFirst { core, _ in core.shutDown() })
    }

    @Test func `the handlers run first as well when the bus sends invalid bytes`() async throws {
        #expect(try await runsHandlersFirst { _, other in _ = unsafe send(other, "not a D-Bus message", 19, 0) })
    }
}
