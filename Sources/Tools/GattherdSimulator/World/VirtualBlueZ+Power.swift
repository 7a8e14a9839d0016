import GattherdDBus

// Adapters switched and pulled; bluetoothd ended and started.
extension VirtualBlueZ {
    mutating func setPower(_ index: Int, _ isOn: Bool) {
        guard adapters[index].isPowered != isOn else { return }
        guard !isOn else {
            adapters[index].isPowered = true
            return changed(adapters[index].path, InterfaceName.adapter, Property("Powered", .boolean(true)))
        }
        powerOff(index, .powerOff)
    }

    /// Ends links, attempts, sessions and filters, and forgets what is only known; the rest of the objects stays.
    private mutating func powerOff(_ index: Int, _ reason: TruthEvent.DisconnectReason) {
        for key in keys(ofAdapter: index) {
            cancelAttempt(key)
            if let device = devices[key], device.isTemporary, !device.isConnected { removeDevice(key) }
        }
        for key in keys(ofAdapter: index) { linkDown(key, reason) }
        forgetAir(index)
        adapters[index].isPowered = false
        adapters[index].forgetClients()
        effects.append(
            .changed(
                path: adapters[index].path,
                interface: InterfaceName.adapter,
                [Property("Powered", .boolean(false)), Property("Discovering", .boolean(false))],
                invalidated: []
            )
        )
    }

    mutating func unplug(_ index: Int) {
        guard adapters[index].isPresent else { return }
        adapters[index].remembered = memories(ofAdapter: index)
        if adapters[index].isPowered { powerOff(index, .unplugged) }
        for key in keys(ofAdapter: index) { removeDevice(key) }
        adapters[index].isPresent = false
        unexport(adapters[index].path)
    }

    /// The adapter comes back and is powered by bluetoothd (AutoEnable).
    mutating func plug(_ index: Int) {
        guard !adapters[index].isPresent else { return }
        adapters[index].isPresent = true
        adapters[index].isPowered = false
        guard isRunning else { return }
        exportAdapter(index)
        setPower(index, true)
    }

    /// The devices that outlive their objects: those connected, trusted or paired.
    private func memories(ofAdapter index: Int) -> [Int: SimulatedAdapter.Memory] {
        let kept = keys(ofAdapter: index).compactMap { devices[$0] }.filter { $0.isConnected || !$0.isTemporary }
        return Dictionary(
            uniqueKeysWithValues: kept.map {
                ($0.key.peripheral, SimulatedAdapter.Memory(isTrusted: $0.isTrusted, isBonded: $0.isBonded))
            }
        )
    }

    /// Ends bluetoothd: in good order, with a signal for everything that goes, or as a crash.
    mutating func stopDaemon(isGraceful: Bool, for downtime: Duration) {
        guard isRunning else { return }
        isRunning = false
        for index in adapters.indices where adapters[index].isPresent {
            let memories = memories(ofAdapter: index)
            if !isGraceful { abandonLinks(ofAdapter: index) }
            powerOff(index, .daemon)
            for key in keys(ofAdapter: index) { removeDevice(key) }
            unexport(adapters[index].path)
            adapters[index].remembered = memories
        }
        for agent in agents.all { effects.append(.tell(agent, "Release")) }
        if !isGraceful { effects.removeAll { $0.isOnBus } }
        for index in adapters.indices { adapters[index].isPowered = !isGraceful }
        nodes.removeAll()
        agents.removeAll()
        early.removeAll()
        for index in adapters.indices { adapters[index].isPairable = false }
        effects.append(.stopDaemon)
        schedule(.startDaemon, after: downtime)
    }

    /// After a crash the kernel keeps links for a while, until it finds that nobody uses them.
    private mutating func abandonLinks(ofAdapter index: Int) {
        for peripheral in peripherals.indices where peripherals[peripheral].link?.adapter == index {
            peripherals[peripheral].abandonedBy = index
            schedule(.abandon(peripheral: peripheral), after: .milliseconds(2250))
        }
    }

    /// The kernel drops a link, but for one that it keeps now and then, for the next bluetoothd.
    mutating func abandon(_ peripheral: Int) {
        guard let adapter = peripherals[peripheral].abandonedBy.take() else { return }
        let key = DeviceKey(adapter: adapter, peripheral: peripheral)
        if peripherals[peripheral].survivesCrash, devices[key]?.isConnected == true {
            peripherals[peripheral].survivesCrash = false
            return peripherals[peripheral].link = key
        }
        effects.append(.record(.disconnected(peripherals[peripheral].spec.address, .daemon)))
        if devices[key]?.isConnected == true { linkDown(key, .daemon) } else { startAdvertising(peripheral) }
    }

    /// A controller that answers again goes on with what waits for it.
    mutating func setHung(_ index: Int, _ isHung: Bool) {
        adapters[index].isHung = isHung
        guard !isHung else { return }
        for key in keys(ofAdapter: index) { proceed(key) }
        for (key, reason) in adapters[index].unfinished { linkDown(key, reason) }
        adapters[index].unfinished.removeAll()
    }

    /// bluetoothd is back and takes its name; calls wait until it has read its adapters.
    mutating func startDaemon() {
        isStarting = true
        effects.append(.startDaemon)
        schedule(.serve, after: .milliseconds(50))
    }

    /// Shows adapters and devices, answers what was asked meanwhile, and powers what its end has switched off.
    mutating func serve() {
        isRunning = true
        isStarting = false
        exportAll()
        for call in early { answer(call) }
        early.removeAll()
        for index in adapters.indices where adapters[index].isPresent { setPower(index, true) }
    }
}

extension Effect {
    /// Whether a client could notice it on the bus.
    fileprivate var isOnBus: Bool {
        switch self {
        case .reply, .fail, .changed, .added, .removed, .ask, .tell: true
        case .openSocket, .closeSocket, .send, .record, .stopDaemon, .startDaemon: false
        }
    }
}
