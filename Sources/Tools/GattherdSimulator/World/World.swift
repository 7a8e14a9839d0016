import GattherdDBus
import GattherdGATT

/// The adapters, the peripherals in range and bluetoothd's devices, with the time and the effects of the current event.
///
/// The components of ``VirtualBlueZ`` share it. Each keeps the state that only it needs to itself.
final class World {
    let timing: Timing
    let clock = SimulationClock()
    let effects = EffectQueue()
    var adapters: [SimulatedAdapter]
    var peripherals: [SimulatedPeripheral]
    var devices: [DeviceKey: SimulatedDevice] = [:]

    init(_ scenario: Scenario) {
        timing = scenario.timing
        adapters = scenario.adapters.map(SimulatedAdapter.init)
        peripherals = scenario.peripherals.map(SimulatedPeripheral.init)
    }

    /// The devices of an adapter, in the order of the scenario.
    func keys(ofAdapter index: Int) -> [DeviceKey] {
        devices.keys.filter { $0.adapter == index }.sorted { $0.peripheral < $1.peripheral }
    }

    /// The path of a device's object, whether it exists or not.
    func path(of key: DeviceKey) -> String {
        let address = peripherals[key.peripheral].spec.address.description
        return adapters[key.adapter].path + "/dev_" + String(address.map { $0 == ":" ? "_" : $0 })
    }

    /// True if the peripheral is in range of the adapter.
    func isInRange(_ key: DeviceKey) -> Bool {
        let admitted = peripherals[key.peripheral].spec.adapters
        return admitted.isEmpty || admitted.contains(adapters[key.adapter].spec.name)
    }

    /// True while the peripheral receives requests over the link and answers them.
    func isReachable(_ key: DeviceKey) -> Bool {
        peripherals[key.peripheral].answers && peripherals[key.peripheral].link == key && !adapters[key.adapter].isHung
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

extension World {
    /// The reply to `Status`: a dictionary for each peripheral.
    var status: DBusValue {
        .array(element: "a{sv}", peripherals.map { .properties(status(of: $0)) })
    }

    private func status(of peripheral: SimulatedPeripheral) -> [Property] {
        let device = peripheral.link.flatMap { devices[$0] }
        return [
            Property("name", .string(peripheral.spec.name)),
            Property("address", .string(peripheral.spec.address.description)),
            Property("present", .boolean(peripheral.isPresent)),
            Property("adapter", .string(peripheral.link.map { adapters[$0.adapter].spec.name } ?? "")),
            Property("connected", .boolean(device != nil)),
            Property("resolved", .boolean(device?.isResolved ?? false)),
            Property("silence", .string(peripheral.silence.rawValue)),
            Property("subscriptions", .uint32(UInt32(peripheral.characteristics.count { $0.isSubscribed }))),
            Property("notifications", .uint64(peripheral.characteristics.reduce(0) { $0 + $1.sent })),
        ]
    }
}
