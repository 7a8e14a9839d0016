import GattherdBluetooth
import GattherdGATT
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSync

/// The state of one run of the supervisor: the view of Bluetooth and the open link sessions.
///
/// One loop owns it; the tasks it starts belong to that loop's task group.
struct SupervisorRun {
    let supervisor: Supervisor
    /// All peripherals that BlueZ knows.
    var peripherals: [PeripheralID: PeripheralStatus] = [:]
    /// The adapters that have known a peripheral, for lookups by address.
    var knowing: Set<BluetoothAddress> = []
    /// The connected peripherals of each adapter that are not enrolled.
    var others: [BluetoothAddress: Set<BluetoothAddress>] = [:]
    /// The time of the last hearing report of each adapter.
    var heard: [BluetoothAddress: Duration] = [:]
    /// The adapters that are being power-cycled.
    var switching: Set<BluetoothAddress> = []
    /// The adapters reported as full.
    var full: Set<BluetoothAddress> = []
    private var sessions: [String: AsyncStream<LinkSessionEnd>.Continuation] = [:]
    /// The number of advertisements of each device during its link session.
    private var doubts: [String: LatestValue<UInt64>] = [:]
    /// The subscriptions of each device's newest link.
    private var subscriptions: [String: LinkSubscriptions] = [:]
    /// The end of each device's newest link session: true after it has released everything.
    private var releases: [String: LatestValue<Bool>] = [:]
    /// The link of each device, established or in progress.
    private(set) var links: [String: PeripheralID] = [:]
    /// The newest reload.
    var reload: ReloadedDevices?
    /// The holds that people have set or ended since the start.
    var holds: [String: Bool] = [:]
    /// The receiver of unknown peripherals, if any.
    var offer: Supervisor.Offer?
    /// The addresses that were enrolled or declined; they are not offered again while BlueZ knows them.
    var taken: Set<BluetoothAddress> = []

    init(supervisor: Supervisor) {
        self.supervisor = supervisor
    }

    /// Starts an effect of the machine; results arrive through the inbox.
    mutating func perform(_ effect: SupervisorMachine.Effect, now: Duration, in group: inout DiscardingTaskGroup) {
        switch effect {
        case .discovery(let adapter, let effect): perform(effect, on: adapter, in: &group)
        case .remedy(let adapter, let remedy): note(remedy, adapter)
        case .renewSession: renewSession(in: &group)
        case .powerCycle(let adapter): powerCycle(adapter, in: &group)
        case .powerOn(let adapter): powerOn(adapter, in: &group)
        case .doubt(let name): doubts[name]?.update { $0 &+= 1 }
        case .left(let name):
            links[name] = nil
            forget(name)
        case .report(let report): take(report)
        case .wake(let time): wake(at: time, now: now, in: &group)
        case .link(let name, let adapter, let effect):
            guard let device = supervisor.configuredDevices[name] else { return }
            if let adapter { links[name] = PeripheralID(adapter: adapter, address: device.address) }
            perform(effect, for: device, in: &group)
        }
    }

    private mutating func perform(
        _ effect: LinkMachine.Effect,
        for device: SupervisedDevice,
        in group: inout DiscardingTaskGroup
    ) {
        switch effect {
        case .queue, .unqueue, .arm: break
        case .connect(let ticket): connect(device, ticket: ticket, in: &group)
        case .openSession(let ticket):
            subscriptions[device.name] = LinkSubscriptions()
            openSession(device, ticket: ticket, in: &group)
        case .replaceSession(let ticket):
            sessions[device.name]?.yield(.replaced)
            closeSession(device.name)
            openSession(device, ticket: ticket, in: &group)
        case .closeSession: closeSession(device.name)
        case .disconnect(let ticket): disconnect(device, ticket: ticket, in: &group)
        case .changed(let change): changed(change, device)
        }
    }

    private func connect(_ device: SupervisedDevice, ticket: Int, in group: inout DiscardingTaskGroup) {
        guard let link = links[device.name] else { return }
        let supervisor = supervisor
        group.addTask {
            do throws(LinkFault) {
                try await supervisor.makeLink(link)
                supervisor.send(.link(device: device.name, .connected(ticket: ticket)))
            } catch {
                supervisor.send(.link(device: device.name, .failed(error, ticket: ticket)))
            }
            supervisor.sequel(ofEnd: link, device.name).forEach(supervisor.send)
        }
    }

    private func disconnect(_ device: SupervisedDevice, ticket: Int, in group: inout DiscardingTaskGroup) {
        let supervisor = supervisor
        let link = links[device.name]
        group.addTask {
            do throws(BluetoothError) {
                if let link { try await supervisor.central.disconnect(link) }
            } catch {
                supervisor.log(
                    .warning,
                    "disconnecting failed",
                    [.init("device", device.name), .init("error", error.detail)]
                )
            }
            supervisor.send(.link(device: device.name, .disconnected(ticket: ticket)))
        }
    }

    private mutating func openSession(_ device: SupervisedDevice, ticket: Int, in group: inout DiscardingTaskGroup) {
        guard let link = links[device.name] else { return }
        let (end, continuation) = AsyncStream.makeStream(of: LinkSessionEnd.self, bufferingPolicy: .bufferingOldest(1))
        sessions.updateValue(continuation, forKey: device.name)?.finish()
        let previous = releases[device.name]
        let released = LatestValue(false)
        releases[device.name] = released
        let sightings = LatestValue<UInt64>(0)
        doubts[device.name] = sightings
        let supervisor = supervisor
        let session = LinkSession(
            device: device,
            peripheral: link,
            sessionContext: supervisor.sessionContext,
            subscriptions: subscriptions[device.name] ?? LinkSubscriptions(),
            log: supervisor.log.with(LogField("device", device.name)),
            doubts: sightings,
            report: { supervisor.report($0, of: device, link: link, ticket: ticket) }
        )
        group.addTask {
            // Unsubscribing must not overtake the subscriptions of the new session.
            if let previous { for await isReleased in previous.watch() where isReleased { break } }
            await session.run(until: end)
            released.set(true)
        }
    }

    /// Removes the finished entries that no new session waits for.
    mutating func forgetReleases() {
        releases = releases.filter { !$0.value.state }
        subscriptions = subscriptions.filter { supervisor.configuredDevices[$0.key] != nil }
    }

    private mutating func closeSession(_ name: String) {
        sessions.removeValue(forKey: name)?.finish()
        doubts[name] = nil
        supervisor.controls.close(device: name)
    }

    private func changed(_ change: LinkChange, _ device: SupervisedDevice) {
        let now = supervisor.now()
        let before = supervisor.board.status(of: device.name)
        let since = change.isWithinState ? before?.since : nil
        var status = LinkStatus(device: device.name, state: change.to, since: since ?? now)
        status.reason = change.reason
        status.detail = change.detail
        status.attempt = change.attempt
        status.nextRetry = change.retryAfter.map { now.advanced(by: $0) }
        if let link = links[device.name] {
            status.adapter = link.adapter.description
            status.rssi = peripherals[link]?.rssi
            if change.to == .failed { supervisor.sessionContext.bonds.settle(link) }
        }
        supervisor.publish(status, change)
    }

    private func wake(at time: Duration, now: Duration, in group: inout DiscardingTaskGroup) {
        let supervisor = supervisor
        group.addTask {
            if (try? await Task.sleep(for: time - now, clock: .loop)) != nil { supervisor.send(.wake(at: time)) }
        }
    }

    // MARK: - The end

    /// Ends all link sessions, then all links unless they are kept.
    mutating func end(keepingLinks: Bool) async {
        for name in sessions.keys.sorted() { closeSession(name) }
        for adapter in switching { await supervisor.switchOn(adapter) }
        guard !keepingLinks else { return }
        let supervisor = supervisor
        await withDiscardingTaskGroup { group in
            for (name, link) in links where supervisor.board.status(of: name)?.state.mayHoldLink == true {
                group.addTask { await supervisor.end(link, of: name) }
            }
        }
    }
}

extension Supervisor {
    /// Disconnects a link and publishes its end: the loop that would do so has ended.
    fileprivate func end(_ link: PeripheralID, of device: String) async {
        do throws(BluetoothError) {
            try await central.disconnect(link)
        } catch {
            log(.debug, "disconnecting failed", [.init("error", error.detail)])
        }
        guard var status = board.status(of: device) else { return }
        (status.state, status.since) = (.disconnected, now())
        (status.reason, status.detail, status.nextRetry) = (.requested, "gattherd has stopped", nil)
        board.set(status)
        announcer?.update(status)
    }
}

extension LinkState {
    /// True while BlueZ may hold a link of the daemon.
    var mayHoldLink: Bool {
        switch self {
        case .connecting, .discovering, .preparing, .ready, .disconnecting: true
        case .waiting, .disconnected, .backingOff, .held, .failed: false
        }
    }
}
