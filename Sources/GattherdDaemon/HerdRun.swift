import GattherdBluetooth
import GattherdGATT
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSync

/// One run of the herd: what is true of Bluetooth now, and the sessions that are open.
///
/// Used by one loop; what it starts are children of that loop's task group.
struct HerdRun {
    private let herd: HerdRunner
    private let names: [BluetoothAddress: String]
    private var peripherals: [PeripheralID: PeripheralStatus] = [:]
    private var sessions: [String: AsyncStream<Void>.Continuation] = [:]
    /// Whether each device's newest session has given everything back.
    private var releases: [String: StateBoard<Bool>] = [:]
    /// Where each device's link is, or is being made.
    private var links: [String: PeripheralID] = [:]

    init(herd: HerdRunner) {
        self.herd = herd
        names = Dictionary(herd.devices.values.map { ($0.address, $0.name) }, uniquingKeysWith: { first, _ in first })
    }

    // MARK: - What happened

    /// Translates what came in for the herd machine, and keeps the boards current.
    mutating func events(for message: HerdRunner.Message) -> [HerdMachine.Event] {
        switch message {
        case .herd(let event): [event]
        case .central(let event): events(for: event)
        case .stop: []
        }
    }

    private mutating func events(for event: CentralEvent) -> [HerdMachine.Event] {
        switch event {
        case .available:
            note("bluetoothd", state: "available", level: .notice)
            return []
        case .unavailable(let detail):
            note("bluetoothd", state: "unavailable", detail, level: .warning)
            peripherals = [:]
            herd.board.clearAdapters()
            return [.unavailable(detail: detail)]
        case .adapterChanged(let adapter):
            guard isOurs(adapter.address) else { return [] }
            adapterChanged(adapter)
            return [.adapter(adapter.address, isPowered: adapter.isPowered)]
        case .adapterRemoved(let address):
            herd.board.remove(adapter: address)
            note("adapter", state: "removed", address.description, level: .warning)
            return [.adapterRemoved(address)]
        case .peripheralChanged(let peripheral):
            return changed(peripheral)
        case .disconnected(let id):
            peripherals[id]?.isConnected = false
            return names[id.address].map { [.dropped(device: $0, on: id.adapter)] } ?? []
        case .peripheralRemoved(let id):
            peripherals[id] = nil
            return names[id.address].map { [.forgotten(device: $0, on: id.adapter)] } ?? []
        case .servicesChanged(let id), .subscriptionEnded(_, let id):
            return names[id.address].map { [.link(device: $0, .sessionStale)] } ?? []
        }
    }

    private func isOurs(_ adapter: BluetoothAddress) -> Bool {
        herd.settings.adapters?.contains(adapter) ?? true
    }

    private func adapterChanged(_ adapter: AdapterStatus) {
        let before = herd.board.set(adapter)
        guard before?.isPowered != adapter.isPowered else { return }
        note(
            "adapter",
            state: adapter.isPowered ? "on" : "off",
            "\(adapter.name) \(adapter.address)",
            level: adapter.isPowered ? .notice : .warning
        )
    }

    private mutating func changed(_ peripheral: PeripheralStatus) -> [HerdMachine.Event] {
        guard let name = names[peripheral.id.address] else { return [] }
        herd.surroundings.peripheralNames.withLock { $0[peripheral.id] = peripheral.name }
        let isNew = peripherals.updateValue(peripheral, forKey: peripheral.id) == nil
        let rssi = peripheral.rssi.map { [LogField("rssi", $0)] } ?? []
        if isNew { herd.log(.info, "seen", [.init("device", name)] + rssi) }
        let sighting = HerdMachine.Sighting(isConnected: peripheral.isConnected, rssi: peripheral.rssi)
        return [.sighted(device: name, on: peripheral.id.adapter, sighting)]
    }

    private func note(_ kind: String, state: String, _ detail: String? = nil, level: LogLevel) {
        herd.recorder.record(kind: kind, ["state": .text(state), "detail": detail.map { .text($0) }])
        let fields =
            [LogField("part", kind), LogField("state", state)] + (detail.map { [LogField("detail", $0)] } ?? [])
        herd.log(level, "bluetooth changed", fields)
    }

    // MARK: - What must be done

    /// Starts what the machine asks for; answers come back through the inbox.
    mutating func perform(_ effect: HerdMachine.Effect, in group: inout DiscardingTaskGroup) {
        switch effect {
        case .startDiscovery(let adapter): startDiscovery(on: adapter, in: &group)
        case .stopDiscovery(let adapter): stopDiscovery(on: adapter, in: &group)
        case .armTurn(let adapter, let delay): send(.turn(adapter), after: delay, in: &group)
        case .link(let name, let adapter, let effect):
            guard let device = herd.devices[name] else { return }
            if let adapter { links[name] = PeripheralID(adapter: adapter, address: device.address) }
            perform(effect, for: device, in: &group)
        }
    }

    private mutating func perform(
        _ effect: LinkMachine.Effect,
        for device: HerdDevice,
        in group: inout DiscardingTaskGroup
    ) {
        switch effect {
        case .queue, .unqueue: break
        case .connect(let ticket): connect(device, ticket: ticket, in: &group)
        case .openSession(let ticket): openSession(device, ticket: ticket, in: &group)
        case .closeSession: closeSession(device.name)
        case .disconnect(let ticket): disconnect(device, ticket: ticket, in: &group)
        case .armRetry(let delay, let ticket):
            send(.link(device: device.name, .retryDue(ticket: ticket)), after: delay, in: &group)
        case .changed(let change): changed(change, device)
        }
    }

    private func connect(_ device: HerdDevice, ticket: Int, in group: inout DiscardingTaskGroup) {
        guard let link = links[device.name] else { return }
        let herd = herd
        group.addTask {
            do throws(BluetoothError) {
                try await herd.central.connect(link, timeout: herd.settings.connectTimeout)
                herd.send(.link(device: device.name, .connected(ticket: ticket)))
            } catch {
                let fault = LinkFault(error, while: "connecting")
                herd.send(.link(device: device.name, .failed(fault, ticket: ticket)))
            }
        }
    }

    private func disconnect(_ device: HerdDevice, ticket: Int, in group: inout DiscardingTaskGroup) {
        let herd = herd
        let link = links[device.name]
        group.addTask {
            do throws(BluetoothError) {
                if let link { try await herd.central.disconnect(link) }
            } catch {
                herd.log(
                    .warning,
                    "disconnecting failed",
                    [.init("device", device.name), .init("error", error.detail)]
                )
            }
            herd.send(.link(device: device.name, .disconnected(ticket: ticket)))
        }
    }

    private mutating func openSession(_ device: HerdDevice, ticket: Int, in group: inout DiscardingTaskGroup) {
        guard let link = links[device.name] else { return }
        let (end, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        sessions.updateValue(continuation, forKey: device.name)?.finish()
        let previous = releases[device.name]
        let released = StateBoard(false)
        releases[device.name] = released
        let herd = herd
        let session = LinkSession(
            device: device,
            peripheral: link,
            surroundings: herd.surroundings,
            log: herd.log.with(LogField("device", device.name)),
            report: { herd.report($0, of: device, link: link, ticket: ticket) }
        )
        group.addTask {
            // Unsubscribing must not overtake the new session's subscribing.
            if let previous { for await isReleased in previous.watch() where isReleased { break } }
            await session.run(until: end)
            released.set(true)
        }
    }

    private mutating func closeSession(_ name: String) {
        sessions.removeValue(forKey: name)?.finish()
        herd.controls.close(device: name)
    }

    private func changed(_ change: LinkChange, _ device: HerdDevice) {
        let now = herd.now()
        var status = LinkStatus(device: device.name, state: change.to, since: now)
        status.reason = change.reason
        status.detail = change.detail
        status.attempt = change.attempt
        status.nextRetry = change.retryAfter.map { now.advanced(by: $0) }
        if let link = links[device.name] {
            status.adapter = link.adapter.description
            status.rssi = peripherals[link]?.rssi
        }
        herd.publish(status, change)
    }

    private func startDiscovery(on adapter: BluetoothAddress, in group: inout DiscardingTaskGroup) {
        let herd = herd
        group.addTask {
            do throws(BluetoothError) {
                try await herd.central.startDiscovery(on: adapter, services: [])
            } catch {
                herd.log(.warning, "scanning could not start; trying again", [.init("error", error.detail)])
                try? await Task.sleep(for: .seconds(5))
                herd.send(.discoveryFailed(adapter))
            }
        }
    }

    private func stopDiscovery(on adapter: BluetoothAddress, in group: inout DiscardingTaskGroup) {
        let herd = herd
        group.addTask {
            do throws(BluetoothError) {
                try await herd.central.stopDiscovery(on: adapter)
            } catch {
                herd.log(.debug, "scanning could not be stopped", [.init("error", error.detail)])
            }
        }
    }

    private func send(_ event: HerdMachine.Event, after delay: Duration, in group: inout DiscardingTaskGroup) {
        let herd = herd
        group.addTask {
            // Stale or not, the machine can tell.
            if (try? await Task.sleep(for: delay)) != nil { herd.send(event) }
        }
    }

    // MARK: - The end

    /// Ends all sessions, then all links unless they are kept.
    mutating func end(keepingLinks: Bool) async {
        for name in sessions.keys.sorted() { closeSession(name) }
        guard !keepingLinks else { return }
        let herd = herd
        await withDiscardingTaskGroup { group in
            for (name, link) in links where herd.board.status(of: name)?.state.mayHoldLink == true {
                group.addTask {
                    do throws(BluetoothError) {
                        try await herd.central.disconnect(link)
                    } catch {
                        herd.log(.debug, "disconnecting failed", [.init("error", error.detail)])
                    }
                }
            }
        }
    }
}

extension LinkState {
    /// True while BlueZ may hold a link of ours.
    var mayHoldLink: Bool {
        switch self {
        case .connecting, .discovering, .preparing, .ready, .disconnecting: true
        case .waiting, .disconnected, .backingOff, .held, .failed: false
        }
    }
}
