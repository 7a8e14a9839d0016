import GattherdDBus
import GattherdGATT

// Subscriptions and notifications.
extension VirtualBlueZ {
    mutating func startNotify(_ call: MethodCall, _ key: DeviceKey, _ index: Int) {
        guard let device = devices[key], let object = device.gatt?.characteristics[index] else { return }
        let characteristic = peripherals[key.peripheral].characteristics[index]
        guard characteristic.spec.properties.canSubscribe else { return fail(call, .notSupported) }
        guard !object.isAcquired else { return fail(call, .notifyAcquired) }
        if !device.isConnected || !object.sessions.isEmpty {
            devices[key]?.gatt?.characteristics[index]?.sessions.insert(call.sender)
            reply(call)
        } else {
            begin(.startNotify(index), call, key)
        }
    }

    mutating func finishStartNotify(_ call: MethodCall, _ key: DeviceKey, _ index: Int) {
        devices[key]?.gatt?.characteristics[index]?.sessions.insert(call.sender)
        subscribe(key, index)
        reply(call)
    }

    mutating func stopNotify(_ call: MethodCall, _ key: DeviceKey, _ index: Int) {
        guard let object = devices[key]?.gatt?.characteristics[index] else { return }
        if let socket = object.notifications?.socket {
            effects.append(.closeSocket(socket))
            release(socket)
        } else if object.sessions.contains(call.sender) {
            endSession(of: call.sender, key, index)
        } else {
            return fail(call, .noNotifySession)
        }
        reply(call)
    }

    /// At a new connection bluetoothd subscribes by itself for the sessions that are left.
    mutating func subscribeAgain(_ key: DeviceKey) {
        let armed = devices[key]?.gatt?.characteristics.filter { !$0.value.sessions.isEmpty } ?? [:]
        for index in armed.keys.sorted() { subscribe(key, index) }
    }

    private mutating func subscribe(_ key: DeviceKey, _ index: Int) {
        setSubscribed(true, key, index)
        guard let object = devices[key]?.gatt?.characteristics[index], !object.isNotifying else { return }
        devices[key]?.gatt?.characteristics[index]?.isNotifying = true
        changed(object.path, InterfaceName.characteristic, Property("Notifying", .boolean(true)))
    }

    mutating func setSubscribed(_ isSubscribed: Bool, _ key: DeviceKey, _ index: Int) {
        let characteristic = peripherals[key.peripheral].characteristics[index]
        guard characteristic.isSubscribed != isSubscribed, peripherals[key.peripheral].link == key else { return }
        peripherals[key.peripheral].characteristics[index].isSubscribed = isSubscribed
        let address = peripherals[key.peripheral].spec.address
        effects.append(.record(.subscribed(address, characteristic.spec.uuid, isSubscribed)))
    }

    private mutating func endSession(of client: String, _ key: DeviceKey, _ index: Int) {
        devices[key]?.gatt?.characteristics[index]?.sessions.remove(client)
        guard let object = devices[key]?.gatt?.characteristics[index], object.sessions.isEmpty else { return }
        setSubscribed(false, key, index)
        guard object.isNotifying else { return }
        devices[key]?.gatt?.characteristics[index]?.isNotifying = false
        changed(object.path, InterfaceName.characteristic, Property("Notifying", .boolean(false)))
    }

    mutating func forgetSessions(of client: String, _ key: DeviceKey) {
        for (index, object) in devices[key]?.gatt?.characteristics ?? [:] where object.sessions.contains(client) {
            endSession(of: client, key, index)
        }
    }
}
