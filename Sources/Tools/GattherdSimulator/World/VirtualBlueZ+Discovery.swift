import GattherdDBus

// Scanning, and the objects that come and go with it.
extension VirtualBlueZ {
    mutating func startDiscovery(_ call: MethodCall, _ index: Int) {
        guard adapters[index].isPowered else { return fail(call, .notReady) }
        guard !adapters[index].sessions.contains(call.sender) else { return fail(call, .inProgress) }
        guard !adapters[index].isHung else { return schedule(.failDiscovery(call), after: .milliseconds(4100)) }
        let isFirst = !adapters[index].isDiscovering
        adapters[index].sessions.insert(call.sender)
        if isFirst {
            adapters[index].scanEpoch += 1
            changed(adapters[index].path, InterfaceName.adapter, Property("Discovering", .boolean(true)))
            for peripheral in peripherals.indices { listen(DeviceKey(adapter: index, peripheral: peripheral)) }
        }
        reply(call)
    }

    mutating func stopDiscovery(_ call: MethodCall, _ index: Int) {
        guard adapters[index].isPowered else { return fail(call, .notReady) }
        guard adapters[index].sessions.contains(call.sender) else { return fail(call, .noDiscovery) }
        endSession(of: call.sender, index)
        reply(call)
    }

    mutating func setDiscoveryFilter(_ call: MethodCall, _ index: Int) {
        guard adapters[index].isPowered else { return fail(call, .notReady) }
        do throws(DBusError) {
            let isEmpty = call.arguments.first?.entries?.isEmpty == true
            adapters[index].filters[call.sender] = isEmpty ? nil : try SimulatedDiscoveryFilter(call.arguments.first)
            reply(call)
        } catch {
            fail(call, error)
        }
    }

    mutating func endSession(of client: String, _ index: Int) {
        adapters[index].sessions.remove(client)
        guard !adapters[index].isDiscovering else { return }
        forgetAir(index)
        changed(adapters[index].path, InterfaceName.adapter, Property("Discovering", .boolean(false)))
    }

    /// After scanning no RSSI is known, and what cannot be connected to is gone.
    mutating func forgetAir(_ index: Int) {
        for key in keys(ofAdapter: index) {
            if devices[key]?.rssi != nil {
                devices[key]?.rssi = nil
                effects.append(
                    .changed(
                        path: devicePath(key),
                        interface: InterfaceName.device,
                        [],
                        invalidated: ["RSSI"]
                    )
                )
            }
            let isBeacon = !peripherals[key.peripheral].spec.advertising.isConnectable
            if isBeacon, devices[key]?.attempt == nil { removeDevice(key) }
        }
    }

    func keys(ofAdapter index: Int) -> [DeviceKey] {
        devices.keys.filter { $0.adapter == index }.sorted { $0.peripheral < $1.peripheral }
    }

    func canHear(_ key: DeviceKey) -> Bool {
        let wanted = peripherals[key.peripheral].spec.adapters
        return wanted.isEmpty || wanted.contains(adapters[key.adapter].spec.name)
    }

    /// Begins to hear a peripheral's advertisements, if the adapter scans and there are any.
    private mutating func listen(_ key: DeviceKey) {
        let peripheral = peripherals[key.peripheral]
        guard adapters[key.adapter].isDiscovering, peripheral.isAdvertising, canHear(key) else { return }
        let phase = Double((key.peripheral * 37 + 20) % 100) / 100
        let timer = Timer.advertise(
            key,
            scanEpoch: adapters[key.adapter].scanEpoch,
            airEpoch: peripheral.airEpoch
        )
        schedule(timer, after: peripheral.spec.advertising.interval * phase)
    }

    /// A peripheral begins to advertise: those who scan hear it, those who wait for it connect.
    mutating func startAdvertising(_ index: Int) {
        peripherals[index].airEpoch += 1
        guard peripherals[index].isAdvertising else { return }
        for adapter in adapters.indices {
            let key = DeviceKey(adapter: adapter, peripheral: index)
            listen(key)
            proceed(key)
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
        guard adapter.isWanted(peripheral.spec), !adapter.isHung else { return }
        if devices[key] == nil {
            makeDevice(key)
            devices[key]?.rssi = advertising.rssi
            export(.device(key), devicePath(key))
        } else {
            report(key, advertising)
        }
    }

    /// Tells what changed since the last advertisement: the data, and the signal strength, now and then.
    private mutating func report(_ key: DeviceKey, _ advertising: AdvertisingSpec) {
        guard var device = devices[key] else { return }
        device.lastHeard = now
        device.reports += 1
        let rssi = advertising.rssi + [0, 1, 0, -1][device.reports / 8 % 4]
        let isNew = device.rssi != rssi
        device.rssi = rssi
        let data = advertisedData(advertising)
        let isOther = device.reported != data
        device.reported = data
        devices[key] = device
        let isTold = isOther || adapters[key.adapter].wantsDuplicates
        let properties = (isNew ? [Property("RSSI", .int16(rssi))] : []) + (isTold ? data : [])
        guard !properties.isEmpty else { return }
        effects.append(.changed(path: device.path, interface: InterfaceName.device, properties, invalidated: []))
    }

    mutating func makeDevice(_ key: DeviceKey) {
        var device = SimulatedDevice(key, path: devicePath(key), lastHeard: now)
        device.reported = advertisedData(peripherals[key.peripheral].spec.advertising)
        devices[key] = device
        armExpiry(key)
    }

    /// Looks after the removal of a temporary device that is not heard any more.
    mutating func armExpiry(_ key: DeviceKey) {
        guard let device = devices[key], device.isTemporary, !device.isConnected, device.attempt == nil,
            !device.isExpiryArmed
        else { return }
        devices[key]?.isExpiryArmed = true
        schedule(.expire(key), after: max(.zero, device.lastHeard + timing.temporaryTimeout - now))
    }

    mutating func expire(_ key: DeviceKey) {
        devices[key]?.isExpiryArmed = false
        guard let device = devices[key], device.isTemporary, !device.isConnected, device.attempt == nil else { return }
        guard now >= device.lastHeard + timing.temporaryTimeout else { return armExpiry(key) }
        removeDevice(key)
    }

    /// Sees to it that a device goes unless a new link is made, or it is paired, meanwhile.
    mutating func scheduleRemoval(_ key: DeviceKey, after delay: Duration) {
        guard let device = devices[key] else { return }
        schedule(.remove(key, linkEpoch: device.linkEpoch), after: delay)
    }

    /// Removes a device that bluetoothd has given up, connected or not; what was asked of it stays unanswered.
    mutating func removeFailed(_ key: DeviceKey, linkEpoch: UInt64) {
        guard let device = devices[key], device.isTemporary, device.linkEpoch == linkEpoch, device.attempt == nil,
            device.pairing == nil, device.closing == nil
        else { return }
        operations = operations.filter { $0.value.key != key }
        if device.isConnected {
            loseTail(key.peripheral)
            peripherals[key.peripheral].endLink()
            effects.append(.record(.disconnected(peripherals[key.peripheral].spec.address, .local)))
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
        guard case .device(let key)? = nodes[path], key.adapter == index else { return fail(call, .doesNotExist) }
        cancelAttempt(key)
        if devices[key]?.isConnected == true {
            close(key, reply: call.token, removesDevice: true)
        } else {
            removeDevice(key)
            reply(call)
        }
    }
}
