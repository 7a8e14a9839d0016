import GattherdDBus

/// The links of devices: their start, their end and its causes.
final class LinkControl {
    /// The time until bluetoothd removes a device whose connection found no free slot.
    private static let rejectedRemovalDelay = Duration.milliseconds(2)
    /// The time until bluetoothd retries after a peripheral has lost its bond.
    private static let retryDelay = Duration.milliseconds(40)

    private let world: World
    private let registry: DeviceRegistry
    private let notifications: NotificationSender
    private let sockets: SocketAcquisitions
    private let pairing: PairingControl
    private let gatt: GATTClient
    private let services: ServiceDiscovery
    private let attempts: ConnectionAttempts
    /// The link ends that a controller did not report while it hung.
    private var unreported: [(key: DeviceKey, reason: TruthEvent.DisconnectReason)] = []

    init(
        _ world: World,
        _ registry: DeviceRegistry,
        _ notifications: NotificationSender,
        _ sockets: SocketAcquisitions,
        _ pairing: PairingControl,
        _ gatt: GATTClient,
        _ services: ServiceDiscovery,
        _ attempts: ConnectionAttempts
    ) {
        self.world = world
        self.registry = registry
        self.notifications = notifications
        self.sockets = sockets
        self.pairing = pairing
        self.gatt = gatt
        self.services = services
        self.attempts = attempts
    }

    func connect(_ call: MethodCall, _ key: DeviceKey) {
        guard let device = world.devices[key], world.adapters[key.adapter].isPowered else {
            return world.effects.fail(call, .inputOutput)
        }
        guard device.attempt?.call == nil else { return world.effects.fail(call, .connectInProgress) }
        guard !device.isConnected else { return useLink(call, device) }
        if device.attempt != nil {
            // The call joins an attempt of `Pair` or of bluetoothd itself.
            world.devices[key]?.attempt?.call = call.token
        } else {
            attempts.start(key, for: call.token)
        }
    }

    /// Answers `Connect` on an existing link.
    ///
    /// A link that outlived its bluetoothd is resolved again.
    private func useLink(_ call: MethodCall, _ device: SimulatedDevice) {
        world.effects.reply(call)
        let peripheral = world.air.peripherals[device.key.peripheral]
        guard !device.isResolved, peripheral.survivesCrash || peripheral.link == device.key else { return }
        world.air.peripherals[device.key.peripheral].link = device.key
        let timer = SimulationTimer.resolve(device.key, linkEpoch: device.linkEpoch)
        world.clock.schedule(timer, after: peripheral.resolveLatency(isKnown: true))
    }

    func linkUp(_ key: DeviceKey, attempt id: UInt64) {
        guard let attempt = attempts.ready(key, attempt: id) else { return }
        if let slots = world.adapters[key.adapter].spec.slots, linkCount(ofAdapter: key.adapter) >= slots {
            registry.scheduleRemoval(key, after: Self.rejectedRemovalDelay)
            return attempts.end(key, .connectAborted)
        }
        if let fault = world.air.peripherals[key.peripheral].nextConnectFault() { return fail(key, fault) }
        establish(key, attempt)
    }

    private func linkCount(ofAdapter index: Int) -> Int {
        world.devices.values.count { $0.key.adapter == index && $0.isConnected }
    }

    /// Fails an attempt: the peripheral ends the link right after it was made, and `Connected` is true briefly.
    private func fail(_ key: DeviceKey, _ fault: FaultList.Fault) {
        let address = world.air.peripherals[key.peripheral].spec.address
        world.effects.record(.connected(address, adapter: world.adapters[key.adapter].spec.name))
        world.signal(key, [Property("Connected", .boolean(true))])
        world.effects.record(.disconnected(address, .remote))
        world.signal(key, [Property("Connected", .boolean(false))])
        switch fault {
        case .error(let error): attempts.end(key, error)
        case .noReply: world.devices[key]?.attempt = nil
        }
    }

    private func establish(_ key: DeviceKey, _ attempt: SimulatedDevice.Attempt) {
        guard var device = world.devices[key] else { return }
        let hasKeys = world.air.peripherals[key.peripheral].bonds.contains(key.adapter)
        device.linkUp(epoch: world.clock.makeID(), peripheralHasKeys: hasKeys)
        world.devices[key] = device
        world.air.peripherals[key.peripheral].link = key
        let spec = world.air.peripherals[key.peripheral].spec
        world.effects.record(.connected(spec.address, adapter: world.adapters[key.adapter].spec.name))
        let isSignalDropped = world.air.peripherals[key.peripheral].faults.removeNext("ConnectedSignal") != nil
        if spec.signalsConnected, !isSignalDropped { world.signal(key, [Property("Connected", .boolean(true))]) }
        if device.isBonded, !hasKeys { dropUnbonded(key, attempt) }
        if let call = attempt.call { world.effects.reply(call) }
        services.start(key, linkEpoch: device.linkEpoch)
    }

    /// Ends the link to a peripheral without our keys.
    ///
    /// bluetoothd retries once.
    private func dropUnbonded(_ key: DeviceKey, _ attempt: SimulatedDevice.Attempt) {
        end(key, .authentication)
        if !attempt.isRetry { world.clock.schedule(.connectAgain(key), after: Self.retryDelay) }
    }

    /// Starts an attempt that no client asked for.
    func connectAgain(_ key: DeviceKey) {
        guard let device = world.devices[key], !device.isConnected, device.attempt == nil,
            world.adapters[key.adapter].isUsable
        else { return }
        attempts.start(key, for: nil, isRetry: true)
    }
}

// MARK: - The end of links

extension LinkControl {
    func disconnect(_ call: MethodCall, _ key: DeviceKey) {
        attempts.cancel(key)
        guard world.devices[key]?.isConnected == true else { return world.effects.reply(call) }
        close(key, reply: call.token, removesDevice: false)
    }

    /// Ends a device's attempt or link, and removes it.
    func remove(_ call: MethodCall, _ key: DeviceKey) {
        attempts.cancel(key)
        guard world.devices[key]?.isConnected != true else {
            return close(key, reply: call.token, removesDevice: true)
        }
        registry.remove(key)
        world.effects.reply(call)
    }

    /// Closes a link after the delay that bluetoothd takes.
    private func close(_ key: DeviceKey, reply call: CallToken, removesDevice: Bool) {
        guard let device = world.devices[key] else { return }
        var closing = device.closing ?? SimulatedDevice.Closing(replies: [], removesDevice: false)
        closing.replies.append(call)
        closing.removesDevice = closing.removesDevice || removesDevice
        world.devices[key]?.closing = closing
        guard device.closing == nil else { return }
        services.hideBattery(key)
        world.clock.schedule(.linkDown(key, linkEpoch: device.linkEpoch, .local), after: world.timing.disconnect)
    }

    /// Ends a link.
    ///
    /// The GATT objects and the sessions of `StartNotify` remain.
    func end(_ key: DeviceKey, _ reason: TruthEvent.DisconnectReason) {
        guard let device = world.devices[key], device.isConnected else { return }
        guard !world.adapters[key.adapter].isHung || reason.isNoticedByHungHost else {
            return unreported.append((key, reason))
        }
        if world.air.peripherals[key.peripheral].link == key {
            let isRecorded = world.air.peripherals[key.peripheral].abandonedBy == nil
            endRadioLink(key.peripheral, isRecorded ? reason : nil)
        }
        signalEnd(key, isOneSignal: reason != .local)
        pairing.withdraw(key)
        gatt.failAll(of: key)
        services.hideBattery(key)
        sockets.endAll(key)
        for call in device.closing?.replies ?? [] { world.effects.reply(call) }
        if device.closing?.removesDevice == true { registry.remove(key) }
        registry.armExpiry(key)
        world.air.startAdvertising(key.peripheral)
    }

    /// Ends a link at the peripheral, and drops the values that the host has not delivered.
    private func endRadioLink(_ index: Int, _ reason: TruthEvent.DisconnectReason?) {
        notifications.loseBuffered(index)
        world.air.peripherals[index].endLink()
        notifications.stop(index)
        if let reason { world.effects.record(.disconnected(world.air.peripherals[index].spec.address, reason)) }
    }

    /// Signals the end of a link: in one signal, but in two after a `Disconnect`.
    private func signalEnd(_ key: DeviceKey, isOneSignal: Bool) {
        let now = world.clock.now
        guard let properties = world.devices[key]?.linkDown(at: now) else { return }
        let signals =
            isOneSignal ? [properties.services + properties.device] : [properties.services, properties.device]
        for signal in signals { world.signal(key, signal) }
    }

    /// Removes a device after a failure, connected or not.
    ///
    /// Its pending requests are never answered.
    func removeFailed(_ key: DeviceKey, linkEpoch: UInt64) {
        guard let device = world.devices[key], device.isTemporary, device.linkEpoch == linkEpoch,
            device.attempt == nil, device.pairing == nil, device.closing == nil
        else { return }
        gatt.dropAll(of: key)
        let hasLink = world.air.peripherals[key.peripheral].link == key
        if hasLink { endRadioLink(key.peripheral, .local) }
        if device.isConnected { sockets.endAll(key) }
        registry.remove(key)
        if hasLink { world.air.startAdvertising(key.peripheral) }
    }

    /// Ends a link from the peripheral's side.
    ///
    /// A host with a hung controller does not notice it.
    func drop(_ index: Int) {
        guard let key = world.air.peripherals[index].link else { return }
        guard world.adapters[key.adapter].isHung else { return end(key, .remote) }
        endRadioLink(index, .remote)
        world.air.startAdvertising(index)
    }

    /// Ends a link whose peripheral is still out of range.
    func loseContact(_ key: DeviceKey) {
        guard !world.isInContact(key), world.air.peripherals[key.peripheral].link == key else { return }
        guard world.adapters[key.adapter].isHung else { return end(key, .timeout) }
        world.air.peripherals[key.peripheral].endLink()
        notifications.stop(key.peripheral)
    }

    /// Reports the link ends that an adapter missed while it hung.
    func reportEnds(ofAdapter index: Int) {
        let missed = unreported.filter { $0.key.adapter == index }
        unreported.removeAll { $0.key.adapter == index }
        for (key, reason) in missed { end(key, reason) }
    }
}

extension TruthEvent.DisconnectReason {
    /// True if the host itself ends the link, so that it needs no report of the controller.
    fileprivate var isNoticedByHungHost: Bool { self == .powerOff || self == .unplugged || self == .daemon }
}

extension SimulatedPeripheral {
    /// The fault of the link that was just made, if there is one.
    fileprivate mutating func nextConnectFault() -> FaultList.Fault? {
        if let fault = faults.removeNext("Connect") { return fault }
        guard connectFailures > 0 else { return nil }
        connectFailures -= 1
        return .error(.connectAborted)
    }
}
