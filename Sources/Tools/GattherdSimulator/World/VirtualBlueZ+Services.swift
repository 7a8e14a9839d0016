import GattherdDBus

// Service discovery, and the battery level that bluetoothd reads on its own.
extension VirtualBlueZ {
    /// Ends service discovery.
    ///
    /// A peripheral that never answered is resolved with its previous objects and then disconnected.
    mutating func resolve(_ key: DeviceKey) {
        let isSilent = !isReachable(key)
        if !isSilent { discoverServices(key) }
        guard let device = devices[key] else { return }
        devices[key]?.markResolved()
        if !isSilent { subscribeAgain(key) }
        effects.changed(
            device.path,
            InterfaceName.device,
            [Property("UUIDs", uuids(of: device)), Property("ServicesResolved", .boolean(true))]
        )
        guard !isSilent else {
            let timer = Timer.linkDown(key, linkEpoch: device.linkEpoch, .unanswered)
            return schedule(timer, after: Self.unansweredDisconnectDelay)
        }
        showBattery(key)
        startNotifying(key.peripheral)
        if devices[key]?.pairing != nil { negotiate(key) }
    }

    /// Makes the GATT objects, unless those of the last connection are current.
    ///
    /// Objects with unchanged handles are kept.
    ///
    /// bluetoothd signals removed objects at once and new objects when it is idle, which is mostly earlier. The
    /// simulator alternates the two orders.
    private mutating func discoverServices(_ key: DeviceKey) {
        let peripheral = peripherals[key.peripheral]
        guard let device = devices[key], device.gatt?.version != peripheral.layoutVersion else { return }
        var gatt = GATTObjects(peripheral.layout, version: peripheral.layoutVersion, under: device.path)
        endAcquisitions(key, except: gatt.paths)
        let old = devices[key]?.gatt
        if let old { gatt.keep(old) }
        let addsFirst = !peripheral.layoutVersion.isMultiple(of: 2)
        if !addsFirst, let old { unexport(old, except: gatt.paths) }
        adapters[key.adapter].cache[key.peripheral] = peripheral.layoutVersion
        devices[key]?.gatt = gatt
        exportGATT(key)
        if addsFirst, let old { unexport(old, except: gatt.paths) }
    }

    /// Discovers the services again after a Service Changed indication.
    mutating func rediscover(_ key: DeviceKey) {
        guard let before = devices[key].map({ uuids(of: $0) }) else { return }
        discoverServices(key)
        guard let device = devices[key] else { return }
        let after = uuids(of: device)
        if after != before { effects.changed(device.path, InterfaceName.device, [Property("UUIDs", after)]) }
    }

    private mutating func showBattery(_ key: DeviceKey) {
        let peripheral = peripherals[key.peripheral]
        let level = peripheral.characteristics.first { $0.spec.uuid == .batteryLevel }?.value.first
        guard let device = devices[key], let level else { return }
        devices[key]?.battery = level
        let properties = [Property("Percentage", .byte(level))]
        effects.append(.added(path: device.path, [Interface(InterfaceName.battery, properties)]))
    }

    mutating func hideBattery(_ key: DeviceKey) {
        guard let device = devices[key], device.battery != nil else { return }
        devices[key]?.battery = nil
        effects.append(.removed(path: device.path, [InterfaceName.battery]))
    }
}
