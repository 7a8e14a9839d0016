import CLinux
import FoundationEssentials
public import GattherdLog
import GattherdSync
import Glibc

/// The socket could not be opened, or nobody answers there.
public struct ControlSocketError: Error, Hashable, Sendable, CustomStringConvertible {
    public let path: String
    public let description: String

    init(_ path: String, _ problem: String) {
        self.path = path
        description = "\(path): \(problem)"
    }
}

/// A Unix socket on which the command line talks to the daemon: one line asks, one line answers.
///
/// Only the daemon's user may connect: the socket has mode 0600.
public final class ControlSocket: Sendable {
    /// The longest request, and the most clients at once.
    private static let lineLimit = 65_536
    private static let clientLimit = 32

    private struct Request: Sendable {
        let client: Int32
        let line: [UInt8]
    }

    private struct State {
        var buffers: [Int32: [UInt8]] = [:]
    }

    private let path: String
    private let listener: Int32
    private let loop = EventLoop(name: "control")
    private let state: LoopConfined<State>
    private let requests: AsyncStream<Request>
    private let post: AsyncStream<Request>.Continuation
    private let log: Log

    /// Listens at `path`; what a daemon that was killed left there is replaced.
    ///
    /// - Throws: ``ControlSocketError`` when the path is too long or not writable, or a daemon answers there.
    public init(path: String, log: Log) throws(ControlSocketError) {
        self.path = path
        self.log = log
        state = LoopConfined(State(), to: loop)
        (requests, post) = AsyncStream.makeStream(of: Request.self, bufferingPolicy: .bufferingOldest(64))
        if (try? UnixSocket.connect(path)).map({ close($0) }) != nil {
            throw ControlSocketError(path, "another daemon answers there")
        }
        unsafe unlink(path)
        listener = try UnixSocket.listen(path)
    }

    deinit {
        loop.stop()
    }

    /// Answers until cancelled.
    public func run(_ answer: @escaping @Sendable (ControlCall) async -> ControlReply) async {
        loop.execute { self.accept() }
        await withDiscardingTaskGroup { group in
            for await request in requests {
                group.addTask {
                    let reply = await self.reply(to: request.line, answer)
                    self.loop.execute { self.send(reply, to: request.client) }
                }
            }
        }
        unsafe unlink(path)
        await withCheckedContinuation { done in
            loop.execute {
                self.closeAll()
                done.resume()
            }
        }
    }

    private func reply(
        to line: [UInt8],
        _ answer: @Sendable (ControlCall) async -> ControlReply
    ) async -> [UInt8] {
        var reply = ControlReply.refused("that is no request of this version")
        if let call = try? JSONDecoder().decode(ControlCall.self, from: Data(line)) { reply = await answer(call) }
        let json = (try? JSONEncoder().encode(reply)) ?? Data()
        return Array(json) + [UInt8(ascii: "\n")]
    }

    // MARK: - On the loop

    private func accept() {
        do throws(WatchError) {
            try loop.watch(listener, for: .readable) { [unowned self] _ in acceptAll() }
        } catch {
            log(.error, "the control socket is not served", [.init("error", error.description)])
        }
    }

    private func acceptAll() {
        while true {
            let client = clinux_accept(listener)
            guard client >= 0 else { return }
            let watched: Void? =
                state.value.buffers.count < Self.clientLimit
                ? try? loop.watch(client, for: .readable, handler: { [unowned self] _ in receive(client) }) : nil
            if watched == nil {
                close(client)
            } else {
                state.value.buffers[client] = []
            }
        }
    }

    private func receive(_ client: Int32) {
        var chunk = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = unsafe recv(client, &chunk, chunk.count, 0)
            if count < 0 && (errno == EAGAIN || errno == EINTR) { break }
            guard count > 0, (state.value.buffers[client]?.count ?? 0) + count <= Self.lineLimit else {
                return drop(client)
            }
            state.value.buffers[client]?.append(contentsOf: chunk[..<count])
        }
        takeLines(of: client)
    }

    private func takeLines(of client: Int32) {
        while let buffer = state.value.buffers[client], let end = buffer.firstIndex(of: UInt8(ascii: "\n")) {
            state.value.buffers[client] = Array(buffer[(end + 1)...])
            if case .dropped = post.yield(Request(client: client, line: Array(buffer[..<end]))) { drop(client) }
        }
    }

    /// Answers are small: one that does not fit into the socket's buffer at once is for a client that does not read.
    private func send(_ reply: [UInt8], to client: Int32) {
        guard state.value.buffers[client] != nil else { return }
        let count = unsafe Glibc.send(client, reply, reply.count, Int32(MSG_NOSIGNAL))
        if count != reply.count { drop(client) }
    }

    private func drop(_ client: Int32) {
        guard state.value.buffers.removeValue(forKey: client) != nil else { return }
        loop.unwatch(client)
        close(client)
    }

    private func closeAll() {
        loop.unwatch(listener)
        close(listener)
        for client in state.value.buffers.keys { drop(client) }
    }
}
