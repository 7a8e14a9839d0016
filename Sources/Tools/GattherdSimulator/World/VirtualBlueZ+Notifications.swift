import GattherdDBus
import GattherdGATT

// Subscriptions.
extension VirtualBlueZ {
    mutating func startNotify(_ call: MethodCall, _ key: DeviceKey, _ index: Int) {
        guard let device = devices[key], let object = device.gatt?.characteristics[index] else { return }
        let characteristic = peripherals[key.peripheral].characteristics[index]
        guard characteristic.spec.properties.canSubscribe else { return fail(call, .notSupported) }
        guard !object.isNotifyAcquired else { return fail(call, .notifyAcquired) }
        if !device.isConnected || !object.notifySessions.isEmpty {
            devices[key]?.gatt?.characteristics[index]?.notifySessions.insert(call.sender)
            reply(call)
        } else {
            begin(.startNotify(index), call, key)
        }
    }

    mutating func finishStartNotify(_ call: MethodCall, _ key: DeviceKey, _ index: Int) {
        devices[key]?.gatt?.characteristics[index]?.notifySessions.insert(call.sender)
        subscribe(key, index)
        reply(call)
    }

    mutating func stopNotify(_ call: MethodCall, _ key: DeviceKey, _ index: Int) {
        guard let object = devices[key]?.gatt?.characteristics[index] else { return }
        if let socket = object.notifySocket?.socket {
            effects.append(.closeSocket(socket))
            release(socket)
        } else if object.notifySessions.contains(call.sender) {
            endNotifySession(of: call.sender, key, index)
        } else {
            return fail(call, .noNotifySession)
        }
        reply(call)
    }

    /// Subscribes again for the remaining sessions, which bluetoothd does at each connection.
    mutating func subscribeAgain(_ key: DeviceKey) {
        let characteristics = devices[key]?.gatt?.characteristics.filter { !$0.value.notifySessions.isEmpty } ?? [:]
        for index in characteristics.keys.sorted() { subscribe(key, index) }
    }

    private mutating func subscribe(_ key: DeviceKey, _ index: Int) {
        setSubscribed(true, key, index)
        setNotifying(true, key, index)
    }

    private mutating func setNotifying(_ isNotifying: Bool, _ key: DeviceKey, _ index: Int) {
        guard let object = devices[key]?.gatt?.characteristics[index], object.isNotifying != isNotifying else { return }
        devices[key]?.gatt?.characteristics[index]?.isNotifying = isNotifying
        effects.changed(object.path, InterfaceName.characteristic, [Property("Notifying", .boolean(isNotifying))])
    }

    /// Writes the Client Characteristic Configuration of a linked peripheral.
    mutating func setSubscribed(_ isSubscribed: Bool, _ key: DeviceKey, _ index: Int) {
        let characteristic = peripherals[key.peripheral].characteristics[index]
        guard characteristic.isSubscribed != isSubscribed, peripherals[key.peripheral].link == key else { return }
        peripherals[key.peripheral].characteristics[index].isSubscribed = isSubscribed
        let address = peripherals[key.peripheral].spec.address
        effects.record(.subscribed(address, characteristic.spec.uuid, isSubscribed))
    }

    private mutating func endNotifySession(of client: String, _ key: DeviceKey, _ index: Int) {
        devices[key]?.gatt?.characteristics[index]?.notifySessions.remove(client)
        guard devices[key]?.gatt?.characteristics[index]?.notifySessions.isEmpty == true else { return }
        setSubscribed(false, key, index)
        setNotifying(false, key, index)
    }

    mutating func endNotifySessions(of client: String, _ key: DeviceKey) {
        for (index, object) in devices[key]?.gatt?.characteristics ?? [:] where object.notifySessions.contains(client) {
            endNotifySession(of: client, key, index)
        }
    }
}

// MARK: - The peripheral's side

extension VirtualBlueZ {
    /// The delay up to which late notifications are made up for.
    ///
    /// After a longer stall they are skipped.
    private static let maximumLag = Duration.seconds(1)

    /// Starts a peripheral's notifications, each characteristic at its rate.
    mutating func startNotifying(_ index: Int) {
        peripherals[index].rateEpoch += 1
        let peripheral = peripherals[index]
        for (place, characteristic) in peripheral.characteristics.enumerated() where characteristic.rate > 0 {
            // Characteristics notify at different phases of their intervals.
            let phase = Double((index * 61 + place * 23 + 10) % 100) / 100
            let timer = Timer.notify(peripheral: index, characteristic: place, rateEpoch: peripheral.rateEpoch)
            schedule(timer, after: .seconds(1 / characteristic.rate) * phase)
        }
    }

    /// Sends one notification, which is late by `lag`, and schedules the next.
    mutating func produce(_ index: Int, _ place: Int, epoch: Int, lag: Duration) {
        let peripheral = peripherals[index]
        let characteristic = peripheral.characteristics[place]
        let rate = characteristic.rate
        guard peripheral.rateEpoch == epoch, peripheral.link != nil, rate > 0 else { return }
        // An ordered rate replaces the pauses of a recording.
        let pause =
            rate == characteristic.spec.rate ? characteristic.spec.source.pause(after: characteristic.sent) : nil
        let interval = pause ?? .seconds(1 / rate)
        schedule(
            .notify(peripheral: index, characteristic: place, rateEpoch: epoch),
            after: lag < Self.maximumLag ? interval : max(interval, lag)
        )
        guard peripheral.silence == .off else { return }
        notify(index, place, peripherals[index].produce(place))
    }

    /// Sends many notifications at once, of each characteristic with generated values.
    mutating func burst(_ index: Int, _ count: Int) {
        let places = peripherals[index].characteristics.indices.filter {
            peripherals[index].characteristics[$0].spec.source != .stored
        }
        for _ in 0..<count {
            for place in places { notify(index, place, peripherals[index].produce(place)) }
        }
    }

    /// Sends one notification and records whether a subscriber receives it.
    mutating func notify(_ index: Int, _ place: Int, _ payload: [UInt8]) {
        let characteristic = peripherals[index].characteristics[place]
        guard let key = peripherals[index].link, peripherals[index].isPresent else { return }
        peripherals[index].characteristics[place].sent += 1
        let record = NotificationRecord(
            address: peripherals[index].spec.address,
            characteristic: characteristic.spec.uuid,
            number: characteristic.sent,
            payload: payload,
            isDelivered: characteristic.isSubscribed && !adapters[key.adapter].isHung
        )
        updateBattery(key, characteristic.spec.uuid, payload)
        if !record.isDelivered {
            effects.record(.notification(record))
        } else if peripherals[index].spec.lostTail > 0 {
            buffer(HostBuffer.Entry(id: makeID(), characteristic: place, record: record), key)
        } else {
            deliver(record, key, place)
        }
    }

    private mutating func updateBattery(_ key: DeviceKey, _ uuid: BluetoothUUID, _ payload: [UInt8]) {
        guard uuid == .batteryLevel, let device = devices[key], let level = payload.first, device.battery != nil,
            device.battery != level
        else { return }
        devices[key]?.battery = level
        effects.changed(device.path, InterfaceName.battery, [Property("Percentage", .byte(level))])
    }
}

// MARK: - The host's side

extension VirtualBlueZ {
    private mutating func deliver(_ record: NotificationRecord, _ key: DeviceKey, _ place: Int) {
        guard let object = devices[key]?.gatt?.characteristics[place] else { return recordLoss(record) }
        if let socket = object.notifySocket?.socket {
            effects.append(.send(socket, record))
        } else {
            devices[key]?.gatt?.characteristics[place]?.value = record.payload
            // bluetoothd signals the value once for each client's session, and every client receives every signal.
            for _ in object.notifySessions {
                effects.changed(
                    object.path,
                    InterfaceName.characteristic,
                    [Property("Value", .bytes(record.payload))]
                )
            }
            effects.record(.notification(record))
        }
    }

    private mutating func recordLoss(_ record: NotificationRecord) {
        var record = record
        record.isDelivered = false
        effects.record(.notification(record))
    }

    /// Delays a notification in the host.
    ///
    /// The oldest entries beyond the scenario's limit are delivered at once.
    private mutating func buffer(_ entry: HostBuffer.Entry, _ key: DeviceKey) {
        let limit = peripherals[key.peripheral].spec.lostTail
        let surplus = peripherals[key.peripheral].buffer.append(entry, limit: limit)
        for entry in surplus { deliver(entry.record, key, entry.characteristic) }
        schedule(.deliver(key, through: entry.id), after: HostBuffer.delay)
    }

    /// Delivers the delayed notifications up to the number `last`.
    mutating func deliverBuffered(_ key: DeviceKey, through last: UInt64) {
        let due = peripherals[key.peripheral].buffer.remove(through: last)
        for entry in due { deliver(entry.record, key, entry.characteristic) }
    }

    /// Loses the delayed notifications, at the end of the link.
    mutating func loseBuffered(_ index: Int) {
        for entry in peripherals[index].buffer.removeAll() { recordLoss(entry.record) }
    }
}
