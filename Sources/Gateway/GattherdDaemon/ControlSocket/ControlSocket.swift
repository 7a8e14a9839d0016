import FoundationEssentials
public import GattherdLog
import GattherdSync
import Glibc

/// The socket could not be opened, or nobody answers there.
public struct ControlSocketError: Error, Hashable, Sendable, CustomStringConvertible {
    public let path: String
    public let description: String
    /// True when that is because no daemon runs.
    public let isNobodyThere: Bool

    init(_ path: String, _ problem: String, isNobodyThere: Bool = false) {
        self.path = path
        self.isNobodyThere = isNobodyThere
        description = "\(path): \(problem)"
    }
}

/// A Unix socket on which the command line talks to the daemon: one line asks, one line answers; several answer a watch.
///
/// Only the daemon's user may connect: the socket has mode 0600. Lines, clients and questions at a time are bounded; a
/// client that exceeds a bound is refused in words and hung up on.
public final class ControlSocket: Sendable {
    private let path: String
    private let loop = EventLoop(name: "control")
    private let clients: LoopConfined<ControlClients>
    private let questions: AsyncStream<ControlSocketRequest>

    /// Listens at `path`; what a daemon that was killed left there is replaced.
    ///
    /// - Throws: ``ControlSocketError`` when the path is too long or not writable, or a daemon answers there.
    public init(path: String, log: Log) throws(ControlSocketError) {
        self.path = path
        let listener = try UnixSocket.listen(path)
        let (questions, post) = AsyncStream.makeStream(
            of: ControlSocketRequest.self,
            bufferingPolicy: .bufferingOldest(ControlClients.limit)
        )
        self.questions = questions
        clients = LoopConfined(ControlClients(listener: listener, loop: loop, post: post, log: log), to: loop)
    }

    deinit {
        loop.stop()
    }

    /// Answers until cancelled, then removes the socket.
    public func run(_ answer: @escaping @Sendable (ControlCall, ControlStream) async -> ControlReply) async {
        loop.execute { self.clients.value.start() }
        await withDiscardingTaskGroup { group in
            for await question in questions {
                group.addTask {
                    let stream = ControlStream(
                        send: { reply in
                            let line = reply.line
                            self.loop.execute { self.clients.value.send(line, to: question.client, isLast: false) }
                        },
                        hangUp: question.hangUp
                    )
                    let line = await self.reply(to: question.line, stream, answer)
                    self.loop.execute { self.clients.value.send(line, to: question.client, isLast: true) }
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

    private func reply(
        to line: [UInt8],
        _ stream: ControlStream,
        _ answer: @Sendable (ControlCall, ControlStream) async -> ControlReply
    ) async -> [UInt8] {
        var reply = ControlReply.refused("that is no request of this version")
        if let call = try? JSONDecoder().decode(ControlCall.self, from: Data(line)) {
            reply = await answer(call, stream)
        }
        return reply.line
    }
}
