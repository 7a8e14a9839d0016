/// Notification sockets that are still open although their clients have left the bus.
///
/// BlueZ 5.66 crashes when such a socket is closed. A process that dies leaves the bus and closes its sockets at once,
/// which does no harm.
struct OrphanedSockets: Sendable {
    /// The longest time between the end of a dying client's bus connection and the end of its sockets.
    private static let deathDuration = Duration.milliseconds(100)

    /// The times when the clients left the bus.
    private var departures: [SocketID: Duration] = [:]

    mutating func insert(_ socket: SocketID, at now: Duration) {
        departures[socket] = now
    }

    mutating func remove(_ socket: SocketID) {
        departures[socket] = nil
    }

    /// Removes a socket that was closed.
    ///
    /// Returns true if that crashes bluetoothd.
    mutating func close(_ socket: SocketID, at now: Duration) -> Bool {
        guard let departure = departures.removeValue(forKey: socket) else { return false }
        return now - departure >= Self.deathDuration
    }
}
