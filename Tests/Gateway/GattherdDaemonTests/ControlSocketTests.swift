import Dispatch
import FoundationEssentials
import GattherdBluetooth
import GattherdLog
import GattherdModel
import GattherdSync
import Glibc
import Synchronization
import TestKit
import Testing

@testable import GattherdDaemon

@Suite(.timeLimit(.minutes(3))) struct ControlSocketTests {
    /// Runs `body`, which may block, on a separate thread while a socket replies with `answer`.
    private func serve(
        at path: String,
        isTrusted: @escaping @Sendable (ControlPeer) -> Bool = { $0.mayChange },
        _ answer: @escaping @Sendable (ControlCall) async -> ControlReply = { .done("\($0)") },
        while body: @escaping @Sendable () throws -> Void
    ) async throws {
        let socket = try ControlSocket(path: path, isTrusted: isTrusted, log: .silent)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await socket.run { call, _ in await answer(call) } }
            defer { group.cancelAll() }
            try await withCheckedThrowingContinuation { end in
                _ = NamedThread(name: "client") { end.resume(with: Result { try body() }) }
            }
        }
    }

    @Test func `a client sends several requests and receives each reply`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("s")
        try await serve(at: path) {
            for device in ["a", "ä \" \n"] {
                let call = ControlCall.connect(device: device)
                let reply = try ControlClient.ask(call, at: path)
                #expect(reply == .done("\(call)"))
            }
        }
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test func `a client of the group may ask, and may change nothing`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("s")
        try await serve(at: path, isTrusted: { _ in false }) {
            #expect(try ControlClient.ask(.status, at: path) == .done("status"))
            #expect(try ControlClient.ask(.bonds, at: path) == .done("bonds"))
            let changes: [ControlCall] = [
                .connect(device: "a"), .disconnect(device: "a"), .set(device: "a", control: "b", value: "1"), .reload,
                .forgetBond("a"), .table(device: "a"), .read(device: "a", attribute: "b"),
                .write(device: "a", attribute: "b", hex: "00", withResponse: true),
                .watch(device: "a", attribute: "b"),
            ]
            for call in changes {
                guard case .refused(let reason) = try ControlClient.ask(call, at: path) else {
                    Issue.record("\(call) is answered")
                    continue
                }
                #expect(reason.contains("only root and the daemon's user"))
            }
        }
    }

    @Test func `the user of a client is known from the kernel`() {
        var ends: [Int32] = [-1, -1]
        #expect(unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        defer { for end in ends { close(end) } }
        #expect(ControlPeer(of: ends[0]).user == geteuid() && ControlPeer(of: ends[0]).mayChange)
        #expect(ControlPeer(of: -1).user == nil && !ControlPeer(of: -1).mayChange)
    }

    /// A reply that is longer than what a socket holds.
    private static var longReply: ControlReply {
        let time = Timestamp(microseconds: 0)
        var status = DaemonStatus(version: "1", gateway: "g", started: time, history: .init(at: "h", seq: 1))
        status.devices = (0..<1000).map { number in
            var link = LinkStatus(device: "device-\(number)", state: .backingOff, since: time)
            link.detail = String(repeating: "long ago ", count: 30)
            return DaemonStatus.Device(link, address: "C0:FF:EE:00:00:01", profiles: ["heart-rate"])
        }
        return .status(status)
    }

    @Test func `a status of a thousand devices arrives complete`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("s")
        let answer = Self.longReply
        try await serve(at: path, { _ in answer }) {
            let reply = try ControlClient.ask(.status, at: path)
            #expect(reply == answer)
        }
    }

    @Test func `a long reply arrives complete at a client that has closed its write side`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("s")
        let answer = Self.longReply
        try await serve(at: path, { _ in answer }) {
            for isLate in [false, true] {
                let client = try RawClient(path)
                client.write("{\"status\":{}}\n")
                if isLate { client.waitForReply() }
                client.endWriting()
                #expect(client.readLine().utf8.count == answer.line.count - 1)
                #expect(client.readLine().isEmpty)
            }
        }
    }

    @Test func `a client that leaves while its reply waits frees its place`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("s")
        let answer = Self.longReply
        try await serve(at: path, { _ in answer }) {
            for _ in 0..<64 {
                let client = try RawClient(path)
                client.write("{\"status\":{}}\n")
                client.waitForReply()
                client.endWriting()
                client.end()
            }
            while (try? ControlClient.ask(.status, at: path)) != answer { sched_yield() }
        }
    }

    /// Sends values until the client disconnects.
    private func watch(_ stream: ControlStream, _ ended: LatestValue<Int>) async -> ControlReply {
        stream.send(.watching)
        for number in 0..<3 { stream.send(.done("\(number)")) }
        await stream.waitForHangUp()
        ended.update { $0 += 1 }
        return .refused("the client has disconnected")
    }

    @Test func `a watch has several replies and ends when its client disconnects`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("s")
        let ended = LatestValue(0)
        let socket = try ControlSocket(path: path, log: .silent)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await socket.run { _, stream in await watch(stream, ended) } }
            defer { group.cancelAll() }
            for round in 1...3 {
                var replies: [ControlReply] = []
                let call = ControlCall.watch(device: "strap", attribute: "a")
                for await reply in try ControlClient.replies(to: call, at: path) {
                    replies.append(reply)
                    if replies.count == 4 { break }
                }
                #expect(replies == [.watching, .done("0"), .done("1"), .done("2")])
                for await count in ended.watch() where count == round { break }
            }
        }
    }

    @Test(arguments: ["", "{}", "nonsense", "{\"dance\":{}}", "[1]", "\u{0}\u{1}", "{\"connect\":{}}"])
    func `an invalid request is refused and the socket keeps running`(line: String) async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("s")
        try await serve(at: path) {
            let client = try RawClient(path)
            client.write(line + "\n{\"status\":{}}\n")
            #expect(client.readLine().contains("refused"))
            #expect(client.readLine().contains("done"))
        }
    }

    @Test func `a client that has closed its write side receives its reply`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("s")
        try await serve(at: path) {
            let client = try RawClient(path)
            client.write("{\"status\":{}}\n{\"status\":{}}\n{\"sta")
            client.endWriting()
            #expect(client.readLine().contains("done"))
            #expect(client.readLine().contains("done"))
            #expect(client.readLine().isEmpty)
        }
    }

    @Test func `an unterminated line is refused and closes the connection`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("s")
        try await serve(at: path) {
            let client = try RawClient(path)
            client.write(String(repeating: "x", count: 100_000))
            #expect(client.readLine().contains("more than 65536 bytes"))
            #expect(client.readLine().isEmpty)
            #expect(throws: Never.self) { try ControlClient.ask(.status, at: path) }
        }
    }

    @Test func `clients above the limit are refused until others disconnect`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("s")
        try await serve(at: path) {
            let clients = try (0..<64).map { _ in try RawClient(path) }
            for client in clients {
                client.write("{\"status\":{}}\n")
                #expect(client.readLine().contains("done"))
            }
            let late = try RawClient(path)
            #expect(late.readLine().contains("serves 64 clients already"))
            #expect(late.readLine().isEmpty)
            #expect(try ControlClient.ask(.status, at: path).isRefused)
            clients[0].end()
            #expect(clients[1].isOpen)
            #expect(throws: Never.self) { try untilServed { try ControlClient.ask(.status, at: path) } }
        }
    }

    @Test func `clients of the group leave places for root and the daemon's user`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("s")
        let isOwner = LatestValue(false)
        try await serve(at: path, isTrusted: { _ in isOwner.state }) {
            let clients = try (0..<48).map { _ in try RawClient(path) }
            for client in clients {
                client.write("{\"status\":{}}\n")
                #expect(client.readLine().contains("done"))
            }
            #expect(try RawClient(path).readLine().contains("serves 48 clients already"))
            isOwner.set(true)
            #expect(try ControlClient.ask(.reload, at: path) == .done("reload"))
            let areOpen = clients.allSatisfy { $0.isOpen }
            #expect(areOpen)
        }
    }

    @Test func `the reply to a disconnected client reaches no other client`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("s")
        let (gate, open) = AsyncStream.makeStream(of: Void.self)
        let isFirst = Atomic(true)
        let isAsked = DispatchSemaphore(value: 0)
        let answer: @Sendable (ControlCall) async -> ControlReply = { _ in
            guard isFirst.exchange(false, ordering: .relaxed) else { return .done("mine") }
            isAsked.signal()
            for await _ in gate {}
            return .done("not mine")
        }
        try await serve(at: path, answer) {
            let gone = try RawClient(path)
            gone.write("{\"status\":{}}\n")
            isAsked.wait()
            gone.end()
            let client = try RawClient(path)
            open.finish()
            client.write("{\"status\":{}}\n")
            #expect(client.readLine().contains("\"mine\""))
        }
    }

    @Test func `the socket of a killed daemon is replaced and a live one is not`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("s")
        try RawClient.leaveSocket(at: path)
        try await serve(at: path) {
            #expect(throws: ControlSocketError.self) { try ControlSocket(path: path, log: .silent) }
            #expect(throws: Never.self) { try ControlClient.ask(.status, at: path) }
        }
    }

    @Test func `a file that is not a socket stays`() throws {
        let folder = try TemporaryFolder()
        let path = try folder.write("precious", to: "s")
        #expect(throws: ControlSocketError.self) { try ControlSocket(path: path, log: .silent) }
        #expect(FileManager.default.contents(atPath: path) == Data("precious".utf8))
    }

    @Test func `only the daemon's user and group can connect`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("s")
        try await serve(at: path) {
            var status = stat()
            #expect(unsafe lstat(path, &status) == 0)
            #expect(status.st_mode & 0o777 == 0o660)
        }
    }

    @Test func `a path too long for a socket is reported`() {
        let path = "/tmp/" + String(repeating: "x", count: 200)
        let error = #expect(throws: ControlSocketError.self) { try ControlSocket(path: path, log: .silent) }
        #expect(error?.description == "\(path): the path has more than 107 bytes; set RUNTIME_DIRECTORY")
        #expect(throws: ControlSocketError.self) { try ControlClient.ask(.status, at: path) }
    }

    @Test func `for a read-only disk, the advice is to mount it writable`() {
        #expect(UnixSocket.remedy(for: EROFS).hasPrefix("mount the file system writable, or "))
        #expect(UnixSocket.remedy(for: EACCES).hasPrefix("let this user write there, or "))
    }

    @Test func `the error states that no daemon is running`() throws {
        let path = try TemporaryFolder().file("s")
        let error = #expect(throws: ControlSocketError.self) { try ControlClient.ask(.status, at: path) }
        #expect(error?.description == "\(path): no daemon runs with this configuration")
    }

    @Test func `a daemon that accepts no client is reported`() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("s")
        let listener = try UnixSocket.listen(path)
        defer { close(listener) }
        // The queue has room for a few clients.
        let clients = (0..<32).compactMap { _ in try? UnixSocket.connect(path, within: .milliseconds(1)) }
        defer { for client in clients { close(client) } }
        #expect(clients.count < 32)
        let queued = #expect(throws: ControlSocketError.self) {
            try ControlClient.ask(.status, at: path, within: .milliseconds(1))
        }
        #expect(queued?.description.contains("the daemon does not answer") == true)
        #expect(queued?.isNobodyThere == false)
        // Another daemon neither waits for it for ever nor takes its socket.
        let other = #expect(throws: ControlSocketError.self) { try UnixSocket.listen(path) }
        #expect(other?.description.contains("another daemon listens there") == true)
    }

    @Test func `a daemon that sends no reply is reported`() throws {
        let folder = try TemporaryFolder()
        let path = folder.file("s")
        let listener = try UnixSocket.listen(path)
        defer { close(listener) }
        for call in [ControlCall.status, .reload] {
            let error = #expect(throws: ControlSocketError.self) {
                try ControlClient.ask(call, at: path, within: .milliseconds(1), probing: .milliseconds(1))
            }
            #expect(error?.description.contains("the daemon does not answer") == true)
        }
    }

    @Test func `a watch of a daemon that hangs ends with the reason`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("s")
        let listener = try UnixSocket.listen(path)
        defer { close(listener) }
        let call = ControlCall.watch(device: "strap", attribute: "a")
        let limit = Duration.milliseconds(1)
        var last: ControlReply?
        for await reply in try ControlClient.replies(to: call, at: path, within: limit, probing: limit) { last = reply }
        guard case .failed(let failure) = last else {
            Issue.record("\(String(describing: last)) is no failure")
            return
        }
        #expect(failure.error.kind == .serviceUnavailable)
        #expect(failure.error.detail.contains("the daemon does not answer"))
    }

    @Test func `a slow request and a silent watch go on while the daemon answers others`() async throws {
        let folder = try TemporaryFolder()
        let path = folder.file("s")
        let probes = LatestValue(0)
        let socket = try ControlSocket(path: path, log: .silent)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await socket.run { call, stream in await answerSlowly(call, stream, probes) } }
            defer { group.cancelAll() }
            for call in [ControlCall.reload, .watch(device: "strap", attribute: "a")] {
                probes.set(0)
                var replies: [ControlReply] = []
                for await reply in try ControlClient.replies(to: call, at: path, within: .milliseconds(1)) {
                    replies.append(reply)
                    if replies.count == 2 { break }
                }
                #expect(replies == [.watching, .done("3 probes")])
            }
            let reply = try await ControlClient.reply(to: .status, at: path)
            #expect(reply == .done("works"))
        }
    }

    /// Answers probes at once, and other requests after the third probe.
    private func answerSlowly(
        _ call: ControlCall,
        _ stream: ControlStream,
        _ probes: LatestValue<Int>
    ) async -> ControlReply {
        if case .status = call {
            probes.update { $0 += 1 }
            return .done("works")
        }
        stream.send(.watching)
        for await count in probes.watch() where count >= 3 { break }
        return .done("3 probes")
    }

    /// Repeats a request until the server has noticed a closed connection.
    private func untilServed(_ ask: () throws -> ControlReply) throws {
        while (try? ask()) == nil { sched_yield() }
    }
}

/// A client that can write any bytes.
private final class RawClient: Sendable {
    private let socket: Int32

    init(_ path: String) throws {
        socket = unsafe try Self.make(path) { unsafe Glibc.connect($0, $1, $2) }
    }

    deinit { close(socket) }

    static func leaveSocket(at path: String) throws {
        close(unsafe try make(path) { unsafe bind($0, $1, $2) })
    }

    var isOpen: Bool { fcntl(socket, F_GETFD) >= 0 }

    func write(_ text: String) {
        let octets = Array(text.utf8)
        _ = unsafe send(socket, octets, octets.count, Int32(MSG_NOSIGNAL))
    }

    func endWriting() { shutdown(socket, Int32(SHUT_WR)) }

    /// Waits for the first byte of a reply, and leaves it to be read.
    func waitForReply() {
        var octet: UInt8 = 0
        _ = unsafe recv(socket, &octet, 1, Int32(MSG_PEEK))
    }

    func end() { shutdown(socket, Int32(SHUT_RDWR)) }

    /// Returns the next line; empty after the server has closed the connection.
    func readLine() -> String {
        var line: [UInt8] = []
        var octet: UInt8 = 0
        while unsafe recv(socket, &octet, 1, 0) == 1, octet != UInt8(ascii: "\n") { line.append(octet) }
        return String(decoding: line, as: UTF8.self)
    }

    private static func make(
        _ path: String,
        _ body: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) throws -> Int32 {
        let socket = Glibc.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        unsafe withUnsafeMutableBytes(of: &address.sun_path) { unsafe $0.copyBytes(from: path.utf8) }
        let code = unsafe withUnsafePointer(to: address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                unsafe body(socket, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        try #require(code == 0)
        return socket
    }
}

extension ControlReply {
    fileprivate var isRefused: Bool {
        if case .refused = self { true } else { false }
    }
}
