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
    private var scanEpochs: [Int]
    /// The number of times that each peripheral has started to advertise.
    ///
    /// Timers of earlier epochs are ignored.
    private var airEpochs: [Int]

    init(_ world: World, _ registry: DeviceRegistry) {
        self.world = world
        self.registry = registry
        scanEpochs = world.adapters.map { _ in 0 }
        airEpochs = world.peripherals.map { _ in 0 }
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
        scanEpochs[index] += 1
        world.signal(adapter: index, [Property("Discovering", .boolean(true))])
        for peripheral in world.peripherals.indices { listen(DeviceKey(adapter: index, peripheral: peripheral)) }
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
            let isBeacon = !world.peripherals[key.peripheral].spec.advertising.isConnectable
            if isBeacon, world.devices[key]?.attempt == nil { registry.remove(key) }
        }
    }
}

// MARK: - Advertisements

extension DiscoveryControl {
    /// Starts a new period of advertising, which ends the earlier one.
    func restartAdvertising(_ peripheral: Int) {
        airEpochs[peripheral] += 1
    }

    /// Schedules a peripheral's first advertisement, if the adapter scans and the peripheral advertises.
    func listen(_ key: DeviceKey) {
        let peripheral = world.peripherals[key.peripheral]
        guard world.adapters[key.adapter].isDiscovering, peripheral.isAdvertising, world.isInRange(key) else { return }
        // Peripherals advertise at different phases of their intervals.
        let phase = Double((key.peripheral * 37 + 20) % 100) / 100
        schedule(key, after: peripheral.spec.advertising.interval * phase)
    }

    private func schedule(_ key: DeviceKey, after delay: Duration) {
        let (scanEpoch, airEpoch) = (scanEpochs[key.adapter], airEpochs[key.peripheral])
        world.clock.schedule(.advertise(key, scanEpoch: scanEpoch, airEpoch: airEpoch), after: delay)
    }

    /// Receives one advertisement and schedules the next.
    func advertise(_ key: DeviceKey, _ scanEpoch: Int, _ airEpoch: Int) {
        let adapter = world.adapters[key.adapter]
        let peripheral = world.peripherals[key.peripheral]
        guard adapter.isDiscovering, scanEpochs[key.adapter] == scanEpoch, airEpochs[key.peripheral] == airEpoch,
            peripheral.isAdvertising
        else { return }
        let advertising = peripheral.spec.advertising
        schedule(key, after: advertising.interval)
        guard adapter.discovery.admit(peripheral.spec), !adapter.isHung else { return }
        guard world.devices[key] != nil else { return discover(key) }
        let wantsDuplicates = adapter.discovery.wantDuplicates
        let now = world.clock.now
        let properties =
            world.devices[key]?.recordAdvertisement(advertising, at: now, wantsDuplicates: wantsDuplicates) ?? []
        world.signal(key, properties)
    }

    private func discover(_ key: DeviceKey) {
        registry.make(key)
        world.devices[key]?.rssi = world.peripherals[key.peripheral].spec.advertising.rssi
        registry.export(key)
    }
}
