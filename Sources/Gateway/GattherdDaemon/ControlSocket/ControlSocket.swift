public import GattherdLog
import GattherdSync
import Glibc

/// An error of the control socket: it cannot be opened, or no daemon answers.
public struct ControlSocketError: Error, Hashable, Sendable, CustomStringConvertible {
    public let path: String
    public let description: String
    /// True if no daemon is running.
    public let isNobodyThere: Bool
    /// True if a daemon listens, but accepts no client in time.
    let isLate: Bool

    init(_ path: String, _ problem: String, isNobodyThere: Bool = false, isLate: Bool = false) {
        self.path = path
        self.isNobodyThere = isNobodyThere
        self.isLate = isLate
        description = "\(path): \(problem)"
    }
}

/// A Unix socket between the command line and the daemon, with one JSON line per request and reply.
///
/// A watch has several replies. The daemon's user and group can connect: the socket has mode 0660. Only root and the
/// daemon's user may change anything; other clients may read. Lines, clients and simultaneous requests are limited; a
/// client above a limit receives the reason and is disconnected.
public final class ControlSocket: Sendable {
    private let path: String
    private let loop = EventLoop(name: "control")
    private let clients: LoopConfined<ControlClients>
    private let requests: AsyncStream<ControlSocketRequest>

    /// Returns the reason for which no socket can have this path; `nil` for a path of suitable length.
    public static func problem(ofPath path: String) -> String? {
        do throws(ControlSocketError) {
            _ = try UnixSocket.address(of: path)
            return nil
        } catch {
            return "the control socket \(error)"
        }
    }

    /// Listens at `path` and replaces the socket of a killed daemon.
    ///
    /// - Throws: ``ControlSocketError`` if the path is too long or not writable, or if a daemon answers there.
    public convenience init(path: String, log: Log) throws(ControlSocketError) {
        try self.init(path: path, isTrusted: { $0.mayChange }, log: log)
    }

    /// Listens at `path`; `isTrusted` is true for clients that may change something.
    init(
        path: String,
        isTrusted: @escaping @Sendable (ControlPeer) -> Bool,
        log: Log
    ) throws(ControlSocketError) {
        self.path = path
        let listener = try UnixSocket.listen(path)
        let (requests, post) = AsyncStream.makeStream(
            of: ControlSocketRequest.self,
            bufferingPolicy: .bufferingOldest(ControlClients.limit)
        )
        self.requests = requests
        clients = LoopConfined(
            ControlClients(listener: listener, loop: loop, post: post, isTrusted: isTrusted, log: log),
            to: loop
        )
    }

    deinit {
        loop.stop()
    }

    /// Answers requests until cancelled, then removes the socket.
    public func run(_ answer: @escaping @Sendable (ControlCall, ControlStream) async -> ControlReply) async {
        loop.execute { self.clients.value.start() }
        await withDiscardingTaskGroup { group in
            for await request in requests {
                group.addTask {
                    let stream = ControlStream(
                        send: { reply in
                            let line = reply.line
                            self.loop.execute { self.clients.value.send(line, to: request.client, isLast: false) }
                        },
                        hangUp: request.hangUp
                    )
                    let line = await self.reply(to: request, stream, answer)
                    self.loop.execute { self.clients.value.send(line, to: request.client, isLast: true) }
                }
            }
        }
        unsafe unlink(path)
        await withCheckedContinuation { done in
            loop.execute {
                self.clients.value.close()
                done.resume()
            }
        }
    }

    private static let forbidden = "only root and the daemon's user may do this; run the command with sudo"

    private func reply(
        to request: ControlSocketRequest,
        _ stream: ControlStream,
        _ answer: @Sendable (ControlCall, ControlStream) async -> ControlReply
    ) async -> [UInt8] {
        var reply = ControlReply.refused("this version has no such request")
        if let call = ControlCall(line: request.line) {
            guard request.mayChange || call.isQuestion else { return ControlReply.refused(Self.forbidden).line }
            reply = await answer(call, stream)
        }
        return reply.line
    }
}
