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

/// The calls of `AcquireNotify` that bluetoothd has not answered, by characteristic.
///
/// BlueZ up to 5.83 never answers if the peripheral refuses, or if the link ends before. It counts the characteristic
/// as acquired until it removes the object: it refuses all other requests, and crashes at `StopNotify`.
struct NotifyRequests {
    private struct Request {
        let peripheral: PeripheralID
        var count = 0
        /// True if one of the calls was made on a link that has ended.
        var hasLinkEnded = false
    }

    private var requests: [String: Request] = [:]

    /// The number of characteristics with unanswered calls; each has an object.
    var count: Int { requests.count }

    /// True if bluetoothd may count the characteristic as acquired by us, although we have no socket.
    func contains(_ path: String) -> Bool { requests[path] != nil }

    /// True if a call of an earlier link has no answer.
    func isStuck(_ path: String) -> Bool { requests[path]?.hasLinkEnded == true }

    mutating func begin(_ path: String, of id: PeripheralID) {
        requests[path, default: Request(peripheral: id)].count += 1
    }

    /// Records an answer, which may be late.
    mutating func end(_ path: String) {
        guard let count = requests[path]?.count else { return }
        requests[path]?.count = count - 1
        if count <= 1 { requests[path] = nil }
    }

    mutating func linkEnded(_ id: PeripheralID) {
        for (path, request) in requests where request.peripheral == id { requests[path]?.hasLinkEnded = true }
    }

    /// Removes the calls of a characteristic that was removed, or that proved not to be acquired.
    mutating func remove(_ path: String) {
        requests[path] = nil
    }

    /// Removes the calls of a peripheral that was removed.
    mutating func removeAll(of id: PeripheralID) {
        requests = requests.filter { $0.value.peripheral != id }
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
    private var notifyRequests = NotifyRequests()

    init(_ client: BluetoothdClient, _ waiters: ChangeWaiters) {
        (self.client, self.waiters) = (client, waiters)
    }

    /// The number of characteristics with unanswered requests.
    var count: Int { requests.count + notifyRequests.count }

    /// Requests a socket by `AcquireNotify` or `AcquireWrite`; returns `nil` if the answer has none.
    ///
    /// A request that was given up counts as unanswered until the link ends. A socket that comes when the bus is being
    /// left is closed at once.
    func acquire(_ member: String, _ path: String, of id: PeripheralID) async throws(BluetoothError) -> DBusDescriptor?
    {
        requests.begin(path, of: id)
        let isNotify = member == "AcquireNotify"
        if isNotify { notifyRequests.begin(path, of: id) }
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
                within: client.attributeLimit,
                onAnswer: { [weak self] _ in if isNotify { self?.notifyRequests.end(path) } }
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

    /// Records the end of a link: bluetoothd may never answer its requests.
    func linkEnded(_ id: PeripheralID) {
        requests.removeAll(of: id)
        notifyRequests.linkEnded(id)
    }

    /// Starts again with another connection or another bluetoothd.
    func reset() {
        (requests, notifyRequests) = (SocketRequests(), NotifyRequests())
    }

    // MARK: - Characteristics that stay acquired

    /// True if an `AcquireNotify` of ours has no answer: `StopNotify` may crash bluetoothd.
    func hasUnansweredNotify(_ path: String) -> Bool { notifyRequests.contains(path) }

    /// Returns the error of a refused subscription, with a kind of its own if our unanswered `AcquireNotify` is why.
    func explain(_ error: BluetoothError, at path: String) -> BluetoothError {
        // BlueZ's words are "Notify acquired".
        let isAcquired = error.kind == .busy && error.original?.name == "org.bluez.Error.NotPermitted"
        guard isAcquired, notifyRequests.isStuck(path) else { return error }
        return BluetoothError(
            .notificationsStuck,
            "bluetoothd has not answered an earlier request for its notifications, and refuses others until it "
                + "is restarted (systemctl restart bluetooth) or the peripheral is removed",
            original: error.original
        )
    }

    /// Records that bluetoothd has accepted a subscription: the characteristic was not acquired.
    func recordAcceptance(_ path: String) {
        notifyRequests.remove(path)
    }

    /// Removes the requests of a characteristic that was removed.
    func remove(_ path: String) {
        notifyRequests.remove(path)
    }

    /// Removes the requests of a peripheral that was removed.
    func removeAll(of id: PeripheralID) {
        notifyRequests.removeAll(of: id)
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
