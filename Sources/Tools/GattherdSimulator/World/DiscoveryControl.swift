import GattherdDBus

/// Scans, and the advertisements that they receive.
final class DiscoveryControl {
    /// The time after which `StartDiscovery` fails on a hung controller.
    private static let hungDiscoveryTimeout = Duration.milliseconds(4100)

    private let world: World
    private let registry: DeviceRegistry
    /// The number of scans that each adapter has started.
    ///
    /// Timers of earlier scans are ignored.
    private var scanEpochs: [Int: Int] = [:]

    init(_ world: World, _ registry: DeviceRegistry) {
        self.world = world
        self.registry = registry
    }

    func start(_ call: MethodCall, _ index: Int) {
        let adapter = world.adapters[index]
        guard adapter.isPowered else { return world.effects.fail(call, .notReady) }
        guard !adapter.discovery.contains(call.sender) else { return world.effects.fail(call, .inProgress) }
        guard !adapter.isHung else {
            return world.clock.schedule(.failDiscovery(call), after: Self.hungDiscoveryTimeout)
        }
        world.adapters[index].discovery.start(call.sender)
        if !adapter.isDiscovering { startScan(index) }
        world.effects.reply(call)
    }

    private func startScan(_ index: Int) {
        scanEpochs[index, default: 0] += 1
        world.signal(adapter: index, [Property("Discovering", .boolean(true))])
        for peripheral in world.air.peripherals.indices { listen(DeviceKey(adapter: index, peripheral: peripheral)) }
    }

    func stop(_ call: MethodCall, _ index: Int) {
        guard world.adapters[index].isPowered else { return world.effects.fail(call, .notReady) }
        guard world.adapters[index].discovery.contains(call.sender) else {
            return world.effects.fail(call, .noDiscovery)
        }
        end(of: call.sender, index)
        world.effects.reply(call)
    }

    func setFilter(_ call: MethodCall, _ index: Int) {
        guard world.adapters[index].isPowered else { return world.effects.fail(call, .notReady) }
        do throws(DBusError) {
            let isEmpty = call.arguments.first?.entries?.isEmpty == true
            let filter = isEmpty ? nil : try SimulatedDiscoveryFilter(call.arguments.first)
            world.adapters[index].discovery.setFilter(filter, of: call.sender)
            world.effects.reply(call)
        } catch {
            world.effects.fail(call, error)
        }
    }

    /// Ends the scans of a client that left the bus, and removes its filters.
    func removeClient(_ client: String) {
        for index in world.adapters.indices {
            world.adapters[index].discovery.setFilter(nil, of: client)
            if world.adapters[index].discovery.contains(client) { end(of: client, index) }
        }
    }

    private func end(of client: String, _ index: Int) {
        world.adapters[index].discovery.stop(client)
        guard !world.adapters[index].isDiscovering else { return }
        removeResults(index)
        world.signal(adapter: index, [Property("Discovering", .boolean(false))])
    }

    /// Invalidates RSSI and removes non-connectable devices, at the end of a scan.
    func removeResults(_ index: Int) {
        for key in world.keys(ofAdapter: index) {
            if world.devices[key]?.rssi != nil {
                world.devices[key]?.rssi = nil
                world.signal(key, [], invalidated: ["RSSI"])
            }
            let isBeacon = !world.air.peripherals[key.peripheral].spec.advertising.isConnectable
            if isBeacon, world.devices[key]?.attempt == nil { registry.remove(key) }
        }
    }
}

// MARK: - Advertisements

extension DiscoveryControl {
    /// Schedules a peripheral's first advertisement, if the adapter scans and the peripheral advertises.
    func listen(_ key: DeviceKey) {
        let peripheral = world.air.peripherals[key.peripheral]
        guard world.adapters[key.adapter].isDiscovering, peripheral.isAdvertising, world.isAdmitted(key) else {
            return
        }
        schedule(key, after: delay(of: key.peripheral, peripheral.spec.advertising.interval))
    }

    /// The time until a peripheral's next advertisement.
    ///
    /// Peripherals advertise at different phases of their intervals. Gateways at positions hear the same
    /// advertisements: their times depend on the peripheral alone.
    private func delay(of peripheral: Int, _ interval: Duration) -> Duration {
        let phase = interval * (Double((peripheral * 37 + 20) % 100) / 100)
        guard world.air.field.hasPositions else { return phase }
        let count = ((world.clock.now - phase) / interval).rounded(.down) + 1
        return phase + interval * Int(count) - world.clock.now
    }

    private func schedule(_ key: DeviceKey, after delay: Duration) {
        let scanEpoch = scanEpochs[key.adapter, default: 0]
        let airEpoch = world.air.peripherals[key.peripheral].airEpoch
        world.clock.schedule(.advertise(key, scanEpoch: scanEpoch, airEpoch: airEpoch), after: delay)
    }

    /// Delivers one advertisement and schedules the next.
    func advertise(_ key: DeviceKey, _ scanEpoch: Int, _ airEpoch: Int) {
        let adapter = world.adapters[key.adapter]
        let peripheral = world.air.peripherals[key.peripheral]
        guard adapter.isDiscovering, scanEpochs[key.adapter] == scanEpoch, peripheral.airEpoch == airEpoch,
            peripheral.isAdvertising
        else { return }
        let advertising = peripheral.spec.advertising
        schedule(key, after: advertising.interval)
        let now = world.clock.now
        let strength = world.air.field.strength(key, at: now)
        guard world.air.field.hears(key, at: now), !adapter.isHung,
            adapter.discovery.admit(peripheral.spec, rssi: strength ?? advertising.rssi)
        else { return }
        guard world.devices[key] != nil else { return discover(key, rssi: strength ?? advertising.rssi) }
        let wantsDuplicates = adapter.discovery.wantDuplicates
        let properties = world.devices[key]?
            .recordAdvertisement(advertising, rssi: strength, at: now, wantsDuplicates: wantsDuplicates)
        world.signal(key, properties ?? [])
    }

    private func discover(_ key: DeviceKey, rssi: Int16) {
        registry.make(key)
        world.devices[key]?.rssi = rssi
        registry.export(key)
    }
}
