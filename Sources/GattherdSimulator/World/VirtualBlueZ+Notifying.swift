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
        if let socket = object.socket {
            effects.append(.closeSocket(socket))
            release(socket)
        } else if object.sessions.contains(call.sender) {
            endSession(of: call.sender, key, index)
        } else {
            return fail(call, .noNotifySession)
        }
        reply(call)
    }

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
        let socket = SocketID(id: makeID())
        devices[key]?.gatt?.characteristics[index]?.socket = socket
        setSubscribed(true, key, index)
        changed(call.path, InterfaceName.characteristic, Property("NotifyAcquired", .boolean(true)))
        effects.append(.openSocket(socket, call.token, mtu: peripherals[key.peripheral].spec.mtu))
    }

    /// Takes an acquisition back whose call will not succeed.
    mutating func abandonAcquisition(_ operation: Operation) {
        guard case .acquireNotify(let index) = operation.kind else { return }
        devices[operation.key]?.gatt?.characteristics[index]?.isAcquired = false
    }

    /// A notification socket is no longer read.
    mutating func release(_ socket: SocketID) {
        for (key, device) in devices {
            for (index, object) in device.gatt?.characteristics ?? [:] where object.socket == socket {
                endAcquisition(key, index, object.path)
                setSubscribed(false, key, index)
            }
        }
    }

    private mutating func endAcquisition(_ key: DeviceKey, _ index: Int, _ path: String) {
        devices[key]?.gatt?.characteristics[index]?.socket = nil
        devices[key]?.gatt?.characteristics[index]?.isAcquired = false
        changed(path, InterfaceName.characteristic, Property("NotifyAcquired", .boolean(false)))
    }

    /// Acquisitions end with the link and with their objects, unlike the sessions of `StartNotify`.
    mutating func endAcquisitions(_ key: DeviceKey) {
        for (index, object) in devices[key]?.gatt?.characteristics ?? [:] where object.isAcquired {
            if let socket = object.socket { effects.append(.closeSocket(socket)) }
            endAcquisition(key, index, object.path)
        }
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

    private mutating func setSubscribed(_ isSubscribed: Bool, _ key: DeviceKey, _ index: Int) {
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

// MARK: - What peripherals send

extension VirtualBlueZ {
    /// Sets a peripheral's notifications going, each characteristic at its rate.
    mutating func startNotifying(_ index: Int) {
        peripherals[index].rateEpoch += 1
        let peripheral = peripherals[index]
        for (place, characteristic) in peripheral.characteristics.enumerated() where characteristic.rate > 0 {
            let phase = Double((index * 61 + place * 23 + 10) % 100) / 100
            let timer = Timer.notify(peripheral: index, characteristic: place, rateEpoch: peripheral.rateEpoch)
            schedule(timer, after: .seconds(1 / characteristic.rate) * phase)
        }
    }

    /// Sends one notification of a peripheral's own accord, which is late by `lag`, and sees to the next.
    ///
    /// What was missed is made up for, but after a stall of a second or more it is left out.
    mutating func produce(_ index: Int, _ place: Int, epoch: Int, lag: Duration) {
        let peripheral = peripherals[index]
        let rate = peripheral.characteristics[place].rate
        guard peripheral.rateEpoch == epoch, peripheral.link != nil, rate > 0 else { return }
        let interval = Duration.seconds(1 / rate)
        schedule(
            .notify(peripheral: index, characteristic: place, rateEpoch: epoch),
            after: lag < .seconds(1) ? interval : max(interval, lag)
        )
        guard peripheral.silence == .off else { return }
        notify(index, place, peripherals[index].produce(place))
    }

    /// Sends one notification; whether anybody gets it is recorded.
    mutating func notify(_ index: Int, _ place: Int, _ payload: [UInt8]) {
        let characteristic = peripherals[index].characteristics[place]
        guard let key = peripherals[index].link, peripherals[index].isPresent else { return }
        peripherals[index].characteristics[place].sent += 1
        var record = NotificationRecord(
            address: peripherals[index].spec.address,
            characteristic: characteristic.spec.uuid,
            number: characteristic.sent,
            payload: payload,
            isDelivered: characteristic.isSubscribed
        )
        guard characteristic.isSubscribed, let object = devices[key]?.gatt?.characteristics[place] else {
            record.isDelivered = false
            effects.append(.record(.notification(record)))
            return
        }
        if let socket = object.socket {
            effects.append(.send(socket, record))
        } else {
            devices[key]?.gatt?.characteristics[place]?.value = payload
            changed(object.path, InterfaceName.characteristic, Property("Value", .bytes(payload)))
            effects.append(.record(.notification(record)))
        }
        updateBattery(key, characteristic.spec.uuid, payload)
    }

    private mutating func updateBattery(_ key: DeviceKey, _ uuid: BluetoothUUID, _ payload: [UInt8]) {
        guard uuid == .batteryLevel, let device = devices[key], let level = payload.first, device.battery != nil,
            device.battery != level
        else { return }
        devices[key]?.battery = level
        changed(device.path, InterfaceName.battery, Property("Percentage", .byte(level)))
    }
}
