import CLinux
import GattherdSync
import Glibc

/// The client of ``ControlSocket``, for the command line.
public enum ControlClient {
    /// The maximum number of replies of a watch that wait for the reader.
    private static let maximumWaiting = 65_536

    /// Sends a request to the daemon at `path` and waits for the reply.
    ///
    /// - Parameters:
    ///   - call: The request.
    ///   - path: The path of the daemon's socket.
    ///   - limit: The longest wait for the daemon; `nil` for ``ControlCall/replyLimit``.
    /// - Returns: The reply.
    /// - Throws: ``ControlSocketError`` if no daemon answers there.
    public static func ask(
        _ call: ControlCall,
        at path: String,
        within limit: Duration? = nil
    ) throws(ControlSocketError) -> ControlReply {
        var lines = try send(call, to: path, within: limit ?? call.replyLimit)
        defer { close(lines.socket) }
        guard let line = lines.next() else {
            throw ControlSocketError(path, lines.isLate ? UnixSocket.lateness : "the daemon closed the connection")
        }
        guard let reply = ControlReply(line: line) else {
            throw ControlSocketError(path, "the daemon's answer is not understood; is it another version?")
        }
        return reply
    }

    /// Sends a request as ``ask(_:at:)`` does, on a separate thread.
    public static func reply(to call: ControlCall, at path: String) async throws(ControlSocketError) -> ControlReply {
        let result = await NamedThread.result(name: "control") { () -> Result<ControlReply, ControlSocketError> in
            do throws(ControlSocketError) {
                return .success(try ask(call, at: path))
            } catch {
                return .failure(error)
            }
        }
        guard let result else { throw ControlSocketError(path, "cancelled") }
        return try result.get()
    }

    /// Sends a request that has several replies; the sequence ends with the connection.
    ///
    /// - Throws: ``ControlSocketError`` if no daemon answers there.
    public static func replies(
        to call: ControlCall,
        at path: String
    ) throws(ControlSocketError)
        -> AsyncStream<ControlReply>
    {
        let lines = try send(call, to: path)
        let (replies, post) = AsyncStream.makeStream(
            of: ControlReply.self,
            bufferingPolicy: .bufferingOldest(maximumWaiting)
        )
        let open = Locked<Int32?>(lines.socket)
        // Ends the thread's wait; the thread closes the descriptor.
        post.onTermination = { _ in open.withLock { if let socket = $0 { shutdown(socket, Int32(SHUT_RDWR)) } } }
        let hasStarted = NamedThread.start(name: "control") {
            var lines = lines
            while let line = lines.next(), let reply = ControlReply(line: line), case .enqueued = post.yield(reply) {}
            open.withLock { $0 = nil }
            close(lines.socket)
            post.finish()
        }
        guard hasStarted else {
            close(lines.socket)
            throw ControlSocketError(path, "cannot start a thread; the process limit is reached")
        }
        return replies
    }

    /// Sends a request and ignores a failed write.
    ///
    /// A daemon that refuses the client sends its reason and closes the connection without reading the request.
    private static func send(
        _ call: ControlCall,
        to path: String,
        within limit: Duration? = nil
    ) throws(ControlSocketError) -> Lines {
        let lines = Lines(socket: try UnixSocket.connect(path, within: limit))
        let line = call.line
        _ = unsafe Glibc.send(lines.socket, line, line.count, Int32(MSG_NOSIGNAL))
        return lines
    }

    /// The lines read from a socket.
    private struct Lines: Sendable {
        let socket: Int32
        /// True if the daemon sent nothing within the limit of the socket.
        private(set) var isLate = false
        private var buffer: [UInt8] = []

        init(socket: Int32) { self.socket = socket }

        /// Returns the next line without its line break; `nil` after the daemon has closed the connection, or is late.
        mutating func next() -> [UInt8]? {
            var chunk = [UInt8](repeating: 0, count: 65_536)
            var searched = 0
            while true {
                if let end = buffer[searched...].firstIndex(of: UInt8(ascii: "\n")) {
                    defer { buffer.removeSubrange(...end) }
                    return Array(buffer[..<end])
                }
                searched = buffer.count
                let count = unsafe recv(socket, &chunk, chunk.count, 0)
                if count < 0 && errno == EINTR { continue }
                isLate = count < 0 && errno == EAGAIN
                guard count > 0 else { return nil }
                buffer += chunk[..<count]
            }
        }
    }
}
