import GattherdDBus

// Links: made, resolved, closed, lost.
extension VirtualBlueZ {
    mutating func connect(_ call: MethodCall, _ key: DeviceKey) {
        guard let device = devices[key], adapters[key.adapter].isPowered else { return fail(call, .inputOutput) }
        guard device.attempt == nil else { return fail(call, .connectInProgress) }
        guard !device.isConnected else { return reply(call) }
        attempt(key, for: call.token)
    }

    /// Starts to connect; what `Connect` answers comes later.
    mutating func attempt(_ key: DeviceKey, for call: CallToken?) {
        let id = makeID()
        devices[key]?.attempt = Device.Attempt(id: id, call: call)
        schedule(.giveUp(key, attempt: id), after: timing.connectTimeout)
        proceed(key)
    }

    /// Goes on with an attempt that waits for the peripheral to advertise.
    ///
    /// An adapter makes one link at a time.
    mutating func proceed(_ key: DeviceKey) {
        guard let attempt = devices[key]?.attempt, attempt.isWaiting, adapters[key.adapter].isUsable else { return }
        let peripheral = peripherals[key.peripheral]
        guard peripheral.isAdvertising, peripheral.spec.advertising.isConnectable, canHear(key) else { return }
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
        changed(devicePath(key), InterfaceName.device, Property("Connected", .boolean(true)))
        changed(devicePath(key), InterfaceName.device, Property("Connected", .boolean(false)))
        switch fault {
        case .error(let error): endAttempt(key, error)
        case .noReply: devices[key]?.attempt = nil
        }
    }

    private mutating func establish(_ key: DeviceKey) {
        guard var device = devices[key] else { return }
        let call = device.attempt?.call
        device.attempt = nil
        device.isConnected = true
        device.linkEpoch = makeID()
        devices[key] = device
        peripherals[key.peripheral].link = key
        let peripheral = peripherals[key.peripheral]
        effects.append(.record(.connected(peripheral.spec.address, adapter: adapters[key.adapter].spec.name)))
        let isQuiet = peripherals[key.peripheral].faults.take("ConnectedSignal") != nil
        if peripheral.spec.signalsConnected, !isQuiet {
            changed(device.path, InterfaceName.device, Property("Connected", .boolean(true)))
        }
        if let call { effects.append(.reply(call, nil)) }
        let latency = peripheral.silence == .all ? timing.attTimeout : peripheral.spec.resolveLatency
        schedule(.resolve(key, linkEpoch: device.linkEpoch), after: latency)
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
        failPairing(key)
        armExpiry(key)
    }

    mutating func cancelAttempt(_ key: DeviceKey) {
        endAttempt(key, .connectCanceled)
    }

    /// Service discovery is done.
    ///
    /// One that never answered is shown as it was, and dropped.
    mutating func resolve(_ key: DeviceKey) {
        let isSilent = !peripherals[key.peripheral].answers
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
        if let call = devices[key]?.pairing { finishPairing(key, call) }
    }

    /// Makes the GATT objects, unless those of the last connection are still right.
    private mutating func discoverServices(_ key: DeviceKey) {
        let peripheral = peripherals[key.peripheral]
        guard let device = devices[key], device.gatt?.version != peripheral.layoutVersion else { return }
        endAcquisitions(key)
        unexportGATT(key)
        devices[key]?.gatt = GATTObjects(peripheral.layout, version: peripheral.layoutVersion, under: device.path)
        exportGATT(key)
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
        var closing = device.closing ?? Device.Closing(replies: [], removesDevice: false)
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
        hideBattery(key)
        endAcquisitions(key)
        for (id, operation) in operations where operation.key == key {
            operations[id] = nil
            fail(operation.call, .notConnected)
        }
        failPairing(key)
        peripherals[key.peripheral].endLink()
        effects.append(.record(.disconnected(peripherals[key.peripheral].spec.address, reason)))
        devices[key]?.isConnected = false
        devices[key]?.isResolved = false
        devices[key]?.closing = nil
        devices[key]?.lastHeard = now
        let resolved = device.isResolved ? [Property("ServicesResolved", .boolean(false))] : []
        let connected = [Property("Connected", .boolean(false))]
        effects.append(
            .changed(path: device.path, interface: InterfaceName.device, resolved + connected, invalidated: [])
        )
        if device.closing?.removesDevice == true { removeDevice(key) }
        for call in device.closing?.replies ?? [] { effects.append(.reply(call, nil)) }
        armExpiry(key)
        startAdvertising(key.peripheral)
    }
}

// MARK: - Pairing

extension VirtualBlueZ {
    mutating func pair(_ call: MethodCall, _ key: DeviceKey) {
        guard let device = devices[key] else { return }
        guard !device.isPaired else { return fail(call, .alreadyPaired) }
        guard device.pairing == nil else { return fail(call, .acquireInProgress) }
        guard !device.isResolved else { return finishPairing(key, call.token) }
        guard adapters[key.adapter].isPowered else { return fail(call, .inputOutput) }
        devices[key]?.pairing = call.token
        if !device.isConnected, device.attempt == nil { attempt(key, for: nil) }
    }

    private mutating func finishPairing(_ key: DeviceKey, _ call: CallToken) {
        devices[key]?.pairing = nil
        guard peripherals[key.peripheral].spec.pairing == .justWorks else {
            effects.append(.fail(call, .authenticationFailed))
            return
        }
        markPaired(key)
        effects.append(.reply(call, nil))
    }

    private mutating func failPairing(_ key: DeviceKey) {
        guard let call = devices[key]?.pairing else { return }
        devices[key]?.pairing = nil
        effects.append(.fail(call, .authenticationFailed))
    }

    mutating func markPaired(_ key: DeviceKey) {
        devices[key]?.isPaired = true
        changed(
            devicePath(key),
            InterfaceName.device,
            Property("Bonded", .boolean(true)),
            Property("Paired", .boolean(true))
        )
    }
}

extension Peripheral {
    /// Why the link that was just made ends at once, if it does.
    fileprivate mutating func takeConnectFault() -> FaultList.Fault? {
        if let fault = faults.take("Connect") { return fault }
        guard connectFailures > 0 else { return nil }
        connectFailures -= 1
        return .error(.connectAborted)
    }

    fileprivate mutating func endLink() {
        link = nil
        rateEpoch += 1
        for index in characteristics.indices { characteristics[index].isSubscribed = false }
    }
}
