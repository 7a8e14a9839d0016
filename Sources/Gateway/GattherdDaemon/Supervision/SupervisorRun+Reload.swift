import GattherdBluetooth
import GattherdGATT
import GattherdLog
import GattherdMachines
public import GattherdModel
import GattherdSync

/// The devices and profiles of a reloaded configuration.
struct ReloadedDevices: Sendable {
    /// The devices that are connected.
    let devices: [SupervisedDevice]
    /// The sensors, which are never connected.
    let sensors: [SupervisedDevice]
    /// The profiles of devices and sensors.
    let profiles: [any Profile]
    /// The devices on hold.
    let held: Set<String>
}

extension Supervisor {
    /// All devices, sorted by name, including those that are being removed.
    public var devices: [SupervisedDevice] {
        (configuredDevices.devices + sensors.devices).sorted { $0.name < $1.name }
    }

    /// Replaces the devices and profiles; unaffected links stay.
    public func reload(devices: [SupervisedDevice], profiles: [any Profile]) async {
        send(
            ReloadedDevices(
                devices: devices.filter { $0.listening == nil },
                sensors: devices.filter { $0.listening != nil },
                profiles: profiles,
                held: await heldDevices() ?? []
            )
        )
    }

    /// Removes a device.
    ///
    /// With `isMoving`, the same peripheral returns on another adapter, so its removal is not announced.
    func dismiss(_ device: SupervisedDevice, isMoving: Bool = false) {
        controls.forget(device: device.name)
        sessionContext.bonds.forget(device.address)
        plans.withLock { $0[device.name] = nil }
        board.remove(device: device.name)
        if !isMoving { announcer?.remove(device: device.name) }
        note(device, "dismissed")
    }

    func note(_ device: SupervisedDevice, _ state: String) {
        let address = device.address.description
        recorder.record(device: device.name, kind: "device", ["state": .text(state), "address": .text(address)])
        log(.notice, "device", [.init("device", device.name), .init("state", state), .init("address", address)])
    }
}

// Handling of a reload.
extension SupervisorRun {
    /// Returns the events of a reload.
    ///
    /// A device whose link changes is removed first; after that the same reload enrols it again.
    mutating func events(for reload: ReloadedDevices) -> [SupervisorMachine.Event] {
        self.reload = reload
        replaceSensors(reload)
        let hasOtherProfiles = supervisor.configuredDevices.setProfiles(
            reload.profiles.filter { !$0.isForAdvertisements }
        )
        let wanted = Dictionary(reload.devices.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        var events: [SupervisorMachine.Event] = []
        for device in supervisor.configuredDevices.devices {
            if let successor = wanted[device.name], successor.hasSameLink(as: device) {
                let isConcerned = become(successor, device, hasOtherProfiles: hasOtherProfiles)
                if isConcerned { events.append(.link(device: device.name, .reconfigured)) }
            } else {
                events.append(.dismissed(device: device.name))
            }
        }
        for device in reload.devices where supervisor.configuredDevices[device.name] == nil {
            // The stored holds may be older than a request since the start.
            events += enrol(device, isHeld: holds[device.name] ?? reload.held.contains(device.name))
        }
        return events
    }

    /// Replaces the sensors; a device that was connected becomes a sensor after its link has ended.
    private func replaceSensors(_ reload: ReloadedDevices) {
        supervisor.replaceSensors(
            with: reload.sensors.filter { supervisor.configuredDevices[$0.name] == nil },
            reload.profiles
        )
    }

    /// Updates a device; returns true if its link session must be replaced.
    private func become(_ successor: SupervisedDevice, _ device: SupervisedDevice, hasOtherProfiles: Bool) -> Bool {
        supervisor.configuredDevices.enrol(device.becoming(successor))
        guard hasOtherProfiles || !device.isConfigured(as: successor) else { return false }
        device.meter.endRejectStreaks()
        guard supervisor.board.status(of: device.name)?.state == .ready else { return true }
        let plan = supervisor.plans.withLock { $0[device.name] }
        let candidates = supervisor.configuredDevices.profiles(for: device.name)
        let isServedAlike = plan?.isMade(of: candidates, areChosen: successor.profileNames != nil) ?? false
        let isTakenAlike = device.usesSocket == successor.usesSocket && device.silence == successor.silence
        return !isServedAlike || !isTakenAlike
    }

    private mutating func enrol(_ device: SupervisedDevice, isHeld: Bool) -> [SupervisorMachine.Event] {
        supervisor.configuredDevices.enrol(device)
        supervisor.note(device, "enrolled")
        supervisor.begin(device.name, isHeld: isHeld)
        return [.enrolled(device: device.name, pinned: device.adapter, isHeld: isHeld)] + sightings(of: device.address)
    }

    /// Removes the state of a device that has left.
    mutating func forget(_ name: String) {
        guard let device = supervisor.configuredDevices[name] else { return }
        supervisor.configuredDevices.remove(device)
        forgetReleases()
        let successor = reload.flatMap { ($0.devices + $0.sensors).first { $0.name == name } }
        supervisor.dismiss(device, isMoving: successor?.address == device.address)
        sightings(of: device.address).forEach(supervisor.send)
        if let reload, successor != nil {
            supervisor.send(reload)
        } else {
            supervisor.sessionContext.catalogue.forget(device: name)
        }
    }

    /// Returns the sightings of an address for its present device.
    private mutating func sightings(of address: BluetoothAddress) -> [SupervisorMachine.Event] {
        let name = supervisor.configuredDevices[address]?.name
        let known = knowing.sorted().compactMap { peripherals[PeripheralID(adapter: $0, address: address)] }
        return known.flatMap { peripheral in
            let links = setOther(peripheral.id, isConnected: name == nil && peripheral.isConnected)
            return links + (name.map { [sighting(of: peripheral, as: $0)] } ?? [])
        }
    }
}
