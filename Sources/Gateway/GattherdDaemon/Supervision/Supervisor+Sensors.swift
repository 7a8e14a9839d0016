import GattherdBluetooth
import GattherdLog
import GattherdMachines
import GattherdModel

extension Supervisor {
    /// Listens to the sensors until cancelled.
    func listen() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.sensors.run { sensor, news in await self.take(news, of: sensor) } }
            for await _ in sensors.replacements {
                await central.watch(sensors.wishes)
                send(.listening(sensors.adapters))
            }
        }
    }

    /// Replaces the sensors; unchanged ones keep running.
    func replaceSensors(with devices: [SupervisedDevice], _ profiles: [any Profile]) {
        let announcer = announcer
        let (changed, gone) = sensors.replace(
            with: devices,
            profiles,
            sessionContext.catalogue,
            describe: { announcer?.describe($0) }
        )
        for device in gone { dismiss(device) }
        for (device, isNew) in changed {
            begin(device.name, isHeld: false)
            if isNew { note(device, "enrolled") }
        }
    }

    private func take(_ news: SensorWatch.News, of sensor: Sensor) async {
        let name = sensor.device.name
        switch news {
        case .heard(let advertisement):
            var status = LinkStatus(device: name, state: .ready, since: now())
            status.adapter = advertisement.peripheral.adapter.description
            status.rssi = advertisement.rssi
            await recordSensor(sensor, called: advertisement.name)
            // The sensor may have been removed or replaced meanwhile.
            guard sensors.isWatched(sensor) else { return }
            board.setProfiles(sensor.profiles.map(\.name), of: name)
            publish(status, change(from: .waiting, to: .ready))
        case .silent:
            var status = LinkStatus(device: name, state: .waiting, since: now())
            status.reason = .silent
            status.detail = "nothing was heard for \(sensor.silence)"
            publish(status, change(from: .ready, to: .waiting, .silent, status.detail))
        }
    }

    private func change(
        from: LinkState,
        to: LinkState,
        _ reason: LinkReason? = nil,
        _ detail: String? = nil
    ) -> LinkChange {
        LinkChange(from: from, to: to, reason: reason, detail: detail, attempt: 0, retryAfter: nil)
    }

    /// Records the sensor in history.
    private func recordSensor(_ sensor: Sensor, called peripheralName: String?) async {
        let record = DeviceRecord(
            device: sensor.device.name,
            address: sensor.device.address.description,
            name: peripheralName,
            profiles: sensor.profiles.map(\.name)
        )
        do throws(StoreFault) {
            try await store.record(record, seenAt: now())
        } catch {
            log(.warning, "the device could not be recorded in history", [.init("history.error", error.detail)])
        }
    }
}
