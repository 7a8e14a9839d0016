import GattherdDBus
import GattherdGATT

// Sockets that clients acquire, for notifications and for writes.
extension VirtualBlueZ {
    mutating func acquireNotify(_ call: MethodCall, _ key: DeviceKey, _ index: Int) {
        guard let device = devices[key], let object = device.gatt?.characteristics[index] else { return }
        let properties = peripherals[key.peripheral].characteristics[index].spec.properties
        guard device.isConnected else { return fail(call, .notConnected) }
        guard properties.contains(.notify) else { return fail(call, .notSupported) }
        guard !object.isAcquired else { return fail(call, .notifyAcquired) }
        guard object.sessions.isEmpty else { return fail(call, .acquireInProgress) }
        devices[key]?.gatt?.characteristics[index]?.isAcquired = true
        begin(.acquireNotify(index), call, key)
    }

    mutating func finishAcquireNotify(_ call: MethodCall, _ key: DeviceKey, _ index: Int) {
        let acquisition = GATTObjects.Acquisition(socket: SocketID(id: makeID()), client: call.sender)
        devices[key]?.gatt?.characteristics[index]?.notifications = acquisition
        setSubscribed(true, key, index)
        changed(call.path, InterfaceName.characteristic, Property("NotifyAcquired", .boolean(true)))
        let mtu = peripherals[key.peripheral].spec.mtu
        effects.append(.openSocket(acquisition.socket, call.token, mtu: mtu, isRead: false))
    }

    mutating func acquireWrite(_ call: MethodCall, _ key: DeviceKey, _ index: Int) {
        guard let device = devices[key], let object = device.gatt?.characteristics[index] else { return }
        let peripheral = peripherals[key.peripheral]
        guard device.isConnected else { return fail(call, .notConnected) }
        guard object.writes == nil else { return fail(call, .writeAcquired) }
        guard peripheral.characteristics[index].spec.properties.contains(.writeWithoutResponse) else {
            return fail(call, .notSupported)
        }
        let acquisition = GATTObjects.Acquisition(socket: SocketID(id: makeID()), client: call.sender)
        devices[key]?.gatt?.characteristics[index]?.writes = acquisition
        changed(call.path, InterfaceName.characteristic, Property("WriteAcquired", .boolean(true)))
        effects.append(.openSocket(acquisition.socket, call.token, mtu: peripheral.spec.mtu, isRead: true))
    }

    /// Takes an acquisition back whose call will not succeed.
    mutating func abandonAcquisition(_ operation: Operation) {
        guard case .acquireNotify(let index) = operation.kind else { return }
        devices[operation.key]?.gatt?.characteristics[index]?.isAcquired = false
    }

    /// A client wrote a packet to a socket that it acquired for writes; what is over 512 octets is lost.
    mutating func take(_ packet: [UInt8], from socket: SocketID) {
        guard let (key, index) = place(of: socket), devices[key]?.isConnected == true else { return }
        command(Array(packet.prefix(512)), key, index)
    }

    private func place(of socket: SocketID) -> (DeviceKey, Int)? {
        for (key, device) in devices {
            for (index, object) in device.gatt?.characteristics ?? [:]
            where object.notifications?.socket == socket || object.writes?.socket == socket { return (key, index) }
        }
        return nil
    }

    /// The other end of a socket was closed.
    ///
    /// BlueZ 5.66 crashes when its client had left the bus before.
    mutating func socketClosed(_ socket: SocketID) {
        if let left = orphans.removeValue(forKey: socket), now - left >= .milliseconds(100) {
            effects.append(.record(.crashed))
            return stopDaemon(isGraceful: false, for: .seconds(2))
        }
        release(socket)
    }

    /// Notes which sockets a client that left the bus still has.
    mutating func noteOrphans(of client: String) {
        for device in devices.values {
            for object in device.gatt?.characteristics.values.map(\.notifications) ?? [] {
                if let object, object.client == client { orphans[object.socket] = now }
            }
        }
    }

    /// A socket is no longer used.
    mutating func release(_ socket: SocketID) {
        guard let (key, index) = place(of: socket), let object = devices[key]?.gatt?.characteristics[index] else {
            return
        }
        if object.writes?.socket == socket { return endWrites(key, index, object.path) }
        endNotifications(key, index, object.path)
        setSubscribed(false, key, index)
    }

    /// Acquisitions end with the link and with their objects, unlike the sessions of `StartNotify`.
    mutating func endAcquisitions(_ key: DeviceKey, except kept: Set<String> = []) {
        let objects = devices[key]?.gatt?.characteristics.sorted { $0.value.path < $1.value.path } ?? []
        for (index, object) in objects where !kept.contains(object.path) {
            for acquisition in [object.notifications, object.writes] {
                if let acquisition { effects.append(.closeSocket(acquisition.socket)) }
            }
            if object.isAcquired { endNotifications(key, index, object.path) }
            if object.writes != nil { endWrites(key, index, object.path) }
        }
    }

    private mutating func endNotifications(_ key: DeviceKey, _ index: Int, _ path: String) {
        let socket = devices[key]?.gatt?.characteristics[index]?.notifications?.socket
        if let socket { orphans[socket] = nil }
        devices[key]?.gatt?.characteristics[index]?.notifications = nil
        devices[key]?.gatt?.characteristics[index]?.isAcquired = false
        guard socket != nil else { return }
        changed(path, InterfaceName.characteristic, Property("NotifyAcquired", .boolean(false)))
    }

    private mutating func endWrites(_ key: DeviceKey, _ index: Int, _ path: String) {
        devices[key]?.gatt?.characteristics[index]?.writes = nil
        changed(path, InterfaceName.characteristic, Property("WriteAcquired", .boolean(false)))
    }
}
