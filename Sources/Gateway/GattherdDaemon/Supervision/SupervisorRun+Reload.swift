import GattherdBluetooth
import GattherdGATT
import GattherdLog
import GattherdMachines
public import GattherdModel
import GattherdSync

/// What the configuration has now.
struct ReloadedDevices: Sendable {
    /// Those that are connected.
    let devices: [SupervisedDevice]
    /// Those that are only listened to.
    let sensors: [SupervisedDevice]
    /// The profiles of both.
    let profiles: [any Profile]
    /// The devices that a person has disconnected.
    let held: Set<String>
}

extension Supervisor {
    /// All devices, by name; those that are being let go of are among them.
    public var devices: [SupervisedDevice] { (roster.devices + sensors.devices).sorted { $0.name < $1.name } }

    /// Goes on with other devices and profiles; links that they do not concern are not touched.
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

    /// A device is not ours any more; where `isMoving`, the same peripheral comes back on another adapter, and nobody
    /// else has to let go of it.
    func dismiss(_ device: SupervisedDevice, isMoving: Bool = false) {
        controls.forget(device: device.name)
        surroundings.bonds.forget(device.address)
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

// What a reload means for the herd that is there.
extension SupervisorRun {
    /// A device whose link must become another one leaves first; when it has left the same reload enrols it.
    mutating func events(for reload: ReloadedDevices) -> [SupervisorMachine.Event] {
        self.reload = reload
        replaceSensors(reload)
        let hasOtherProfiles = herd.roster.setProfiles(reload.profiles.filter { !$0.isForAdvertisements })
        let wanted = Dictionary(reload.devices.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        var events: [SupervisorMachine.Event] = []
        for device in herd.roster.devices {
            if let successor = wanted[device.name], successor.hasSameLink(as: device) {
                let isConcerned = become(successor, device, hasOtherProfiles: hasOtherProfiles)
                if isConcerned { events.append(.link(device: device.name, .reconfigured)) }
            } else {
                events.append(.dismissed(device: device.name))
            }
        }
        for device in reload.devices where herd.roster[device.name] == nil {
            // What was read from history may be older than what a person said meanwhile.
            events += enrol(device, isHeld: holds[device.name] ?? reload.held.contains(device.name))
        }
        return events
    }

    /// Who was connected is listened to only when its link has ended.
    private func replaceSensors(_ reload: ReloadedDevices) {
        herd.replaceSensors(with: reload.sensors.filter { herd.roster[$0.name] == nil }, reload.profiles)
    }

    /// True when what is under way with the device is not what it has to be now.
    private func become(_ successor: SupervisedDevice, _ device: SupervisedDevice, hasOtherProfiles: Bool) -> Bool {
        herd.roster.enrol(device.becoming(successor))
        guard hasOtherProfiles || !device.isConfigured(as: successor) else { return false }
        device.meter.endRejectStreaks()
        guard herd.board.status(of: device.name)?.state == .ready else { return true }
        let plan = herd.plans.withLock { $0[device.name] }
        let candidates = herd.roster.profiles(for: device.name)
        let isServedAlike = plan?.isMade(of: candidates, areChosen: successor.profileNames != nil) ?? false
        let isTakenAlike = device.usesSocket == successor.usesSocket && device.silence == successor.silence
        return !isServedAlike || !isTakenAlike
    }

    private mutating func enrol(_ device: SupervisedDevice, isHeld: Bool) -> [SupervisorMachine.Event] {
        herd.roster.enrol(device)
        herd.note(device, "enrolled")
        herd.begin(device.name, isHeld: isHeld)
        return [.enrolled(device: device.name, pinned: device.adapter, isHeld: isHeld)] + sightings(of: device.address)
    }

    /// Everything of a device that has left.
    mutating func forget(_ name: String) {
        guard let device = herd.roster[name] else { return }
        herd.roster.remove(device)
        forgetReleases()
        let successor = reload.flatMap { ($0.devices + $0.sensors).first { $0.name == name } }
        herd.dismiss(device, isMoving: successor?.address == device.address)
        sightings(of: device.address).forEach(herd.send)
        if let reload, successor != nil {
            herd.send(reload)
        } else {
            herd.surroundings.catalogue.forget(device: name)
        }
    }

    /// Tells again what BlueZ knows of an address, to whom it belongs to now.
    private mutating func sightings(of address: BluetoothAddress) -> [SupervisorMachine.Event] {
        let name = herd.roster[address]?.name
        let known = knowing.sorted().compactMap { peripherals[PeripheralID(adapter: $0, address: address)] }
        return known.flatMap { peripheral in
            let links = setOther(peripheral.id, isConnected: name == nil && peripheral.isConnected)
            return links + (name.map { [sighting(of: peripheral, as: $0)] } ?? [])
        }
    }
}
