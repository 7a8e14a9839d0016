import GattherdDBus
import GattherdGATT

// What peripherals send.
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
        let characteristic = peripheral.characteristics[place]
        let rate = characteristic.rate
        guard peripheral.rateEpoch == epoch, peripheral.link != nil, rate > 0 else { return }
        // An order that sets another rate is obeyed by a recording, too.
        let pause =
            rate == characteristic.spec.rate ? characteristic.spec.source.pause(after: characteristic.sent) : nil
        let interval = pause ?? .seconds(1 / rate)
        schedule(
            .notify(peripheral: index, characteristic: place, rateEpoch: epoch),
            after: lag < .seconds(1) ? interval : max(interval, lag)
        )
        guard peripheral.silence == .off else { return }
        notify(index, place, peripherals[index].produce(place))
    }

    /// Sends many notifications at once, of each characteristic that has values of its own.
    mutating func burst(_ index: Int, _ count: Int) {
        let places = peripherals[index].characteristics.indices.filter {
            peripherals[index].characteristics[$0].spec.source != .stored
        }
        for _ in 0..<count {
            for place in places { notify(index, place, peripherals[index].produce(place)) }
        }
    }

    /// Sends one notification; whether anybody gets it is recorded.
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
            effects.append(.record(.notification(record)))
        } else if peripherals[index].spec.lostTail > 0 {
            delay(Unhandled(id: makeID(), place: place, record: record), key)
        } else {
            deliver(record, key, place)
        }
    }

    private mutating func deliver(_ record: NotificationRecord, _ key: DeviceKey, _ place: Int) {
        guard let object = devices[key]?.gatt?.characteristics[place] else { return lose(record) }
        if let socket = object.notifications?.socket {
            effects.append(.send(socket, record))
        } else {
            devices[key]?.gatt?.characteristics[place]?.value = record.payload
            // Each client's session signals the value by itself, to everybody.
            for _ in object.sessions {
                changed(object.path, InterfaceName.characteristic, Property("Value", .bytes(record.payload)))
            }
            effects.append(.record(.notification(record)))
        }
    }

    private mutating func lose(_ record: NotificationRecord) {
        var record = record
        record.isDelivered = false
        effects.append(.record(.notification(record)))
    }

    private mutating func updateBattery(_ key: DeviceKey, _ uuid: BluetoothUUID, _ payload: [UInt8]) {
        guard uuid == .batteryLevel, let device = devices[key], let level = payload.first, device.battery != nil,
            device.battery != level
        else { return }
        devices[key]?.battery = level
        changed(device.path, InterfaceName.battery, Property("Percentage", .byte(level)))
    }
}

// MARK: - What the host has received and not handed on

extension VirtualBlueZ {
    /// A notification that waits in the host for a moment.
    struct Unhandled: Hashable, Sendable {
        let id: UInt64
        let place: Int
        let record: NotificationRecord
    }

    private mutating func delay(_ unhandled: Unhandled, _ key: DeviceKey) {
        peripherals[key.peripheral].tail.append(unhandled)
        let surplus = peripherals[key.peripheral].tail.count - peripherals[key.peripheral].spec.lostTail
        if surplus > 0 { handOn(key, surplus) }
        schedule(.handOn(key, through: unhandled.id), after: .milliseconds(20))
    }

    /// Hands on the oldest ones, as far as `last`.
    mutating func handOn(_ key: DeviceKey, through last: UInt64) {
        handOn(key, peripherals[key.peripheral].tail.count { $0.id <= last })
    }

    private mutating func handOn(_ key: DeviceKey, _ count: Int) {
        let due = peripherals[key.peripheral].tail.prefix(count)
        peripherals[key.peripheral].tail.removeFirst(count)
        for unhandled in due { deliver(unhandled.record, key, unhandled.place) }
    }

    /// The link ended: what the host has not handed on, nobody gets.
    mutating func loseTail(_ index: Int) {
        for unhandled in peripherals[index].tail { lose(unhandled.record) }
        peripherals[index].tail.removeAll()
    }
}
