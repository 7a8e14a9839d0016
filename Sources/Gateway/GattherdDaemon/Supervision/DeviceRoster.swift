import GattherdGATT
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSync

/// The devices and profiles of a reloaded configuration.
struct ReloadedDevices: Sendable {
    /// The devices to connect, all except the sensors.
    let devices: [SupervisedDevice]
    /// The sensors, which are never connected.
    let sensors: [SupervisedDevice]
    /// The profiles of devices and sensors.
    let profiles: [any Profile]
    /// The devices on hold.
    let held: Set<String>

    /// The device of that name, connected or not.
    subscript(name: String) -> SupervisedDevice? { (devices + sensors).first { $0.name == name } }
}

/// Enrols, replaces and removes devices.
struct DeviceRoster {
    private let configuredDevices: ConfiguredDevices
    private let sensors: SensorWatch
    private let controls: ControlService
    private let context: LinkSessionContext
    private let reporter: LinkReporter
    /// The newest reload.
    private var newest: ReloadedDevices?
    /// The devices that have left and whose successors are not enrolled yet, with the address of a device that returns
    /// on another adapter: its removal is not announced.
    private var departed: [String: BluetoothAddress?] = [:]
    /// The holds of the start, and those that people have set or ended since.
    private var holds: [String: Bool] = [:]

    init(_ context: LinkSessionContext, sensors: SensorWatch, controls: ControlService, reporter: LinkReporter) {
        configuredDevices = context.configuredDevices
        self.sensors = sensors
        self.controls = controls
        self.context = context
        self.reporter = reporter
    }

    /// Publishes the first state of all devices.
    mutating func start(held: Set<String>) {
        for device in held { holds[device] = true }
        for device in configuredDevices.devices { reporter.start(device.name, isHeld: held.contains(device.name)) }
        for device in sensors.devices { reporter.start(device.name, isHeld: false) }
    }

    /// Records a hold that a person has set or ended.
    mutating func setHeld(_ device: String, _ isHeld: Bool) {
        holds[device] = isHeld
    }

    /// Returns the events of a reload.
    ///
    /// A device whose link changes is removed first; after that the same reload enrols it again.
    mutating func apply(_ reload: ReloadedDevices, _ sessions: LinkSessions) -> [SupervisorMachine.Event] {
        newest = reload
        finishRemovals(reload)
        replaceSensors(reload)
        let hasOtherProfiles = configuredDevices.setProfiles(reload.profiles.filter { !$0.isForAdvertisements })
        let wanted = Dictionary(reload.devices.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        var events: [SupervisorMachine.Event] = []
        for device in configuredDevices.devices {
            if let successor = wanted[device.name], successor.hasSameLink(as: device) {
                let assignment = sessions.assignment(of: device.name)
                let needsSession = replace(device, with: successor, hasOtherProfiles, assignment)
                if needsSession { events.append(.link(device: device.name, .reconfigured)) }
            } else {
                events.append(.dismissed(device: device.name))
            }
        }
        for device in reload.devices where configuredDevices[device.name] == nil {
            // The stored holds may be older than a request since the start.
            events.append(enrol(device, isHeld: holds[device.name] ?? reload.held.contains(device.name)))
        }
        return events
    }

    /// Applies the newest reload again, which enrols the successors of devices that have left.
    mutating func applyNewest(_ sessions: LinkSessions) -> [SupervisorMachine.Event] {
        guard let newest else { return [] }
        return apply(newest, sessions)
    }

    /// Completes the removal of devices that have left and do not return as an earlier reload had it.
    private mutating func finishRemovals(_ reload: ReloadedDevices) {
        for (name, address) in departed {
            let successor = reload[name]
            if let address, successor?.address != address {
                controls.remove(device: name, isMoving: false)
                reporter.announcer?.remove(device: name)
            }
            if successor == nil { context.catalogue.remove(device: name) }
        }
        departed = [:]
    }

    private func enrol(_ device: SupervisedDevice, isHeld: Bool) -> SupervisorMachine.Event {
        configuredDevices.enrol(device)
        reporter.record(device, "enrolled")
        reporter.start(device.name, isHeld: isHeld)
        return .enrolled(device: device.name, pinned: device.adapter, isHeld: isHeld)
    }

    /// Updates a device; returns true if its link session must be replaced.
    private func replace(
        _ device: SupervisedDevice,
        with successor: SupervisedDevice,
        _ hasOtherProfiles: Bool,
        _ assignment: ProfileAssignment?
    ) -> Bool {
        configuredDevices.enrol(device.becoming(successor))
        guard hasOtherProfiles || !device.isConfigured(as: successor) else { return false }
        device.meter.endRejectStreaks()
        guard reporter.status.link(of: device.name)?.state == .ready else { return true }
        let candidates = configuredDevices.profiles(for: device.name)
        let isServedAlike = assignment?.isMade(of: candidates, areChosen: successor.profileNames != nil) ?? false
        let isReceivedAlike = device.usesSocket == successor.usesSocket && device.silence == successor.silence
        return !isServedAlike || !isReceivedAlike
    }

    /// Replaces the sensors; unchanged ones keep running.
    ///
    /// A device that was connected becomes a sensor after its link has ended.
    private func replaceSensors(_ reload: ReloadedDevices) {
        let (changed, gone) = sensors.replace(
            with: reload.sensors.filter { configuredDevices[$0.name] == nil },
            reload.profiles,
            context.catalogue,
            describe: { [reporter] in reporter.announcer?.describe($0) }
        )
        for device in gone { dismiss(device) }
        for (device, isNew, isOther) in changed {
            if isOther { reporter.announcer?.remove(device: device.name) }
            reporter.start(device.name, isHeld: false)
            if isNew { reporter.record(device, "enrolled") }
        }
    }

    /// Removes a device whose link has ended.
    ///
    /// - Returns: True if the newest reload has a device of the same name.
    mutating func remove(_ device: SupervisedDevice) -> Bool {
        configuredDevices.remove(device)
        let successor = newest?[device.name]
        let isMoving = successor?.address == device.address
        dismiss(device, isMoving: isMoving)
        guard successor != nil else {
            context.catalogue.remove(device: device.name)
            return false
        }
        departed.updateValue(isMoving ? device.address : nil, forKey: device.name)
        return true
    }

    /// Removes the state of a device that has left.
    ///
    /// With `isMoving`, the same peripheral returns on another adapter, so its removal is not announced.
    private func dismiss(_ device: SupervisedDevice, isMoving: Bool = false) {
        controls.remove(device: device.name, isMoving: isMoving)
        context.bonds.remove(device.address)
        reporter.status.remove(device: device.name)
        if !isMoving { reporter.announcer?.remove(device: device.name) }
        reporter.record(device, "dismissed")
    }
}

/// The holds of devices: a device that a person has disconnected stays so until a person connects it.
struct DeviceHolds: Sendable {
    /// The pause before the holds are read again from a history that is not readable.
    private static let recallPause = Duration.seconds(5)

    let store: any ReadingStore
    let configuredDevices: ConfiguredDevices
    let sensors: SensorWatch
    let log: Log
    /// Passes events to the supervisor machine.
    let send: @Sendable (SupervisorMachine.Event) -> Void

    /// Stores a hold or its end, then applies it.
    func set(_ device: String, _ isHeld: Bool) async throws(ControlError) {
        guard sensors[device] == nil else { throw .onlyAdvertises(device) }
        guard configuredDevices[device] != nil else { throw .noSuchDevice(device) }
        do throws(StoreFault) {
            try await store.setHeld(device, isHeld)
        } catch {
            throw .refused("nothing is changed, because history cannot save it: \(error.detail)")
        }
        send(.link(device: device, isHeld ? .hold : .release))
    }

    /// Returns the devices on hold; `nil` while history is not readable.
    func stored() async -> Set<String>? {
        do throws(StoreFault) {
            return try await store.heldDevices()
        } catch {
            log(.error, "the list of held devices could not be read", [.init("history.error", error.detail)])
            return nil
        }
    }

    /// Restores the holds once history is readable; until then, people cannot connect these devices.
    func recall() async {
        while (try? await Task.sleep(for: Self.recallPause, clock: .loop)) != nil {
            guard let held = await stored() else { continue }
            return held.sorted().forEach { send(.link(device: $0, .hold)) }
        }
    }
}
