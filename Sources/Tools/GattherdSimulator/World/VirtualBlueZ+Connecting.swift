import GattherdDBus

// Links: made, resolved, closed, lost.
extension VirtualBlueZ {
    mutating func connect(_ call: MethodCall, _ key: DeviceKey) {
        guard let device = devices[key], adapters[key.adapter].isPowered else { return fail(call, .inputOutput) }
        guard device.attempt?.call == nil else { return fail(call, .connectInProgress) }
        guard !device.isConnected else { return use(call, device) }
        guard device.attempt == nil else { return join(call.token, key) }
        attempt(key, for: call.token)
    }

    /// Uses a link that is there: nothing has to be done, but for one that has outlived its bluetoothd.
    private mutating func use(_ call: MethodCall, _ device: SimulatedDevice) {
        reply(call)
        let peripheral = peripherals[device.key.peripheral]
        guard !device.isResolved, peripheral.survivesCrash || peripheral.link == device.key else { return }
        peripherals[device.key.peripheral].link = device.key
        schedule(.resolve(device.key, linkEpoch: device.linkEpoch), after: peripheral.resolveLatency(isKnown: true))
    }

    /// Shares an attempt that `Pair`, or bluetoothd by itself, has started.
    private mutating func join(_ call: CallToken, _ key: DeviceKey) {
        devices[key]?.attempt?.call = call
    }

    /// Starts to connect; what `Connect` answers comes later.
    mutating func attempt(_ key: DeviceKey, for call: CallToken?) {
        let id = makeID()
        devices[key]?.attempt = SimulatedDevice.Attempt(id: id, call: call)
        schedule(.giveUp(key, attempt: id), after: timing.connectTimeout)
        proceed(key)
    }

    /// Goes on with an attempt that waits for the peripheral to advertise.
    ///
    /// An adapter makes one link at a time.
    mutating func proceed(_ key: DeviceKey) {
        guard let attempt = devices[key]?.attempt, attempt.isWaiting, adapters[key.adapter].isUsable else { return }
        let peripheral = peripherals[key.peripheral]
        guard peripheral.isAdvertising, peripheral.spec.advertising.isConnectable, canHear(key),
            devices[key]?.isBlocked == false
        else { return }
        devices[key]?.attempt?.isWaiting = false
        let end = max(now, adapters[key.adapter].isFreeAt) + peripheral.spec.connectLatency
        adapters[key.adapter].isFreeAt = end
        timers.insert(.linkUp(key, attempt: attempt.id), at: end)
    }

    mutating func linkUp(_ key: DeviceKey, attempt id: UInt64) {
        guard let attempt = devices[key]?.attempt, attempt.id == id else { return }
        guard peripherals[key.peripheral].isAdvertising else {
            devices[key]?.attempt?.isWaiting = true
            return
        }
        if let slots = adapters[key.adapter].spec.slots, links(ofAdapter: key.adapter) >= slots {
            scheduleRemoval(key, after: .milliseconds(2))
            return endAttempt(key, .connectAborted)
        }
        if let fault = peripherals[key.peripheral].takeConnectFault() { return failLink(key, fault) }
        establish(key)
    }

    private func links(ofAdapter index: Int) -> Int {
        devices.values.count { $0.key.adapter == index && $0.isConnected }
    }

    /// The peripheral ends the link right after it was made: `Connected` is true for a moment.
    private mutating func failLink(_ key: DeviceKey, _ fault: FaultList.Fault) {
        let address = peripherals[key.peripheral].spec.address
        effects.append(.record(.connected(address, adapter: adapters[key.adapter].spec.name)))
        changed(devicePath(key), InterfaceName.device, Property("Connected", .boolean(true)))
        effects.append(.record(.disconnected(address, .remote)))
        changed(devicePath(key), InterfaceName.device, Property("Connected", .boolean(false)))
        switch fault {
        case .error(let error): endAttempt(key, error)
        case .noReply: devices[key]?.attempt = nil
        }
    }

    private mutating func establish(_ key: DeviceKey) {
        guard var device = devices[key], let attempt = device.attempt else { return }
        let hasKeys = peripherals[key.peripheral].bonds.contains(key.adapter)
        device.attempt = nil
        device.isConnected = true
        device.isEncrypted = device.isBonded && hasKeys
        device.linkEpoch = makeID()
        devices[key] = device
        peripherals[key.peripheral].link = key
        let peripheral = peripherals[key.peripheral]
        effects.append(.record(.connected(peripheral.spec.address, adapter: adapters[key.adapter].spec.name)))
        let isQuiet = peripherals[key.peripheral].faults.take("ConnectedSignal") != nil
        if peripheral.spec.signalsConnected, !isQuiet {
            changed(device.path, InterfaceName.device, Property("Connected", .boolean(true)))
        }
        if device.isBonded, !hasKeys { dropStranger(key, attempt) }
        if let call = attempt.call { effects.append(.reply(call, nil)) }
        let isKnown = adapters[key.adapter].cache[key.peripheral] == peripheral.layoutVersion
        let latency = peripheral.silence == .all ? timing.attTimeout : peripheral.resolveLatency(isKnown: isKnown)
        schedule(.resolve(key, linkEpoch: device.linkEpoch), after: latency)
    }

    /// The peripheral does not know our keys: the link ends at once, and bluetoothd tries once more.
    private mutating func dropStranger(_ key: DeviceKey, _ attempt: SimulatedDevice.Attempt) {
        linkDown(key, .authentication)
        if !attempt.isSecond { schedule(.connectAgain(key), after: .milliseconds(40)) }
    }

    /// Tries to connect although no client asked for it.
    mutating func connectAgain(_ key: DeviceKey) {
        guard let device = devices[key], !device.isConnected, device.attempt == nil, adapters[key.adapter].isUsable
        else { return }
        attempt(key, for: nil)
        devices[key]?.attempt?.isSecond = true
    }

    mutating func giveUp(_ key: DeviceKey, attempt id: UInt64) {
        guard devices[key]?.attempt?.id == id else { return }
        devices[key]?.lastHeard = now
        endAttempt(key, .connectAborted)
    }

    private mutating func endAttempt(_ key: DeviceKey, _ error: DBusError) {
        guard let attempt = devices[key]?.attempt else { return }
        devices[key]?.attempt = nil
        if let call = attempt.call { effects.append(.fail(call, error)) }
        endPairing(key, .connectionAborted)
        armExpiry(key)
    }

    mutating func cancelAttempt(_ key: DeviceKey) {
        withdrawPairing(key)
        endAttempt(key, .connectCanceled)
    }

    /// Service discovery is done.
    ///
    /// One that never answered is shown as it was, and dropped.
    mutating func resolve(_ key: DeviceKey) {
        let isSilent = !isReachable(key)
        if !isSilent { discoverServices(key) }
        guard let device = devices[key] else { return }
        devices[key]?.isResolved = true
        if !isSilent { subscribeAgain(key) }
        changed(
            device.path,
            InterfaceName.device,
            Property("UUIDs", uuids(of: device)),
            Property("ServicesResolved", .boolean(true))
        )
        guard !isSilent else {
            return schedule(.linkDown(key, linkEpoch: device.linkEpoch, .unanswered), after: .seconds(2))
        }
        showBattery(key)
        startNotifying(key.peripheral)
        if devices[key]?.pairing != nil { negotiate(key) }
    }

    /// Makes the GATT objects, unless those of the last connection are still right; an object whose handle has not moved
    /// stays as it is.
    ///
    /// bluetoothd tells at once what goes, and what is new when it has nothing else to do: mostly before that, here
    /// every other time.
    private mutating func discoverServices(_ key: DeviceKey) {
        let peripheral = peripherals[key.peripheral]
        guard let device = devices[key], device.gatt?.version != peripheral.layoutVersion else { return }
        var gatt = GATTObjects(peripheral.layout, version: peripheral.layoutVersion, under: device.path)
        endAcquisitions(key, except: gatt.paths)
        let old = devices[key]?.gatt
        if let old { gatt.keep(old) }
        let tellsNewFirst = !peripheral.layoutVersion.isMultiple(of: 2)
        if !tellsNewFirst, let old { unexport(old, except: gatt.paths) }
        adapters[key.adapter].cache[key.peripheral] = peripheral.layoutVersion
        devices[key]?.gatt = gatt
        exportGATT(key)
        if tellsNewFirst, let old { unexport(old, except: gatt.paths) }
    }

    /// The peripheral said that its services changed.
    mutating func rediscover(_ key: DeviceKey) {
        guard let before = devices[key].map({ uuids(of: $0) }) else { return }
        discoverServices(key)
        guard let device = devices[key] else { return }
        let after = uuids(of: device)
        if after != before { changed(device.path, InterfaceName.device, Property("UUIDs", after)) }
    }

    /// bluetoothd reads the battery level by itself.
    private mutating func showBattery(_ key: DeviceKey) {
        let peripheral = peripherals[key.peripheral]
        let level = peripheral.characteristics.first { $0.spec.uuid == .batteryLevel }?.value.first
        guard let device = devices[key], let level else { return }
        devices[key]?.battery = level
        let properties = [Property("Percentage", .byte(level))]
        effects.append(.added(path: device.path, [Interface(InterfaceName.battery, properties)]))
    }

    private mutating func hideBattery(_ key: DeviceKey) {
        guard let device = devices[key], device.battery != nil else { return }
        devices[key]?.battery = nil
        effects.append(.removed(path: device.path, [InterfaceName.battery]))
    }

    mutating func disconnect(_ call: MethodCall, _ key: DeviceKey) {
        cancelAttempt(key)
        guard devices[key]?.isConnected == true else { return reply(call) }
        close(key, reply: call.token, removesDevice: false)
    }

    /// Closes a link in bluetoothd's own time.
    mutating func close(_ key: DeviceKey, reply call: CallToken, removesDevice: Bool) {
        guard let device = devices[key] else { return }
        var closing = device.closing ?? SimulatedDevice.Closing(replies: [], removesDevice: false)
        closing.replies.append(call)
        closing.removesDevice = closing.removesDevice || removesDevice
        devices[key]?.closing = closing
        guard device.closing == nil else { return }
        hideBattery(key)
        schedule(.linkDown(key, linkEpoch: device.linkEpoch, .local), after: timing.disconnect)
    }

    /// The link is gone.
    ///
    /// The GATT objects and the sessions of `StartNotify` stay.
    mutating func linkDown(_ key: DeviceKey, _ reason: TruthEvent.DisconnectReason) {
        guard let device = devices[key], device.isConnected else { return }
        guard !adapters[key.adapter].isHung || reason == .powerOff || reason == .unplugged || reason == .daemon else {
            return adapters[key.adapter].unfinished.append((key, reason))
        }
        if peripherals[key.peripheral].link == key {
            loseTail(key.peripheral)
            peripherals[key.peripheral].endLink()
            if peripherals[key.peripheral].abandonedBy == nil {
                effects.append(.record(.disconnected(peripherals[key.peripheral].spec.address, reason)))
            }
        }
        showUnlinked(key, isOneSignal: reason != .local)
        withdrawPairing(key)
        failOperations(key)
        hideBattery(key)
        endAcquisitions(key)
        for call in device.closing?.replies ?? [] { effects.append(.reply(call, nil)) }
        if device.closing?.removesDevice == true { removeDevice(key) }
        armExpiry(key)
        startAdvertising(key.peripheral)
    }

    /// Says that the device is not connected: in one signal, but in two after a `Disconnect`.
    private mutating func showUnlinked(_ key: DeviceKey, isOneSignal: Bool) {
        guard var device = devices[key] else { return }
        let resolved = device.isResolved ? [Property("ServicesResolved", .boolean(false))] : []
        let paired = device.isPaired && !device.isBonded ? [Property("Paired", .boolean(false))] : []
        device.isPaired = device.isBonded
        device.isConnected = false
        device.isResolved = false
        device.isEncrypted = false
        device.closing = nil
        device.lastHeard = now
        devices[key] = device
        let rest = paired + [Property("Connected", .boolean(false))]
        for properties in isOneSignal ? [resolved + rest] : [resolved, rest] where !properties.isEmpty {
            effects.append(
                .changed(path: device.path, interface: InterfaceName.device, properties, invalidated: [])
            )
        }
    }

    /// What the peripheral has not answered fails, but for `AcquireNotify`, which is never answered.
    private mutating func failOperations(_ key: DeviceKey) {
        for (id, operation) in operations.sorted(by: { $0.key < $1.key }) where operation.key == key {
            operations[id] = nil
            if case .acquireNotify = operation.kind { continue }
            fail(operation.call, .att(0x0E))
        }
    }
}

// Links that are no more, and of which the host is not told.
extension VirtualBlueZ {
    /// True while the peripheral gets what is sent over the link, and answers.
    func isReachable(_ key: DeviceKey) -> Bool {
        peripherals[key.peripheral].answers && peripherals[key.peripheral].link == key && !adapters[key.adapter].isHung
    }

    /// The peripheral ends its link; a host whose controller hangs is never told.
    mutating func drop(_ index: Int) {
        guard let key = peripherals[index].link else { return }
        guard adapters[key.adapter].isHung else { return linkDown(key, .remote) }
        loseTail(index)
        peripherals[index].endLink()
        effects.append(.record(.disconnected(peripherals[index].spec.address, .remote)))
        startAdvertising(index)
    }
}

extension SimulatedPeripheral {
    /// Why the link that was just made ends at once, if it does.
    fileprivate mutating func takeConnectFault() -> FaultList.Fault? {
        if let fault = faults.take("Connect") { return fault }
        guard connectFailures > 0 else { return nil }
        connectFailures -= 1
        return .error(.connectAborted)
    }

    mutating func endLink() {
        link = nil
        rateEpoch += 1
        for index in characteristics.indices { characteristics[index].isSubscribed = false }
    }
}
