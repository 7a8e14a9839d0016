import GattherdProcess
import Glibc
import Testing

@Suite(.timeLimit(.minutes(1))) struct ChildProcessTests {
    @Test func `a child inherits only the standard descriptors`() async throws {
        let inheritable = dup(0)
        defer { close(inheritable) }
        try #require(inheritable > 2)
        let child = try ChildProcess("sh", ["-c", "test -e /dev/fd/0 && test ! -e /dev/fd/\(inheritable)"])
        #expect(await child.wait() == .exited(0))
    }
}
