import GattherdDBus

// Scans and advertisements.
extension VirtualBlueZ {
    /// The time after which `StartDiscovery` fails on a hung controller.
    private static let hungDiscoveryTimeout = Duration.milliseconds(4100)

    mutating func startDiscovery(_ call: MethodCall, _ index: Int) {
        guard adapters[index].isPowered else { return fail(call, .notReady) }
        guard !adapters[index].discovery.contains(call.sender) else { return fail(call, .inProgress) }
        guard !adapters[index].isHung else {
            return schedule(.failDiscovery(call), after: Self.hungDiscoveryTimeout)
        }
        let isFirst = !adapters[index].isDiscovering
        adapters[index].discovery.start(call.sender)
        if isFirst {
            adapters[index].scanEpoch += 1
            effects.changed(
                adapters[index].path,
                InterfaceName.adapter,
                [Property("Discovering", .boolean(true))]
            )
            for peripheral in peripherals.indices { listen(DeviceKey(adapter: index, peripheral: peripheral)) }
        }
        reply(call)
    }

    mutating func stopDiscovery(_ call: MethodCall, _ index: Int) {
        guard adapters[index].isPowered else { return fail(call, .notReady) }
        guard adapters[index].discovery.contains(call.sender) else { return fail(call, .noDiscovery) }
        endDiscovery(of: call.sender, index)
        reply(call)
    }

    mutating func setDiscoveryFilter(_ call: MethodCall, _ index: Int) {
        guard adapters[index].isPowered else { return fail(call, .notReady) }
        do throws(DBusError) {
            let isEmpty = call.arguments.first?.entries?.isEmpty == true
            let filter = isEmpty ? nil : try SimulatedDiscoveryFilter(call.arguments.first)
            adapters[index].discovery.setFilter(filter, of: call.sender)
            reply(call)
        } catch {
            fail(call, error)
        }
    }

    mutating func endDiscovery(of client: String, _ index: Int) {
        adapters[index].discovery.stop(client)
        guard !adapters[index].isDiscovering else { return }
        removeScanResults(index)
        effects.changed(adapters[index].path, InterfaceName.adapter, [Property("Discovering", .boolean(false))])
    }

    /// Invalidates RSSI and removes non-connectable devices, at the end of a scan.
    mutating func removeScanResults(_ index: Int) {
        for key in keys(ofAdapter: index) {
            if devices[key]?.rssi != nil {
                devices[key]?.rssi = nil
                effects.changed(devicePath(key), InterfaceName.device, [], invalidated: ["RSSI"])
            }
            let isBeacon = !peripherals[key.peripheral].spec.advertising.isConnectable
            if isBeacon, devices[key]?.attempt == nil { removeDevice(key) }
        }
    }

    func keys(ofAdapter index: Int) -> [DeviceKey] {
        devices.keys.filter { $0.adapter == index }.sorted { $0.peripheral < $1.peripheral }
    }

    /// True if the peripheral is in range of the adapter.
    func isInRange(_ key: DeviceKey) -> Bool {
        let admitted = peripherals[key.peripheral].spec.adapters
        return admitted.isEmpty || admitted.contains(adapters[key.adapter].spec.name)
    }

    /// Schedules a peripheral's first advertisement, if the adapter scans and the peripheral advertises.
    private mutating func listen(_ key: DeviceKey) {
        let peripheral = peripherals[key.peripheral]
        guard adapters[key.adapter].isDiscovering, peripheral.isAdvertising, isInRange(key) else { return }
        // Peripherals advertise at different phases of their intervals.
        let phase = Double((key.peripheral * 37 + 20) % 100) / 100
        let timer = Timer.advertise(
            key,
            scanEpoch: adapters[key.adapter].scanEpoch,
            airEpoch: peripheral.airEpoch
        )
        schedule(timer, after: peripheral.spec.advertising.interval * phase)
    }

    /// Starts a peripheral's advertising: scanning adapters receive it and waiting attempts continue.
    mutating func startAdvertising(_ index: Int) {
        peripherals[index].airEpoch += 1
        guard peripherals[index].isAdvertising else { return }
        for adapter in adapters.indices {
            let key = DeviceKey(adapter: adapter, peripheral: index)
            listen(key)
            continueAttempt(key)
        }
    }

    mutating func advertise(_ key: DeviceKey, _ scanEpoch: Int, _ airEpoch: Int) {
        let adapter = adapters[key.adapter]
        let peripheral = peripherals[key.peripheral]
        guard adapter.isDiscovering, adapter.scanEpoch == scanEpoch, peripheral.airEpoch == airEpoch,
            peripheral.isAdvertising
        else { return }
        let advertising = peripheral.spec.advertising
        schedule(.advertise(key, scanEpoch: scanEpoch, airEpoch: airEpoch), after: advertising.interval)
        guard adapter.discovery.admit(peripheral.spec), !adapter.isHung else { return }
        if devices[key] == nil {
            makeDevice(key)
            devices[key]?.rssi = advertising.rssi
            export(.device(key), devicePath(key))
        } else {
            let wantsDuplicates = adapter.discovery.wantDuplicates
            let properties =
                devices[key]?.recordAdvertisement(advertising, at: now, wantsDuplicates: wantsDuplicates) ?? []
            effects.changed(devicePath(key), InterfaceName.device, properties)
        }
    }
}

// MARK: - Lifetime of devices

extension VirtualBlueZ {
    mutating func makeDevice(_ key: DeviceKey) {
        let data = peripherals[key.peripheral].spec.advertising.data(at: now)
        devices[key] = SimulatedDevice(key, path: devicePath(key), at: now, data: data)
        armExpiry(key)
    }

    /// Schedules the removal of a temporary device that no longer advertises.
    mutating func armExpiry(_ key: DeviceKey) {
        guard let device = devices[key], device.isTemporary, !device.isConnected, device.attempt == nil,
            !device.isExpiryArmed
        else { return }
        devices[key]?.isExpiryArmed = true
        schedule(.expire(key), after: max(.zero, device.lastSeen + timing.temporaryTimeout - now))
    }

    mutating func expire(_ key: DeviceKey) {
        devices[key]?.isExpiryArmed = false
        guard let device = devices[key], device.isTemporary, !device.isConnected, device.attempt == nil else { return }
        guard now >= device.lastSeen + timing.temporaryTimeout else { return armExpiry(key) }
        removeDevice(key)
    }

    /// Schedules a device's removal, which a new link or a pairing prevents.
    mutating func scheduleRemoval(_ key: DeviceKey, after delay: Duration) {
        guard let device = devices[key] else { return }
        schedule(.remove(key, linkEpoch: device.linkEpoch), after: delay)
    }

    /// Removes a device after a failure, connected or not.
    ///
    /// Its pending requests are never answered.
    mutating func removeFailed(_ key: DeviceKey, linkEpoch: UInt64) {
        guard let device = devices[key], device.isTemporary, device.linkEpoch == linkEpoch, device.attempt == nil,
            device.pairing == nil, device.closing == nil
        else { return }
        _ = requests.removeAll(of: key)
        if device.isConnected {
            loseBuffered(key.peripheral)
            peripherals[key.peripheral].endLink()
            effects.record(.disconnected(peripherals[key.peripheral].spec.address, .local))
            endAcquisitions(key)
        }
        removeDevice(key)
        if device.isConnected { startAdvertising(key.peripheral) }
    }

    mutating func removeDevice(_ key: DeviceKey) {
        guard let device = devices[key] else { return }
        unexportGATT(key)
        unexport(device.path)
        devices[key] = nil
    }

    mutating func removeDevice(_ call: MethodCall, _ index: Int) {
        guard let path = call.arguments.first?.string else { return fail(call, .invalidArguments) }
        guard case .device(let key)? = objects[path], key.adapter == index else { return fail(call, .doesNotExist) }
        cancelAttempt(key)
        if devices[key]?.isConnected == true {
            close(key, reply: call.token, removesDevice: true)
        } else {
            removeDevice(key)
            reply(call)
        }
    }
}
