import CLinux
import GattherdBluetooth
import GattherdSync
import Glibc

/// The client of ``ControlSocket``, for the command line.
public enum ControlClient {
    /// The maximum number of replies of a watch that wait for the reader.
    private static let maximumWaiting = 65_536
    /// The time in which a daemon that works answers from memory: milliseconds, even on a small board under load.
    private static let standardLimit = Duration.seconds(10)

    /// Sends a request to the daemon at `path` and waits for the reply.
    ///
    /// A request that waits for files or devices may take any time. If the daemon is silent for `limit`, it is probed
    /// by a request for its status, again and again.
    ///
    /// - Parameters:
    ///   - call: The request.
    ///   - path: The path of the daemon's socket.
    ///   - limit: The longest silence of the daemon; `nil` for ten seconds.
    ///   - probeLimit: The longest wait for the answer to a probe; `nil` for ten seconds.
    /// - Returns: The reply.
    /// - Throws: ``ControlSocketError`` if no daemon answers there.
    public static func ask(
        _ call: ControlCall,
        at path: String,
        within limit: Duration? = nil,
        probing probeLimit: Duration? = nil
    ) throws(ControlSocketError) -> ControlReply {
        var lines = try send(call, to: path, within: limit ?? standardLimit, probing: probeLimit ?? standardLimit)
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
    /// A silent daemon is probed as in ``ask(_:at:within:probing:)``. If it does not answer, the last reply is a
    /// failure of the kind `serviceUnavailable`.
    ///
    /// - Throws: ``ControlSocketError`` if no daemon answers there.
    public static func replies(
        to call: ControlCall,
        at path: String,
        within limit: Duration? = nil,
        probing probeLimit: Duration? = nil
    ) throws(ControlSocketError)
        -> AsyncStream<ControlReply>
    {
        let lines = try send(call, to: path, within: limit ?? standardLimit, probing: probeLimit ?? standardLimit)
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
            if lines.isLate {
                post.yield(.failed(DeviceFailure(BluetoothError(.serviceUnavailable, UnixSocket.lateness))))
            }
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
        within limit: Duration,
        probing probeLimit: Duration
    ) throws(ControlSocketError) -> Lines {
        let lines = Lines(socket: try UnixSocket.connect(path, within: limit)) {
            call.mayTakeLong && (try? ask(.status, at: path, within: probeLimit)) != nil
        }
        let line = call.line
        _ = unsafe Glibc.send(lines.socket, line, line.count, Int32(MSG_NOSIGNAL))
        return lines
    }

    /// The lines read from a socket.
    private struct Lines: Sendable {
        let socket: Int32
        /// True if the daemon sent nothing within the limit of the socket, and may not be silent.
        private(set) var isLate = false
        private var buffer: [UInt8] = []
        private let mayBeSilent: @Sendable () -> Bool

        /// - Parameters:
        ///   - socket: A socket with a limit for each wait.
        ///   - mayBeSilent: True if the daemon is waited for longer; called after each limit.
        init(socket: Int32, while mayBeSilent: @escaping @Sendable () -> Bool) {
            (self.socket, self.mayBeSilent) = (socket, mayBeSilent)
        }

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
                if count < 0 && errno == EAGAIN {
                    isLate = !mayBeSilent()
                    guard isLate else { continue }
                    return nil
                }
                guard count > 0 else { return nil }
                buffer += chunk[..<count]
            }
        }
    }
}
