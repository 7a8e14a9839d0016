import GattherdBluetooth
import GattherdMachines
import GattherdModel

/// Listens to sensors and publishes when they are heard and when they are away.
struct SensorReporter: Sendable {
    let sensors: SensorWatch
    let central: any CentralBackend
    let deviceRecorder: DeviceRecorder
    let reporter: LinkReporter
    /// Passes events to the supervisor machine.
    let send: @Sendable (SupervisorMachine.Event) -> Void

    /// Listens until cancelled.
    func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await sensors.run { sensor, change in publish(change, of: sensor) } }
            for await _ in sensors.replacements {
                await central.watch(sensors.advertisementWatch)
                send(.listening(sensors.adapters))
            }
        }
    }

    private func publish(_ change: SensorWatch.PresenceChange, of sensor: Sensor) {
        let name = sensor.device.name
        switch change {
        case .present(let advertisement):
            var link = LinkStatus(device: name, state: .ready, since: reporter.now())
            link.adapter = advertisement.peripheral.adapter.description
            link.rssi = advertisement.rssi
            record(sensor, called: advertisement.name)
            reporter.status.setProfiles(sensor.profiles.map(\.name), of: name)
            reporter.publish(link, transition(from: .waiting, to: .ready))
        case .away(let silence):
            var link = LinkStatus(device: name, state: .waiting, since: reporter.now())
            link.reason = .silent
            link.detail = "nothing was heard for \(silence)"
            reporter.publish(link, transition(from: .ready, to: .waiting, .silent, link.detail))
        }
    }

    private func transition(
        from: LinkState,
        to: LinkState,
        _ reason: LinkReason? = nil,
        _ detail: String? = nil
    ) -> LinkChange {
        LinkChange(from: from, to: to, reason: reason, detail: detail, attempt: 0, retryAfter: nil)
    }

    /// Records the sensor in history.
    private func record(_ sensor: Sensor, called peripheralName: String?) {
        let record = DeviceRecord(
            device: sensor.device.name,
            address: sensor.device.address.description,
            name: peripheralName,
            profiles: sensor.profiles.map(\.name)
        )
        deviceRecorder.record(record, seenAt: reporter.now())
    }
}
