import GattherdDBus

// Attempts to connect.
extension VirtualBlueZ {
    /// The time until bluetoothd removes a device whose connection found no free slot.
    private static let rejectedRemovalDelay = Duration.milliseconds(2)
    /// The time until bluetoothd retries after a peripheral has lost its bond.
    private static let retryDelay = Duration.milliseconds(40)

    mutating func connect(_ call: MethodCall, _ key: DeviceKey) {
        guard let device = devices[key], adapters[key.adapter].isPowered else { return fail(call, .inputOutput) }
        guard device.attempt?.call == nil else { return fail(call, .connectInProgress) }
        guard !device.isConnected else { return useLink(call, device) }
        if device.attempt != nil {
            // The call joins an attempt of `Pair` or of bluetoothd itself.
            devices[key]?.attempt?.call = call.token
        } else {
            startAttempt(key, for: call.token)
        }
    }

    /// Answers `Connect` on an existing link.
    ///
    /// A link that outlived its bluetoothd is resolved again.
    private mutating func useLink(_ call: MethodCall, _ device: SimulatedDevice) {
        reply(call)
        let peripheral = peripherals[device.key.peripheral]
        guard !device.isResolved, peripheral.survivesCrash || peripheral.link == device.key else { return }
        peripherals[device.key.peripheral].link = device.key
        schedule(.resolve(device.key, linkEpoch: device.linkEpoch), after: peripheral.resolveLatency(isKnown: true))
    }

    /// Starts an attempt.
    ///
    /// The `Connect` call is answered at its end.
    mutating func startAttempt(_ key: DeviceKey, for call: CallToken?) {
        let id = makeID()
        devices[key]?.attempt = SimulatedDevice.Attempt(id: id, call: call)
        schedule(.giveUp(key, attempt: id), after: timing.connectTimeout)
        continueAttempt(key)
    }

    /// Continues an attempt that waits for the peripheral to advertise.
    ///
    /// An adapter makes one link at a time.
    mutating func continueAttempt(_ key: DeviceKey) {
        guard let attempt = devices[key]?.attempt, attempt.isWaiting, adapters[key.adapter].isUsable else { return }
        let peripheral = peripherals[key.peripheral]
        guard peripheral.isAdvertising, peripheral.spec.advertising.isConnectable, isInRange(key),
            devices[key]?.isBlocked == false
        else { return }
        devices[key]?.attempt?.isWaiting = false
        let end = max(now, adapters[key.adapter].isFreeAt) + peripheral.spec.connectLatency
        adapters[key.adapter].isFreeAt = end
        schedule(.linkUp(key, attempt: attempt.id), at: end)
    }

    mutating func linkUp(_ key: DeviceKey, attempt id: UInt64) {
        guard let attempt = devices[key]?.attempt, attempt.id == id else { return }
        guard peripherals[key.peripheral].isAdvertising else {
            devices[key]?.attempt?.isWaiting = true
            return
        }
        if let slots = adapters[key.adapter].spec.slots, linkCount(ofAdapter: key.adapter) >= slots {
            scheduleRemoval(key, after: Self.rejectedRemovalDelay)
            return endAttempt(key, .connectAborted)
        }
        if let fault = peripherals[key.peripheral].nextConnectFault() { return failLink(key, fault) }
        establish(key)
    }

    private func linkCount(ofAdapter index: Int) -> Int {
        devices.values.count { $0.key.adapter == index && $0.isConnected }
    }

    /// Fails an attempt: the peripheral ends the link right after it was made, and `Connected` is true briefly.
    private mutating func failLink(_ key: DeviceKey, _ fault: FaultList.Fault) {
        let address = peripherals[key.peripheral].spec.address
        effects.record(.connected(address, adapter: adapters[key.adapter].spec.name))
        effects.changed(devicePath(key), InterfaceName.device, [Property("Connected", .boolean(true))])
        effects.record(.disconnected(address, .remote))
        effects.changed(devicePath(key), InterfaceName.device, [Property("Connected", .boolean(false))])
        switch fault {
        case .error(let error): endAttempt(key, error)
        case .noReply: devices[key]?.attempt = nil
        }
    }

    private mutating func establish(_ key: DeviceKey) {
        guard var device = devices[key], let attempt = device.attempt else { return }
        let hasKeys = peripherals[key.peripheral].bonds.contains(key.adapter)
        device.linkUp(epoch: makeID(), peripheralHasKeys: hasKeys)
        devices[key] = device
        peripherals[key.peripheral].link = key
        let peripheral = peripherals[key.peripheral]
        effects.record(.connected(peripheral.spec.address, adapter: adapters[key.adapter].spec.name))
        let isSignalDropped = peripherals[key.peripheral].faults.removeNext("ConnectedSignal") != nil
        if peripheral.spec.signalsConnected, !isSignalDropped {
            effects.changed(device.path, InterfaceName.device, [Property("Connected", .boolean(true))])
        }
        if device.isBonded, !hasKeys { dropUnbonded(key, attempt) }
        if let call = attempt.call { effects.reply(call) }
        let isKnown = adapters[key.adapter].cache[key.peripheral] == peripheral.layoutVersion
        let latency = peripheral.silence == .all ? timing.attTimeout : peripheral.resolveLatency(isKnown: isKnown)
        schedule(.resolve(key, linkEpoch: device.linkEpoch), after: latency)
    }

    /// Ends the link to a peripheral without our keys.
    ///
    /// bluetoothd retries once.
    private mutating func dropUnbonded(_ key: DeviceKey, _ attempt: SimulatedDevice.Attempt) {
        linkDown(key, .authentication)
        if !attempt.isRetry { schedule(.connectAgain(key), after: Self.retryDelay) }
    }

    /// Starts an attempt that no client asked for.
    mutating func connectAgain(_ key: DeviceKey) {
        guard let device = devices[key], !device.isConnected, device.attempt == nil, adapters[key.adapter].isUsable
        else { return }
        startAttempt(key, for: nil)
        devices[key]?.attempt?.isRetry = true
    }

    mutating func giveUp(_ key: DeviceKey, attempt id: UInt64) {
        guard devices[key]?.attempt?.id == id else { return }
        devices[key]?.lastSeen = now
        endAttempt(key, .connectAborted)
    }

    private mutating func endAttempt(_ key: DeviceKey, _ error: DBusError) {
        guard let attempt = devices[key]?.attempt else { return }
        devices[key]?.attempt = nil
        if let call = attempt.call { effects.fail(call, error) }
        endPairing(key, .connectionAborted)
        armExpiry(key)
    }

    mutating func cancelAttempt(_ key: DeviceKey) {
        withdrawPairing(key)
        endAttempt(key, .connectCanceled)
    }
}

// MARK: - The end of links

extension VirtualBlueZ {
    mutating func disconnect(_ call: MethodCall, _ key: DeviceKey) {
        cancelAttempt(key)
        guard devices[key]?.isConnected == true else { return reply(call) }
        close(key, reply: call.token, removesDevice: false)
    }

    /// Closes a link after the delay that bluetoothd takes.
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

    /// Ends a link.
    ///
    /// The GATT objects and the sessions of `StartNotify` remain.
    mutating func linkDown(_ key: DeviceKey, _ reason: TruthEvent.DisconnectReason) {
        guard let device = devices[key], device.isConnected else { return }
        guard !adapters[key.adapter].isHung || reason == .powerOff || reason == .unplugged || reason == .daemon else {
            return adapters[key.adapter].unreportedLinkEnds.append((key, reason))
        }
        if peripherals[key.peripheral].link == key {
            loseBuffered(key.peripheral)
            peripherals[key.peripheral].endLink()
            if peripherals[key.peripheral].abandonedBy == nil {
                effects.record(.disconnected(peripherals[key.peripheral].spec.address, reason))
            }
        }
        signalLinkDown(key, isOneSignal: reason != .local)
        withdrawPairing(key)
        failRequests(key)
        hideBattery(key)
        endAcquisitions(key)
        for call in device.closing?.replies ?? [] { effects.reply(call) }
        if device.closing?.removesDevice == true { removeDevice(key) }
        armExpiry(key)
        startAdvertising(key.peripheral)
    }

    /// Signals the end of a link: in one signal, but in two after a `Disconnect`.
    private mutating func signalLinkDown(_ key: DeviceKey, isOneSignal: Bool) {
        guard let path = devices[key]?.path, let properties = devices[key]?.linkDown(at: now) else { return }
        let signals =
            isOneSignal ? [properties.services + properties.device] : [properties.services, properties.device]
        for signal in signals { effects.changed(path, InterfaceName.device, signal) }
    }

    /// Fails the unanswered requests of a device, except `AcquireNotify`, which is never answered.
    private mutating func failRequests(_ key: DeviceKey) {
        for request in requests.removeAll(of: key) {
            if case .acquireNotify = request.kind { continue }
            fail(request.call, .att(0x0E))
        }
    }

    /// True while the peripheral receives requests over the link and answers them.
    func isReachable(_ key: DeviceKey) -> Bool {
        peripherals[key.peripheral].answers && peripherals[key.peripheral].link == key && !adapters[key.adapter].isHung
    }

    /// Ends a link from the peripheral's side.
    ///
    /// A host with a hung controller does not notice it.
    mutating func drop(_ index: Int) {
        guard let key = peripherals[index].link else { return }
        guard adapters[key.adapter].isHung else { return linkDown(key, .remote) }
        loseBuffered(index)
        peripherals[index].endLink()
        effects.record(.disconnected(peripherals[index].spec.address, .remote))
        startAdvertising(index)
    }
}

extension SimulatedPeripheral {
    /// The fault of the link that was just made, if there is one.
    fileprivate mutating func nextConnectFault() -> FaultList.Fault? {
        if let fault = faults.removeNext("Connect") { return fault }
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
