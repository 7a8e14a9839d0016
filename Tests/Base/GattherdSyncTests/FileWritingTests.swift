import GattherdSync
import Glibc
import Testing

@Suite(.timeLimit(.minutes(1))) struct FileWritingTests {
    @Test(arguments: [0, O_NONBLOCK])
    func `all bytes are written, however slowly they are read`(flags: Int32) async throws {
        var ends: [Int32] = [-1, -1]
        try #require(unsafe pipe(&ends) == 0)
        let (reader, writer) = (ends[0], ends[1])
        defer { close(reader) }
        _ = fcntl(writer, F_SETFL, flags)
        let sent = (0..<300_000).map { UInt8(truncatingIfNeeded: $0) }
        async let isWritten = NamedThread.result(name: "writer") {
            defer { close(writer) }
            return writeAll(sent, to: writer)
        }
        let received = await NamedThread.result(name: "reader") {
            var octets: [UInt8] = []
            var part = [UInt8](repeating: 0, count: 1000)
            while case let count = unsafe read(reader, &part, part.count), count > 0 { octets += part[..<count] }
            return octets
        }
        #expect(received == sent)
        #expect(await isWritten == true)
    }

    @Test func `writing to a closed pipe does not block`() throws {
        var ends: [Int32] = [-1, -1]
        try #require(unsafe pipe(&ends) == 0)
        close(ends[0])
        defer { close(ends[1]) }
        let before = signal(SIGPIPE, SIG_IGN)
        defer { _ = signal(SIGPIPE, before) }
        #expect(!writeAll([1], to: ends[1]))
    }

    @Test(arguments: [
        ("/var/lib/gattherd/gattherd.db", "/var/lib/gattherd"), ("data/gattherd.db", "data"), ("/gattherd.db", "/"),
        ("gattherd.db", "."),
    ])
    func `the folder of a path is never empty`(path: String, folder: String) {
        #expect(path.parentFolder == folder)
    }

    @Test func `an error of the system has its message`() {
        _ = close(-1)
        #expect("\(SystemError.current)" == "Bad file descriptor")
        #expect("\(SystemError(ENOENT))" == "No such file or directory")
    }
}
