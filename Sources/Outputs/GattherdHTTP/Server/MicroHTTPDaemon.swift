import CMicroHTTPD
import Glibc

/// A daemon of libmicrohttpd without a thread of its own: ``run()`` does its work.
///
/// All calls, including the callbacks to ``HTTPConnections``, are on the thread of the loop.
@safe final class MicroHTTPDaemon {
    private let raw: OpaquePointer

    /// Creates a daemon; `nil` without memory or descriptors.
    ///
    /// - Parameters:
    ///   - socket: The listening socket; the daemon closes it.
    ///   - limits: The limits for clients.
    ///   - owner: The receiver of callbacks; must outlive the daemon.
    init?(on socket: ListeningSocket, _ limits: HTTPLimits, owner: HTTPConnections) {
        let callbacks = unsafe cmicrohttpd_callbacks(
            request: { owner, connection, url, method, _, upload, count, exchange in
                unsafe HTTPConnections.at(owner)?.receive(connection, url, method, upload, count, exchange) ?? .NO
            },
            completed: { owner, _, exchange, _ in unsafe HTTPConnections.at(owner)?.complete(exchange) },
            connection: { owner, connection, _, change in
                let descriptor = unsafe cmicrohttpd_descriptor(connection)
                unsafe HTTPConnections.at(owner)?.connection(descriptor, hasBegun: change == .CONNECTION_NOTIFY_STARTED)
            },
            context: Unmanaged.passUnretained(owner).toOpaque()
        )
        let bounds = cmicrohttpd_limits(
            head: limits.head,
            connections: UInt32(clamping: limits.connections),
            connections_per_address: UInt32(clamping: limits.connectionsPerAddress),
            stall: UInt32(clamping: limits.stallTime.components.seconds)
        )
        guard let raw = unsafe cmicrohttpd_start(socket.descriptor, callbacks, bounds) else { return nil }
        unsafe self.raw = raw
    }

    deinit {
        unsafe MHD_stop_daemon(raw)
    }

    /// A descriptor that is readable while there is work.
    var pollDescriptor: Int32 { unsafe cmicrohttpd_poll_descriptor(raw) }

    /// Does all work that does not block.
    func run() {
        unsafe MHD_run(raw)
    }

    /// The time until the next call of ``run()`` without an event; `nil` for never.
    var timeout: Duration? {
        var milliseconds: UInt64 = 0
        guard unsafe MHD_get_timeout(raw, &milliseconds) == .YES else { return nil }
        return .milliseconds(Int64(clamping: milliseconds))
    }
}
