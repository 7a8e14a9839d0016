import GattherdBluetooth

/// The routes of write commands, by the path of the characteristic.
struct CommandWriters {
    enum Route {
        /// A socket of `AcquireWrite`.
        case socket(WriteSocket)
        /// Calls of `WriteValue`, where BlueZ has no socket.
        case calls
    }

    private var routes: [String: (peripheral: PeripheralID, route: Route)] = [:]

    var count: Int { routes.count }

    /// The known route of commands to `path`, unless its socket was closed.
    mutating func route(to path: String) -> Route? {
        guard let entry = routes[path] else { return nil }
        if case .socket(let socket) = entry.route, !socket.isOpen {
            routes[path] = nil
            return nil
        }
        return entry.route
    }

    mutating func add(_ route: Route, to path: String, of id: PeripheralID) {
        routes[path] = (id, route)
    }

    /// Removes a characteristic that is gone, and closes its socket.
    mutating func remove(_ path: String) {
        guard case .socket(let socket)? = routes.removeValue(forKey: path)?.route else { return }
        socket.close()
    }

    /// Closes the socket of a characteristic; returns false if there was none.
    mutating func closeSocket(to path: String) -> Bool {
        guard case .socket? = routes[path]?.route else { return false }
        remove(path)
        return true
    }

    /// Closes the sockets of a peripheral.
    mutating func close(of id: PeripheralID) {
        for path in routes.filter({ $0.value.peripheral == id }).keys { remove(path) }
    }

    /// Closes all sockets; returns true if there were any.
    mutating func closeAll() -> Bool {
        let hadSockets = routes.values.contains { if case .socket = $0.route { true } else { false } }
        for path in Array(routes.keys) { remove(path) }
        return hadSockets
    }
}
