import GattherdBluetooth
import GattherdDBus

/// The unanswered requests for sockets, by characteristic.
struct SocketRequests {
    private var pending: [String: (peripheral: PeripheralID, count: Int)] = [:]
    /// True once a socket was requested on this connection to the bus.
    private(set) var hasRequested = false

    /// The number of characteristics with unanswered requests.
    var count: Int { pending.count }

    /// A peripheral with an unanswered request, if any.
    var pendingPeripheral: PeripheralID? { pending.first?.value.peripheral }

    mutating func begin(_ path: String, of id: PeripheralID) {
        hasRequested = true
        pending[path] = (id, (pending[path]?.count ?? 0) + 1)
    }

    mutating func end(_ path: String) {
        guard let (id, count) = pending[path] else { return }
        pending[path] = count > 1 ? (id, count - 1) : nil
    }

    /// Removes the unanswered requests of a peripheral whose link ended.
    mutating func removeAll(of id: PeripheralID) {
        pending = pending.filter { $0.value.peripheral != id }
    }
}

/// The sockets that bluetoothd creates for us, and their end before we leave the bus; on the Bluetooth thread only.
///
/// bluetoothd 5.66 crashes if a client leaves the bus before bluetoothd has read the end of the client's sockets, or
/// while bluetoothd creates a socket for the client.
final class SocketAcquirer {
    /// The longest wait for answers before the bus is left.
    private static let timeout = Duration.seconds(2)

    private let client: BluetoothdClient
    private let waiters: ChangeWaiters
    private var requests = SocketRequests()

    init(_ client: BluetoothdClient, _ waiters: ChangeWaiters) {
        (self.client, self.waiters) = (client, waiters)
    }

    /// The number of characteristics with unanswered requests.
    var count: Int { requests.count }

    /// Requests a socket by `AcquireNotify` or `AcquireWrite`; returns `nil` if the answer has none.
    ///
    /// A request that was given up counts as unanswered until the link ends. A socket that comes when the bus is being
    /// left is closed at once.
    func acquire(_ member: String, _ path: String, of id: PeripheralID) async throws(BluetoothError) -> DBusDescriptor?
    {
        requests.begin(path, of: id)
        var isUnanswered = false
        defer {
            if !isUnanswered { requests.end(path) }
            waiters.wake(id)
        }
        let reply: [DBusValue]
        do throws(DBusError) {
            reply = try await client.call(
                path,
                BlueZ.characteristic,
                member,
                [.properties([:])],
                within: client.attributeLimit
            )
        } catch {
            let fault = BluetoothError(error, missing: .unknownAttribute)
            isUnanswered = fault.kind == .cancelled || fault.kind == .timedOut
            throw fault
        }
        guard !client.isLeaving else {
            throw BluetoothError(.serviceUnavailable, "the connection to bluetoothd is being closed")
        }
        guard case .fileDescriptor(let descriptor) = reply.first else { return nil }
        return descriptor
    }

    /// Removes the unanswered requests of a peripheral whose link ended.
    func removeAll(of id: PeripheralID) {
        requests.removeAll(of: id)
    }

    /// Starts again with another connection or another bluetoothd.
    func reset() {
        requests = SocketRequests()
    }

    /// Waits until bluetoothd has answered all requests and has read the end of all closed sockets.
    ///
    /// Also sockets that were closed long before count: nothing else shows that bluetoothd has read their end.
    func finish() async {
        guard requests.hasRequested else { return }
        let deadline = SuspendingClock.now + Self.timeout
        while let id = requests.pendingPeripheral {
            let reason = await waiters.sleepUninterrupted(on: id, for: deadline - SuspendingClock.now)
            guard reason == .changed else { break }
        }
        await client.makeRoundTrip()
    }
}
