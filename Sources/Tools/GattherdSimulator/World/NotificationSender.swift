import GattherdDBus
import GattherdGATT

/// The notifications of peripherals, and their delivery through the host to clients.
final class NotificationSender {
    /// The delay up to which late notifications are made up for.
    ///
    /// After a longer stall they are skipped.
    private static let maximumLag = Duration.seconds(1)

    private let world: World
    /// The number of restarts of each peripheral's notification timers.
    ///
    /// Timers of earlier epochs are ignored.
    private var rateEpochs: [Int]
    /// The notifications that the host has not delivered yet, by peripheral; empty without `lost_tail`.
    private var buffers: [HostBuffer]

    init(_ world: World) {
        self.world = world
        rateEpochs = world.air.peripherals.map { _ in 0 }
        buffers = world.air.peripherals.map { _ in HostBuffer() }
    }

    /// True if the host has notifications that it has not delivered yet.
    func isBuffering(_ index: Int) -> Bool { !buffers[index].isEmpty }

    /// Starts a peripheral's notifications, each characteristic at its rate.
    func start(_ index: Int) {
        rateEpochs[index] += 1
        for (place, characteristic) in world.air.peripherals[index].characteristics.enumerated()
        where characteristic.rate > 0 {
            // Characteristics notify at different phases of their intervals.
            let phase = Double((index * 61 + place * 23 + 10) % 100) / 100
            schedule(index, place, after: .seconds(1 / characteristic.rate) * phase)
        }
    }

    func stop(_ index: Int) {
        rateEpochs[index] += 1
    }

    private func schedule(_ index: Int, _ place: Int, after delay: Duration) {
        let timer = SimulationTimer.notify(peripheral: index, characteristic: place, rateEpoch: rateEpochs[index])
        world.clock.schedule(timer, after: delay)
    }

    /// Sends one notification, which is late by `lag`, and schedules the next.
    func produce(_ index: Int, _ place: Int, epoch: Int, lag: Duration) {
        let peripheral = world.air.peripherals[index]
        let characteristic = peripheral.characteristics[place]
        let rate = characteristic.rate
        guard rateEpochs[index] == epoch, peripheral.link != nil, rate > 0 else { return }
        // An ordered rate replaces the pauses of a recording.
        let pause =
            rate == characteristic.spec.rate ? characteristic.spec.source.pause(after: characteristic.sent) : nil
        let interval = pause ?? .seconds(1 / rate)
        schedule(index, place, after: lag < Self.maximumLag ? interval : max(interval, lag))
        guard peripheral.silence == .off else { return }
        send(index, place, world.air.peripherals[index].produce(place))
    }

    /// Sends many notifications at once, of each characteristic with generated values.
    func burst(_ index: Int, _ count: Int) {
        let places = world.air.peripherals[index].characteristics.indices.filter {
            world.air.peripherals[index].characteristics[$0].spec.source != .stored
        }
        for _ in 0..<count {
            for place in places { send(index, place, world.air.peripherals[index].produce(place)) }
        }
    }

    /// Sends one notification and records whether a subscriber receives it.
    func send(_ index: Int, _ place: Int, _ payload: [UInt8]) {
        let characteristic = world.air.peripherals[index].characteristics[place]
        guard let key = world.air.peripherals[index].link, world.isInContact(key) else { return }
        world.air.peripherals[index].characteristics[place].sent += 1
        let record = NotificationRecord(
            address: world.air.peripherals[index].spec.address,
            characteristic: characteristic.spec.uuid,
            number: characteristic.sent,
            payload: payload,
            isDelivered: characteristic.isSubscribed && !world.adapters[key.adapter].isHung
        )
        updateBattery(key, characteristic.spec.uuid, payload)
        if !record.isDelivered {
            world.effects.record(.notification(record))
        } else if world.air.peripherals[index].spec.lostTail > 0 {
            buffer(HostBuffer.Entry(id: world.clock.makeID(), characteristic: place, record: record), key)
        } else {
            deliver(record, key, place)
        }
    }

    private func updateBattery(_ key: DeviceKey, _ uuid: BluetoothUUID, _ payload: [UInt8]) {
        guard uuid == .batteryLevel, let device = world.devices[key], let level = payload.first,
            device.battery != nil, device.battery != level
        else { return }
        world.devices[key]?.battery = level
        world.effects.changed(device.path, InterfaceName.battery, [Property("Percentage", .byte(level))])
    }
}

// MARK: - The host's side

extension NotificationSender {
    /// Delivers the delayed notifications up to the number `last`.
    func deliverBuffered(_ key: DeviceKey, through last: UInt64) {
        let due = buffers[key.peripheral].remove(through: last)
        for entry in due { deliver(entry.record, key, entry.characteristic) }
    }

    /// Loses the delayed notifications, at the end of the link.
    func loseBuffered(_ index: Int) {
        for entry in buffers[index].removeAll() { recordLoss(entry.record) }
    }

    /// Delays a notification in the host.
    ///
    /// The oldest entries beyond the scenario's limit are delivered at once.
    private func buffer(_ entry: HostBuffer.Entry, _ key: DeviceKey) {
        let limit = world.air.peripherals[key.peripheral].spec.lostTail
        let surplus = buffers[key.peripheral].append(entry, limit: limit)
        for entry in surplus { deliver(entry.record, key, entry.characteristic) }
        world.clock.schedule(.deliver(key, through: entry.id), after: HostBuffer.delay)
    }

    private func deliver(_ record: NotificationRecord, _ key: DeviceKey, _ place: Int) {
        guard let object = world.devices[key]?.gatt?.characteristics[place] else { return recordLoss(record) }
        if let socket = object.notifySocket?.socket { return world.effects.append(.send(socket, record)) }
        world.devices[key]?.gatt?.characteristics[place]?.value = record.payload
        // bluetoothd signals the value once for each client's session, and every client receives every signal.
        let value = Property("Value", .bytes(record.payload))
        for _ in object.notifySessions {
            world.effects.changed(object.path, InterfaceName.characteristic, [value])
        }
        world.effects.record(.notification(record))
    }

    private func recordLoss(_ record: NotificationRecord) {
        var record = record
        record.isDelivered = false
        world.effects.record(.notification(record))
    }
}

/// Notifications that the host has received and not yet delivered to clients.
///
/// Lost when the link ends.
private struct HostBuffer {
    struct Entry {
        let id: UInt64
        /// The characteristic's index in the scenario.
        let characteristic: Int
        let record: NotificationRecord
    }

    /// The time from the receipt of a notification to its delivery.
    static let delay = Duration.milliseconds(20)

    private var entries: [Entry] = []

    var isEmpty: Bool { entries.isEmpty }

    /// Appends an entry.
    ///
    /// Returns the oldest entries beyond `limit`, which are removed.
    mutating func append(_ entry: Entry, limit: Int) -> [Entry] {
        entries.append(entry)
        return removeFirst(max(0, entries.count - limit))
    }

    /// Removes and returns the entries up to the number `id`.
    mutating func remove(through id: UInt64) -> [Entry] {
        removeFirst(entries.count { $0.id <= id })
    }

    mutating func removeAll() -> [Entry] {
        removeFirst(entries.count)
    }

    private mutating func removeFirst(_ count: Int) -> [Entry] {
        defer { entries.removeFirst(count) }
        return Array(entries.prefix(count))
    }
}
