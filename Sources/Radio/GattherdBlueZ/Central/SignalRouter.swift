import GattherdBluetooth
import GattherdDBus
import GattherdLog
import GattherdSync

/// The effects of bluetoothd's signals on everything that depends on them; on the Bluetooth thread only.
final class SignalRouter {
    /// The time after a link's end in which its reason, or the removal of the adapter, arrives.
    private static let endReasonDelay = Duration.milliseconds(50)

    private let parts: CentralParts
    private let loop: EventLoop
    private let log: Log
    /// Called when an adapter is ready for advertisement monitors.
    private let onMonitorable: () -> Void
    /// True until the handlers of events and advertisements are told that this turn's messages are handled.
    private var isFlushScheduled = false

    init(_ parts: CentralParts, on loop: EventLoop, log: Log, onMonitorable: @escaping () -> Void) {
        (self.parts, self.loop, self.log, self.onMonitorable) = (parts, loop, log, onMonitorable)
    }

    // MARK: - Signals

    /// Handles a signal of bluetoothd.
    func receive(_ signal: borrowing DBusSignal) {
        parts.liveness.recordMessage()
        let follows = parts.sequencer.record(signal.serial)
        guard parts.objects.isLoaded else { return }
        if parts.notifications.receive(signal, follows: follows) {
            parts.client.bus?.canWait()
        } else if parts.objects.repeatAdvertisement(signal) {
            parts.client.bus?.canWait()
        } else if let arguments = try? signal.arguments() {
            recordEndReason(signal, arguments)
            updateObjects(signal, arguments)
        }
    }

    private func updateObjects(_ signal: borrowing DBusSignal, _ arguments: [DBusValue]) {
        let objects = parts.objects
        switch signal.signature {
        case "oa{sa{sv}}" where signal.isSignal(BlueZ.objectManager, "InterfacesAdded"):
            objects.update { $0.add(arguments[0].string ?? "", arguments[1]) }
        case "oas" where signal.isSignal(BlueZ.objectManager, "InterfacesRemoved"):
            let (path, interfaces) = (arguments[0].string ?? "", arguments[1].strings ?? [])
            objects.update { $0.remove(path, interfaces) }
            if interfaces.contains(BlueZ.device) { parts.client.abandonCalls(ofRemoved: path) }
        case "sa{sv}as" where signal.isSignal(BlueZ.properties, "PropertiesChanged"):
            let (path, interface) = (signal.path, arguments[0].string ?? "")
            let (changed, invalidated) = (arguments[1], arguments[2].strings ?? [])
            let changes = PropertyChanges(changed: changed, invalidated: invalidated)
            guard interface == BlueZ.device, changes.areOfAdvertisementOnly else {
                return objects.update { $0.change(path, interface, changed, invalidated) }
            }
            parts.client.bus?.canWait()
            objects.hear(signal, changes)
        default: break
        }
    }

    /// Records the reason of a link's end, which BlueZ signals from 5.83 on, right before the end.
    private func recordEndReason(_ signal: borrowing DBusSignal, _ arguments: [DBusValue]) {
        guard signal.isSignal(BlueZ.device, "Disconnected"), let name = arguments.first?.string else { return }
        let path = signal.path
        parts.objects.edit { $0.recordEndReason(path, DisconnectReason(blueZ: name)) }
    }

    // MARK: - Changes

    /// Publishes the changes of the object tree, and wakes the tasks that wait for them.
    func apply(_ changes: [ObjectTree.Change]) {
        for change in changes {
            switch change {
            case .event(let event): apply(event)
            case .monitorable: onMonitorable()
            case .adapterIgnored(let adapter): warn(ofDuplicate: adapter)
            case .advertised(let advertisement):
                parts.monitors.watch?.sink.receive(advertisement, at: .now)
                scheduleFlush()
            case .tableGrew(let id): tableChanged(id, hasGrown: true)
            case .tableShrank(let id): tableChanged(id, hasGrown: false)
            case .characteristicRemoved(let path):
                parts.notifications.remove(path)
                parts.writer.remove(path)
                parts.acquirer.remove(path)
            case .notifyingEnded(let path): parts.notifications.sessionEnded(path)
            }
        }
    }

    private func apply(_ event: CentralEvent) {
        switch event {
        case .disconnected(let id):
            linkEnded(id)
            push(event)
            publishEndReason(id)
        case .peripheralRemoved(let id):
            parts.links.removeCancellations(of: id)
            parts.acquirer.removeAll(of: id)
            push(event)
            parts.waiters.wake(id)
        case .peripheralChanged(let status):
            if !parts.client.isLeaving { parts.events.add(event) }
            scheduleFlush()
            parts.waiters.wake(status.id)
        case .adapterChanged(let status):
            if !status.isPowered { parts.discovery.recordEnd(on: status.address) }
            push(event)
        case .adapterRemoved(let address):
            parts.discovery.recordEnd(on: address)
            push(event)
        default: push(event)
        }
    }

    /// Publishes an event, unless bluetoothd is being left: all objects count as unknown then, until the next load.
    private func push(_ event: CentralEvent) {
        if !parts.client.isLeaving { parts.events.push(event) }
    }

    /// Wakes the consumers of events and advertisements when all messages of this turn are handled.
    private func scheduleFlush() {
        guard !isFlushScheduled else { return }
        isFlushScheduled = true
        loop.schedule(after: .zero) { [self] in
            isFlushScheduled = false
            parts.events.wake()
            parts.monitors.watch?.sink.flush()
        }
    }

    /// Logs that an adapter is not used.
    func warn(ofDuplicate adapter: AdapterObject) {
        log(
            .warning,
            "another adapter has the same address: this one is not used; unplug one of them",
            [.init("adapter", adapter.name), .init("address", adapter.address?.description ?? "")]
        )
    }

    // MARK: - GATT tables

    /// Handles an attribute of a peripheral that was added or removed.
    private func tableChanged(_ id: PeripheralID, hasGrown: Bool) {
        let isTracked = parts.tableChanges.record(id, hasGrown: hasGrown) { [weak self] deadline in
            self?.tablePassed(deadline, of: id)
        }
        if !isTracked || hasGrown { parts.waiters.wake(id) }
    }

    private func tablePassed(_ deadline: TableChanges.Deadline, of id: PeripheralID) {
        switch deadline {
        case .quiet:
            push(.servicesChanged(id))
            parts.waiters.wake(id)
        case .hold: parts.notifications.endHeldSessions(of: id)
        }
    }

    // MARK: - Ends of links

    /// Publishes the reason of a link's end after a moment, because the reason, or the adapter's removal, may arrive
    /// late.
    private func publishEndReason(_ id: PeripheralID) {
        let owner = parts.client.owner
        loop.schedule(after: Self.endReasonDelay) { [weak self] in
            guard let self, parts.client.owner == owner else { return }
            push(.linkEnded(id, parts.objects.tree.endReason(id)))
        }
    }

    /// Ends everything that lives as long as the link.
    private func linkEnded(_ id: PeripheralID) {
        parts.links.recordEnd(of: id)
        parts.writer.closeSockets(of: id)
        parts.notifications.linkEnded(id)
        parts.acquirer.linkEnded(id)
        parts.waiters.wake(id)
    }
}
