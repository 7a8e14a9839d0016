import GattherdDBus
import GattherdGATT

/// The adapters and devices of one bluetoothd and the air around it, with the effects of the current event.
///
/// The components of ``VirtualBlueZ`` share it. Each keeps the state that only it needs to itself.
final class World {
    let timing: Timing
    /// True if bluetoothd answers an `AcquireNotify` that has failed, as from BlueZ 5.84 on.
    let answersFailedAcquire: Bool
    let air: Air
    let clock: SimulationClock
    let effects = EffectQueue()
    /// The gateway's adapters.
    ///
    /// Their indices are unique among all gateways.
    var adapters: ArraySlice<SimulatedAdapter>
    var devices: [DeviceKey: SimulatedDevice] = [:]

    init(_ scenario: Scenario, in air: Air, gateway number: Int) {
        (timing, answersFailedAcquire) = (scenario.timing, scenario.answersFailedAcquire)
        self.air = air
        clock = SimulationClock(air.time, gateway: number)
        let gateways = scenario.allGateways
        let first = gateways[..<number].reduce(0) { $0 + $1.adapters.count }
        let all = gateways.flatMap { gateway in gateway.adapters.map { SimulatedAdapter($0, of: gateway.name) } }
        adapters = all[first..<first + gateways[number].adapters.count]
    }

    /// The devices of an adapter, in the order of the scenario.
    func keys(ofAdapter index: Int) -> [DeviceKey] {
        devices.keys.filter { $0.adapter == index }.sorted { $0.peripheral < $1.peripheral }
    }

    /// The path of a device's object, whether it exists or not.
    func path(of key: DeviceKey) -> String {
        let address = air.peripherals[key.peripheral].spec.address.description
        return adapters[key.adapter].path + "/dev_" + String(address.map { $0 == ":" ? "_" : $0 })
    }

    /// True if the scenario allows the peripheral at the adapter.
    func isAdmitted(_ key: DeviceKey) -> Bool {
        let admitted = air.peripherals[key.peripheral].spec.adapters
        return admitted.isEmpty || !adapters[key.adapter].names.isDisjoint(with: admitted)
    }

    /// True if the peripheral is in range of the adapter.
    func isInRange(_ key: DeviceKey) -> Bool {
        isAdmitted(key) && air.field.reaches(key, at: clock.now)
    }

    /// True if a link has radio contact.
    func isInContact(_ key: DeviceKey) -> Bool {
        air.peripherals[key.peripheral].isPresent && air.field.reaches(key, at: clock.now)
    }

    /// True while the peripheral receives requests over the link and answers them.
    func isReachable(_ key: DeviceKey) -> Bool {
        let peripheral = air.peripherals[key.peripheral]
        return peripheral.silence != .all && peripheral.link == key && isInContact(key) && !adapters[key.adapter].isHung
    }

    /// True if a device still has the link of this epoch.
    func isCurrent(_ key: DeviceKey, _ epoch: UInt64) -> Bool {
        devices[key].map { $0.isConnected && $0.linkEpoch == epoch } ?? false
    }

    /// Signals changed properties of a device.
    func signal(_ key: DeviceKey, _ properties: [Property], invalidated: [String] = []) {
        effects.changed(path(of: key), InterfaceName.device, properties, invalidated: invalidated)
    }

    /// Signals changed properties of an adapter.
    func signal(adapter index: Int, _ properties: [Property]) {
        effects.changed(adapters[index].path, InterfaceName.adapter, properties)
    }
}
