import GattherdBluetooth

/// The known route of write commands to each characteristic: a socket, or D-Bus calls.
struct CommandRoutes {
    enum Route {
        /// A socket of `AcquireWrite`.
        case socket(WriteSocket)
        /// Calls of `WriteValue`, where BlueZ has no socket.
        case calls

        /// The socket; `nil` for calls.
        var socket: WriteSocket? {
            if case .socket(let socket) = self { socket } else { nil }
        }
    }

    private var routes: [String: (peripheral: PeripheralID, route: Route)] = [:]

    var count: Int { routes.count }

    /// The known route of commands to `path`, unless its socket was closed.
    mutating func route(to path: String) -> Route? {
        guard let entry = routes[path] else { return nil }
        guard entry.route.socket?.isOpen == false else { return entry.route }
        routes[path] = nil
        return nil
    }

    mutating func add(_ route: Route, to path: String, of id: PeripheralID) {
        routes[path] = (id, route)
    }

    /// Removes a characteristic that is gone, and closes its socket.
    mutating func remove(_ path: String) {
        routes.removeValue(forKey: path)?.route.socket?.close()
    }

    /// Closes the socket of a characteristic; returns false if there was none.
    mutating func closeSocket(to path: String) -> Bool {
        guard routes[path]?.route.socket != nil else { return false }
        remove(path)
        return true
    }

    /// Closes the sockets of a peripheral.
    mutating func close(of id: PeripheralID) {
        for path in routes.filter({ $0.value.peripheral == id }).keys { remove(path) }
    }

    /// Closes all sockets.
    mutating func closeAll() {
        for path in Array(routes.keys) { remove(path) }
    }
}
