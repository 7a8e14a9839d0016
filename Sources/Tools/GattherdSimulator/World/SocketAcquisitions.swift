import GattherdDBus
import GattherdGATT

/// The sockets that clients acquire for notifications and for writes.
final class SocketAcquisitions {
    private let world: World
    private var orphans = OrphanedSockets()

    init(_ world: World) {
        self.world = world
    }

    /// Reserves a characteristic for `AcquireNotify`.
    ///
    /// Returns false if the call was refused. Otherwise the peripheral has to be asked.
    func reserveNotify(_ call: MethodCall, _ key: DeviceKey, _ index: Int) -> Bool {
        guard let device = world.devices[key], let object = device.gatt?.characteristics[index] else { return false }
        let properties = world.air.peripherals[key.peripheral].characteristics[index].spec.properties
        let refusal: DBusError? =
            if !device.isConnected {
                .notConnected
            } else if !properties.contains(.notify) {
                .notSupported
            } else if object.isNotifyAcquired {
                .notifyAcquired
            } else {
                object.notifySessions.isEmpty ? nil : .acquireInProgress
            }
        if let refusal {
            world.effects.fail(call, refusal)
            return false
        }
        world.devices[key]?.gatt?.characteristics[index]?.isNotifyAcquired = true
        return true
    }

    /// Opens the socket of an `AcquireNotify` that the peripheral has accepted.
    func finishNotify(_ call: MethodCall, _ key: DeviceKey, _ index: Int) {
        let acquisition = makeAcquisition(for: call)
        world.devices[key]?.gatt?.characteristics[index]?.notifySocket = acquisition
        world.setSubscribed(true, key, index)
        signal(call.path, "NotifyAcquired", true)
        let mtu = world.air.peripherals[key.peripheral].spec.mtu
        world.effects.append(.openSocket(acquisition.socket, call.token, mtu: mtu, isRead: false))
    }

    /// Releases the characteristic of an `AcquireNotify` that has failed.
    func cancelNotify(_ request: GATTRequest) {
        guard case .acquireNotify(let index) = request.kind else { return }
        world.devices[request.key]?.gatt?.characteristics[index]?.isNotifyAcquired = false
    }

    /// Keeps the characteristic of an `AcquireNotify` that has failed and is never answered acquired.
    func keepNotify(_ key: DeviceKey, _ index: Int) {
        guard let object = world.devices[key]?.gatt?.characteristics[index], object.notifySocket == nil else { return }
        world.devices[key]?.gatt?.characteristics[index]?.isNotifyAcquired = true
        world.devices[key]?.gatt?.characteristics[index]?.isNotifyStuck = true
    }

    func acquireWrite(_ call: MethodCall, _ key: DeviceKey, _ index: Int) {
        guard let device = world.devices[key], let object = device.gatt?.characteristics[index] else { return }
        let peripheral = world.air.peripherals[key.peripheral]
        guard device.isConnected else { return world.effects.fail(call, .notConnected) }
        guard object.writeSocket == nil else { return world.effects.fail(call, .writeAcquired) }
        guard peripheral.characteristics[index].spec.properties.contains(.writeWithoutResponse) else {
            return world.effects.fail(call, .notSupported)
        }
        let acquisition = makeAcquisition(for: call)
        world.devices[key]?.gatt?.characteristics[index]?.writeSocket = acquisition
        signal(call.path, "WriteAcquired", true)
        world.effects.append(.openSocket(acquisition.socket, call.token, mtu: peripheral.spec.mtu, isRead: true))
    }

    private func makeAcquisition(for call: MethodCall) -> GATTObjects.Acquisition {
        GATTObjects.Acquisition(socket: SocketID(id: world.clock.makeID()), client: call.sender)
    }

    private func signal(_ path: String, _ name: String, _ isAcquired: Bool) {
        world.effects.changed(path, InterfaceName.characteristic, [Property(name, .boolean(isAcquired))])
    }
}

// MARK: - The end of sockets

extension SocketAcquisitions {
    /// The device and characteristic of a socket.
    func owner(of socket: SocketID) -> (DeviceKey, Int)? {
        for (key, device) in world.devices {
            for (index, object) in device.gatt?.characteristics ?? [:]
            where object.notifySocket?.socket == socket || object.writeSocket?.socket == socket { return (key, index) }
        }
        return nil
    }

    /// Handles a socket that its client has closed.
    ///
    /// Returns true if that crashes bluetoothd.
    func closed(_ socket: SocketID) -> Bool {
        guard !orphans.close(socket, at: world.clock.now) else { return true }
        release(socket)
        return false
    }

    /// Records the notification sockets of a client that left the bus.
    func recordOrphans(of client: String) {
        for device in world.devices.values {
            for case let acquisition? in device.gatt?.characteristics.values.map(\.notifySocket) ?? []
            where acquisition.client == client { orphans.insert(acquisition.socket, at: world.clock.now) }
        }
    }

    /// Closes a characteristic's notification socket.
    ///
    /// Returns false if there is none.
    func closeNotify(_ key: DeviceKey, _ index: Int) -> Bool {
        guard let socket = world.devices[key]?.gatt?.characteristics[index]?.notifySocket?.socket else { return false }
        world.effects.append(.closeSocket(socket))
        release(socket)
        return true
    }

    /// Releases the characteristic of a closed socket.
    private func release(_ socket: SocketID) {
        guard let (key, index) = owner(of: socket), let object = world.devices[key]?.gatt?.characteristics[index]
        else { return }
        if object.writeSocket?.socket == socket { return endWrite(key, index, object.path) }
        endNotify(key, index, object.path)
        world.setSubscribed(false, key, index)
    }

    /// Ends a device's acquisitions with the link or with their objects.
    ///
    /// Sessions of `StartNotify` remain, and so do acquisitions that are never answered.
    func endAll(_ key: DeviceKey, except kept: Set<String> = []) {
        let characteristics = world.devices[key]?.gatt?.characteristics.sorted { $0.value.path < $1.value.path } ?? []
        for (index, object) in characteristics where !kept.contains(object.path) {
            for case let acquisition? in [object.notifySocket, object.writeSocket] {
                world.effects.append(.closeSocket(acquisition.socket))
            }
            if object.isNotifyAcquired, !object.isNotifyStuck { endNotify(key, index, object.path) }
            if object.writeSocket != nil { endWrite(key, index, object.path) }
        }
    }

    private func endNotify(_ key: DeviceKey, _ index: Int, _ path: String) {
        let socket = world.devices[key]?.gatt?.characteristics[index]?.notifySocket?.socket
        world.devices[key]?.gatt?.characteristics[index]?.notifySocket = nil
        world.devices[key]?.gatt?.characteristics[index]?.isNotifyAcquired = false
        guard let socket else { return }
        orphans.remove(socket)
        signal(path, "NotifyAcquired", false)
    }

    private func endWrite(_ key: DeviceKey, _ index: Int, _ path: String) {
        world.devices[key]?.gatt?.characteristics[index]?.writeSocket = nil
        signal(path, "WriteAcquired", false)
    }
}

/// Notification sockets that are still open although their clients have left the bus.
///
/// BlueZ 5.66 crashes when such a socket is closed. A process that dies leaves the bus and closes its sockets at once,
/// which does no harm.
private struct OrphanedSockets {
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
