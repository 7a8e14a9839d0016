import GattherdDBus
import GattherdGATT

// Sockets that clients acquire for notifications and for writes.
extension VirtualBlueZ {
    /// The time that bluetoothd is absent after a client has crashed it.
    private static let crashDowntime = Duration.seconds(2)

    mutating func acquireNotify(_ call: MethodCall, _ key: DeviceKey, _ index: Int) {
        guard let device = devices[key], let object = device.gatt?.characteristics[index] else { return }
        let properties = peripherals[key.peripheral].characteristics[index].spec.properties
        guard device.isConnected else { return fail(call, .notConnected) }
        guard properties.contains(.notify) else { return fail(call, .notSupported) }
        guard !object.isNotifyAcquired else { return fail(call, .notifyAcquired) }
        guard object.notifySessions.isEmpty else { return fail(call, .acquireInProgress) }
        devices[key]?.gatt?.characteristics[index]?.isNotifyAcquired = true
        begin(.acquireNotify(index), call, key)
    }

    mutating func finishAcquireNotify(_ call: MethodCall, _ key: DeviceKey, _ index: Int) {
        let acquisition = GATTObjects.Acquisition(socket: SocketID(id: makeID()), client: call.sender)
        devices[key]?.gatt?.characteristics[index]?.notifySocket = acquisition
        setSubscribed(true, key, index)
        effects.changed(call.path, InterfaceName.characteristic, [Property("NotifyAcquired", .boolean(true))])
        let mtu = peripherals[key.peripheral].spec.mtu
        effects.append(.openSocket(acquisition.socket, call.token, mtu: mtu, isRead: false))
    }

    mutating func acquireWrite(_ call: MethodCall, _ key: DeviceKey, _ index: Int) {
        guard let device = devices[key], let object = device.gatt?.characteristics[index] else { return }
        let peripheral = peripherals[key.peripheral]
        guard device.isConnected else { return fail(call, .notConnected) }
        guard object.writeSocket == nil else { return fail(call, .writeAcquired) }
        guard peripheral.characteristics[index].spec.properties.contains(.writeWithoutResponse) else {
            return fail(call, .notSupported)
        }
        let acquisition = GATTObjects.Acquisition(socket: SocketID(id: makeID()), client: call.sender)
        devices[key]?.gatt?.characteristics[index]?.writeSocket = acquisition
        effects.changed(call.path, InterfaceName.characteristic, [Property("WriteAcquired", .boolean(true))])
        effects.append(.openSocket(acquisition.socket, call.token, mtu: peripheral.spec.mtu, isRead: true))
    }

    /// Releases the characteristic of an `AcquireNotify` that has failed.
    mutating func releaseAcquisition(_ request: GATTRequest) {
        guard case .acquireNotify(let index) = request.kind else { return }
        devices[request.key]?.gatt?.characteristics[index]?.isNotifyAcquired = false
    }

    /// Sends a packet of a write socket to the peripheral, truncated to the longest attribute value.
    mutating func receive(_ packet: [UInt8], from socket: SocketID) {
        guard let (key, index) = characteristic(of: socket), devices[key]?.isConnected == true else { return }
        writeCommand(Array(packet.prefix(Self.maximumValueLength)), key, index)
    }

    private func characteristic(of socket: SocketID) -> (DeviceKey, Int)? {
        for (key, device) in devices {
            for (index, object) in device.gatt?.characteristics ?? [:]
            where object.notifySocket?.socket == socket || object.writeSocket?.socket == socket { return (key, index) }
        }
        return nil
    }

    /// Handles a socket that its client has closed, which may crash bluetoothd.
    mutating func socketClosed(_ socket: SocketID) {
        guard !orphans.close(socket, at: now) else {
            effects.record(.crashed)
            return stopDaemon(isGraceful: false, for: Self.crashDowntime)
        }
        release(socket)
    }

    /// Records the notification sockets of a client that left the bus.
    mutating func recordOrphans(of client: String) {
        for device in devices.values {
            for case let acquisition? in device.gatt?.characteristics.values.map(\.notifySocket) ?? []
            where acquisition.client == client { orphans.insert(acquisition.socket, at: now) }
        }
    }

    /// Releases the characteristic of a closed socket.
    mutating func release(_ socket: SocketID) {
        guard let (key, index) = characteristic(of: socket), let object = devices[key]?.gatt?.characteristics[index]
        else { return }
        if object.writeSocket?.socket == socket { return endWriteAcquisition(key, index, object.path) }
        endNotifyAcquisition(key, index, object.path)
        setSubscribed(false, key, index)
    }

    /// Ends acquisitions with the link or with their objects.
    ///
    /// Sessions of `StartNotify` remain.
    mutating func endAcquisitions(_ key: DeviceKey, except kept: Set<String> = []) {
        let characteristics = devices[key]?.gatt?.characteristics.sorted { $0.value.path < $1.value.path } ?? []
        for (index, object) in characteristics where !kept.contains(object.path) {
            for case let acquisition? in [object.notifySocket, object.writeSocket] {
                effects.append(.closeSocket(acquisition.socket))
            }
            if object.isNotifyAcquired { endNotifyAcquisition(key, index, object.path) }
            if object.writeSocket != nil { endWriteAcquisition(key, index, object.path) }
        }
    }

    private mutating func endNotifyAcquisition(_ key: DeviceKey, _ index: Int, _ path: String) {
        let socket = devices[key]?.gatt?.characteristics[index]?.notifySocket?.socket
        devices[key]?.gatt?.characteristics[index]?.notifySocket = nil
        devices[key]?.gatt?.characteristics[index]?.isNotifyAcquired = false
        guard let socket else { return }
        orphans.remove(socket)
        effects.changed(path, InterfaceName.characteristic, [Property("NotifyAcquired", .boolean(false))])
    }

    private mutating func endWriteAcquisition(_ key: DeviceKey, _ index: Int, _ path: String) {
        devices[key]?.gatt?.characteristics[index]?.writeSocket = nil
        effects.changed(path, InterfaceName.characteristic, [Property("WriteAcquired", .boolean(false))])
    }
}
