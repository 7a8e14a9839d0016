import GattherdDBus

// Pairings: wanted by `Pair`, or by a request that needs encryption.
extension VirtualBlueZ {
    /// Makes a bond, after connecting if need be.
    ///
    /// Never answered, as seen with BlueZ 5.66, are the second one of a bonded device, and one while `Connect` is
    /// pending.
    mutating func pair(_ call: MethodCall, _ key: DeviceKey) {
        guard let device = devices[key] else { return }
        guard device.pairing == nil else { return fail(call, .acquireInProgress) }
        guard adapters[key.adapter].isPowered else { return fail(call, .authenticationFailed) }
        guard !device.isBonded else { return }
        guard !device.isEncrypted else { return fail(call, .alreadyPaired) }
        let token = device.attempt?.call == nil ? call.token : nil
        let id = makeID()
        devices[key]?.pairing = SimulatedPairing(id: id, call: token, client: call.sender)
        if device.isResolved {
            negotiate(key)
        } else if !device.isConnected, device.attempt == nil {
            attempt(key, for: nil)
        }
    }

    /// Holds a request until the link is encrypted, and sees to that.
    mutating func hold(_ id: UInt64, _ operation: Operation) {
        operations[id] = operation
        operations[id]?.isHeld = true
        guard devices[operation.key]?.pairing == nil else { return }
        let pairing = makeID()
        devices[operation.key]?.pairing = SimulatedPairing(id: pairing, call: nil, client: nil)
        negotiate(operation.key)
    }

    /// Chooses how the two sides make sure of each other, and begins.
    ///
    /// Just Works is not asked about when a client called `Pair`; yet without any agent it fails, too.
    mutating func negotiate(_ key: DeviceKey) {
        guard let pairing = devices[key]?.pairing else { return }
        guard let agent = agents.agent(for: pairing.client) else { return refuse(key) }
        let wish = peripherals[key.peripheral].spec.pairing
        let method = wish.method(with: agent.capability)
        if wish == .refused || (method == .justWorks && wish.needsAuthentication) {
            schedule(.failPairing(key, pairing: pairing.id), after: pairingLatency(key))
        } else if method == .justWorks, pairing.client != nil {
            exchangeKeys(key)
        } else {
            ask(agent, method, key)
        }
    }

    /// How long the two sides talk once nobody has to be asked.
    func pairingLatency(_ key: DeviceKey) -> Duration {
        peripherals[key.peripheral].attLatency * 5
    }

    mutating func exchangeKeys(_ key: DeviceKey) {
        guard let pairing = devices[key]?.pairing else { return }
        schedule(.finishPairing(key, pairing: pairing.id), after: pairingLatency(key))
    }

    /// The link is encrypted; with an agent around both sides also remember.
    mutating func finishPairing(_ key: DeviceKey, pairing id: UInt64) {
        guard let pairing = devices[key]?.pairing, pairing.id == id else { return }
        let makesBond = adapters[key.adapter].isPairable
        devices[key]?.pairing = nil
        devices[key]?.isEncrypted = true
        devices[key]?.isPaired = true
        devices[key]?.isBonded = makesBond
        if makesBond { peripherals[key.peripheral].bonds.insert(key.adapter) }
        let bonded = makesBond ? [Property("Bonded", .boolean(true))] : []
        effects.append(
            .changed(
                path: devicePath(key),
                interface: InterfaceName.device,
                bonded + [Property("Paired", .boolean(true))],
                invalidated: []
            )
        )
        if let call = pairing.call { effects.append(.reply(call, nil)) }
        releaseHeld(key)
    }

    private mutating func releaseHeld(_ key: DeviceKey) {
        for id in held(key) { finish(id) }
    }

    private func held(_ key: DeviceKey) -> [UInt64] {
        operations.filter { $0.value.key == key && $0.value.isHeld }.keys.sorted()
    }

    /// Our side refused: the link stays for now, but bluetoothd removes the device with it later.
    ///
    /// Requests that wait for encryption wait on; where an agent refused they fail in the end.
    mutating func refuse(_ key: DeviceKey, expiring isExpiring: Bool = false) {
        endPairing(key, .authenticationFailed)
        if isExpiring { for id in held(key) { schedule(.timeOut(id), after: timing.attTimeout) } }
        scheduleRemoval(key, after: timing.temporaryTimeout)
    }

    /// The other side refused, and the link ends.
    mutating func failPairing(_ key: DeviceKey, pairing id: UInt64) {
        guard devices[key]?.pairing?.id == id else { return }
        endPairing(key, .authenticationFailed)
        linkDown(key, .authentication)
    }

    /// The two sides have waited too long for each other.
    mutating func abandonPairing(_ key: DeviceKey, pairing id: UInt64) {
        guard devices[key]?.pairing?.id == id else { return }
        linkDown(key, .authentication)
    }

    mutating func cancelPairing(_ call: MethodCall, _ key: DeviceKey) {
        guard devices[key]?.pairing?.client != nil else { return fail(call, .doesNotExist) }
        withdrawPairing(key)
        if devices[key]?.attempt?.call == nil { cancelAttempt(key) }
        reply(call)
    }

    /// Gives a pairing up that still waits for somebody.
    mutating func withdrawPairing(_ key: DeviceKey) {
        guard let pairing = devices[key]?.pairing else { return }
        if let agent = pairing.question?.agent { effects.append(.tell(agent, "Cancel")) }
        endPairing(key, .authenticationCanceled)
    }

    mutating func endPairing(_ key: DeviceKey, _ error: DBusError) {
        guard let pairing = devices[key]?.pairing else { return }
        devices[key]?.pairing = nil
        if let call = pairing.call { effects.append(.fail(call, error)) }
    }
}
