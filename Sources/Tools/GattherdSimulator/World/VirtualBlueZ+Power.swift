import GattherdDBus

// Power and presence of adapters.
extension VirtualBlueZ {
    mutating func setPower(_ index: Int, _ isOn: Bool) {
        guard adapters[index].isPowered != isOn else { return }
        guard isOn else { return powerOff(index, .powerOff) }
        adapters[index].isPowered = true
        effects.changed(adapters[index].path, InterfaceName.adapter, [Property("Powered", .boolean(true))])
    }

    /// Ends links, attempts, scans and filters, and removes temporary devices.
    ///
    /// Other objects remain.
    private mutating func powerOff(_ index: Int, _ reason: TruthEvent.DisconnectReason) {
        for key in keys(ofAdapter: index) {
            cancelAttempt(key)
            if let device = devices[key], device.isTemporary, !device.isConnected { removeDevice(key) }
        }
        for key in keys(ofAdapter: index) { linkDown(key, reason) }
        removeScanResults(index)
        adapters[index].isPowered = false
        adapters[index].discovery.removeAll()
        effects.changed(
            adapters[index].path,
            InterfaceName.adapter,
            [Property("Powered", .boolean(false)), Property("Discovering", .boolean(false))]
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

    /// Plugs an adapter in.
    ///
    /// bluetoothd powers it (AutoEnable).
    mutating func plug(_ index: Int) {
        guard !adapters[index].isPresent else { return }
        adapters[index].isPresent = true
        adapters[index].isPowered = false
        guard daemon.isRunning else { return }
        exportAdapter(index)
        setPower(index, true)
    }

    /// The devices that are kept without their objects: the connected, trusted and paired ones.
    private func memories(ofAdapter index: Int) -> [Int: SimulatedAdapter.Memory] {
        let kept = keys(ofAdapter: index).compactMap { devices[$0] }.filter { $0.isConnected || !$0.isTemporary }
        return Dictionary(
            uniqueKeysWithValues: kept.map {
                ($0.key.peripheral, SimulatedAdapter.Memory(isTrusted: $0.isTrusted, isBonded: $0.isBonded))
            }
        )
    }

    /// Hangs a controller, or lets it answer again and report the link ends that it missed.
    mutating func setHung(_ index: Int, _ isHung: Bool) {
        adapters[index].isHung = isHung
        guard !isHung else { return }
        for key in keys(ofAdapter: index) { continueAttempt(key) }
        for (key, reason) in adapters[index].unreportedLinkEnds { linkDown(key, reason) }
        adapters[index].unreportedLinkEnds.removeAll()
    }
}

// MARK: - Start and end of bluetoothd

extension VirtualBlueZ {
    /// The time that the kernel keeps links after a crash, until it notices that they are unused.
    private static let abandonedLinkDuration = Duration.milliseconds(2250)
    /// The time from taking the bus name to reading the adapters.
    private static let startDuration = Duration.milliseconds(50)

    /// Ends bluetoothd: gracefully, with signals for all removed objects, or as a crash.
    mutating func stopDaemon(isGraceful: Bool, for downtime: Duration) {
        guard daemon.isRunning else { return }
        daemon.stop()
        for index in adapters.indices where adapters[index].isPresent {
            let memories = memories(ofAdapter: index)
            if !isGraceful { abandonLinks(ofAdapter: index) }
            powerOff(index, .daemon)
            for key in keys(ofAdapter: index) { removeDevice(key) }
            unexport(adapters[index].path)
            adapters[index].remembered = memories
        }
        for agent in agents.all { effects.append(.notifyAgent(agent, "Release")) }
        if !isGraceful { effects.removeBusEffects() }
        for index in adapters.indices { adapters[index].isPowered = !isGraceful }
        objects.removeAll()
        agents.removeAll()
        for index in adapters.indices { adapters[index].isPairable = false }
        effects.append(.stopDaemon)
        schedule(.startDaemon, after: downtime)
    }

    private mutating func abandonLinks(ofAdapter index: Int) {
        for peripheral in peripherals.indices where peripherals[peripheral].link?.adapter == index {
            peripherals[peripheral].abandonedBy = index
            schedule(.abandon(peripheral: peripheral), after: Self.abandonedLinkDuration)
        }
    }

    /// Ends a link that the kernel has kept after a crash, unless it is ordered to survive for the next bluetoothd.
    mutating func abandonLink(_ peripheral: Int) {
        guard let adapter = peripherals[peripheral].abandonedBy.take() else { return }
        let key = DeviceKey(adapter: adapter, peripheral: peripheral)
        if peripherals[peripheral].survivesCrash, devices[key]?.isConnected == true {
            peripherals[peripheral].survivesCrash = false
            return peripherals[peripheral].link = key
        }
        effects.record(.disconnected(peripherals[peripheral].spec.address, .daemon))
        if devices[key]?.isConnected == true { linkDown(key, .daemon) } else { startAdvertising(peripheral) }
    }

    /// Starts bluetoothd, which takes its name at once.
    ///
    /// Calls wait until it has read its adapters.
    mutating func startDaemon() {
        daemon.start()
        effects.append(.startDaemon)
        schedule(.serve, after: Self.startDuration)
    }

    /// Exports adapters and devices, answers the queued calls, and powers the adapters.
    mutating func serve() {
        let calls = daemon.serve()
        exportAll()
        for call in calls { answer(call) }
        for index in adapters.indices where adapters[index].isPresent { setPower(index, true) }
    }
}
