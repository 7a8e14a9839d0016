import GattherdGATT

/// The downloads of the records that peripherals have stored.
final class RecordSender {
    /// The time between two groups of records.
    private static let pause = Duration.milliseconds(10)

    private let world: World
    private let notifications: NotificationSender

    init(_ world: World, _ notifications: NotificationSender) {
        (self.world, self.notifications) = (world, notifications)
    }

    /// Handles a value that was written to a characteristic of a download.
    func write(_ octets: [UInt8], _ index: Int, _ place: Int) {
        guard let role = world.air.peripherals[index].characteristics[place].spec.records else { return }
        switch role {
        case .control: request(octets, index)
        case .selector: select(octets, index)
        case .values, .clock, .block: break
        }
    }

    private func request(_ octets: [UInt8], _ index: Int) {
        guard let answer = world.air.peripherals[index].records?.request(octets, at: world.clock.now) else {
            return schedule(index)
        }
        send(answer, index, isAnswer: true)
    }

    private func select(_ octets: [UInt8], _ index: Int) {
        guard let block = world.air.peripherals[index].records?.block(octets, at: world.clock.now),
            let place = place(of: .block, index)
        else { return }
        world.air.peripherals[index].characteristics[place].value = block
    }

    private func schedule(_ index: Int) {
        guard let epoch = world.air.peripherals[index].records?.epoch else { return }
        world.clock.schedule(.sendRecords(peripheral: index, epoch: epoch), after: Self.pause)
    }

    /// Sends a group of records, and schedules the next.
    func send(_ index: Int, epoch: UInt64) {
        guard let records = world.air.peripherals[index].records, records.epoch == epoch,
            let key = world.air.peripherals[index].link
        else { return }
        for _ in 0..<max(1, records.spec.speed / 100) {
            switch world.air.peripherals[index].records?.next() {
            case .value(let octets, let isLast):
                send(octets, index, isAnswer: isLast)
                if isLast { return }
            case .cut: return cut(key)
            case nil: return
            }
        }
        schedule(index)
    }

    private func cut(_ key: DeviceKey) {
        guard let device = world.devices[key] else { return }
        world.clock.schedule(.linkDown(key, linkEpoch: device.linkEpoch, .remote), after: .zero)
    }

    private func send(_ octets: [UInt8], _ index: Int, isAnswer: Bool) {
        let control = place(of: .control, index)
        let canAnswer = control.map { world.air.peripherals[index].characteristics[$0].spec.properties.canSubscribe }
        let place = isAnswer && canAnswer == true ? control : place(of: .values, index)
        if let place { notifications.send(index, place, octets) }
    }

    private func place(of role: RecordRole, _ index: Int) -> Int? {
        world.air.peripherals[index].characteristics.firstIndex { $0.spec.records == role }
    }
}
