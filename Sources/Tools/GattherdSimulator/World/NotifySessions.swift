import GattherdDBus

/// The subscriptions of clients by `StartNotify`, which survive the link.
final class NotifySessions {
    private let world: World

    init(_ world: World) {
        self.world = world
    }

    /// Starts a client's session.
    ///
    /// Returns true if the peripheral has to be asked first. Otherwise the call is answered.
    func start(_ call: MethodCall, _ key: DeviceKey, _ index: Int) -> Bool {
        guard let device = world.devices[key], let object = device.gatt?.characteristics[index] else { return false }
        let spec = world.air.peripherals[key.peripheral].characteristics[index].spec
        if !spec.properties.canSubscribe {
            world.effects.fail(call, .notSupported)
        } else if object.isNotifyAcquired {
            world.effects.fail(call, .notifyAcquired)
        } else if device.isConnected, object.notifySessions.isEmpty {
            return true
        } else {
            world.devices[key]?.gatt?.characteristics[index]?.notifySessions.insert(call.sender)
            world.effects.reply(call)
        }
        return false
    }

    /// Starts a session that the peripheral has accepted.
    func finishStart(_ call: MethodCall, _ key: DeviceKey, _ index: Int) {
        world.devices[key]?.gatt?.characteristics[index]?.notifySessions.insert(call.sender)
        subscribe(key, index)
        world.effects.reply(call)
    }

    /// Ends a client's session.
    ///
    /// Returns false if there is none.
    func stop(of client: String, _ key: DeviceKey, _ index: Int) -> Bool {
        guard let object = world.devices[key]?.gatt?.characteristics[index], object.notifySessions.contains(client)
        else { return false }
        end(of: client, key, index)
        return true
    }

    /// Ends the sessions of a client that left the bus.
    func removeClient(_ client: String, _ key: DeviceKey) {
        let characteristics = world.devices[key]?.gatt?.characteristics ?? [:]
        for (index, object) in characteristics where object.notifySessions.contains(client) {
            end(of: client, key, index)
        }
    }

    /// Subscribes again for the remaining sessions, which bluetoothd does at each connection.
    func subscribeAgain(_ key: DeviceKey) {
        let characteristics = world.devices[key]?.gatt?.characteristics.filter { !$0.value.notifySessions.isEmpty }
        for index in (characteristics ?? [:]).keys.sorted() { subscribe(key, index) }
    }

    private func subscribe(_ key: DeviceKey, _ index: Int) {
        world.setSubscribed(true, key, index)
        setNotifying(true, key, index)
    }

    private func end(of client: String, _ key: DeviceKey, _ index: Int) {
        world.devices[key]?.gatt?.characteristics[index]?.notifySessions.remove(client)
        guard world.devices[key]?.gatt?.characteristics[index]?.notifySessions.isEmpty == true else { return }
        world.setSubscribed(false, key, index)
        setNotifying(false, key, index)
    }

    private func setNotifying(_ isNotifying: Bool, _ key: DeviceKey, _ index: Int) {
        guard let object = world.devices[key]?.gatt?.characteristics[index], object.isNotifying != isNotifying
        else { return }
        world.devices[key]?.gatt?.characteristics[index]?.isNotifying = isNotifying
        let property = Property("Notifying", .boolean(isNotifying))
        world.effects.changed(object.path, InterfaceName.characteristic, [property])
    }
}

extension World {
    /// Writes the Client Characteristic Configuration of a linked peripheral.
    func setSubscribed(_ isSubscribed: Bool, _ key: DeviceKey, _ index: Int) {
        let characteristic = air.peripherals[key.peripheral].characteristics[index]
        guard characteristic.isSubscribed != isSubscribed, air.peripherals[key.peripheral].link == key else { return }
        air.peripherals[key.peripheral].characteristics[index].isSubscribed = isSubscribed
        let address = air.peripherals[key.peripheral].spec.address
        effects.record(.subscribed(address, characteristic.spec.uuid, isSubscribed))
    }
}
