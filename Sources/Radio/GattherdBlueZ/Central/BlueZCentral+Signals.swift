import GattherdBluetooth
import GattherdDBus
import GattherdModel
import GattherdSync

extension BlueZCentral {
    /// Handles one signal of the bus; calls `arrived` if it reports that bluetoothd has arrived.
    func receive(_ signal: borrowing DBusSignal, arrived: () -> Void) {
        if let owner, signal.isFrom(owner) {
            hasReceived = true
            let follows = signals.record(signal.serial)
            guard isLoaded, !takeValue(signal, follows: follows), let arguments = try? signal.arguments() else {
                return
            }
            recordEndReason(signal, arguments)
            apply(changes(signal, arguments))
        } else if signal.isSignal("org.freedesktop.DBus", "NameOwnerChanged"), signal.isFrom("org.freedesktop.DBus") {
            guard let names = try? signal.arguments().compactMap(\.string), names.count == 3,
                names[0] == BlueZ.service
            else { return }
            setOwner(names[2].isEmpty ? nil : names[2], arrived: arrived)
        }
    }

    /// Passes the value of a characteristic on; returns true if the signal has nothing else.
    ///
    /// Every notification passes here: nothing is decoded, copied or allocated.
    private func takeValue(_ signal: borrowing DBusSignal, follows: Bool) -> Bool {
        guard let change = signal.changedOctets("Value", of: BlueZ.characteristic) else {
            signals.receiveOtherSignal(follows: follows)
            return false
        }
        if let channel = subscriptions.channel(for: signal) {
            signals.receive(change.octets, for: channel, follows: follows)
        } else {
            signals.endRun(isAnswered: !follows)
        }
        guard change.isAlone else { return false }
        bus?.canWait()
        return true
    }

    private func changes(_ signal: borrowing DBusSignal, _ arguments: [DBusValue]) -> [ObjectTree.Change] {
        switch signal.signature {
        case "oa{sa{sv}}" where signal.isSignal(BlueZ.objectManager, "InterfacesAdded"):
            tree.add(arguments[0].string ?? "", arguments[1])
        case "oas" where signal.isSignal(BlueZ.objectManager, "InterfacesRemoved"):
            tree.remove(arguments[0].string ?? "", arguments[1].strings ?? [])
        case "sa{sv}as" where signal.isSignal(BlueZ.properties, "PropertiesChanged"):
            tree.change(signal.path, arguments[0].string ?? "", arguments[1], arguments[2].strings ?? [])
        default: []
        }
    }

    /// Records the reason of a link's end, which BlueZ signals from 5.83 on, right before the end.
    private func recordEndReason(_ signal: borrowing DBusSignal, _ arguments: [DBusValue]) {
        guard signal.isSignal(BlueZ.device, "Disconnected"), let name = arguments.first?.string else { return }
        tree.recordEndReason(signal.path, DisconnectReason(blueZ: name))
    }

    /// Publishes the changes of the object tree, and wakes the tasks that wait for them.
    func apply(_ changes: [ObjectTree.Change]) {
        for change in changes {
            switch change {
            case .event(let event): apply(event)
            case .monitorable: refreshRequests?.yield()
            case .adapterIgnored(let adapter): warn(ofDuplicate: adapter)
            case .advertised(let advertisement): advertisementWatch?.sink.receive(advertisement, at: .now)
            case .tableGrew(let id): tableChanged(id, hasGrown: true)
            case .tableShrank(let id): tableChanged(id, hasGrown: false)
            case .characteristicRemoved(let path):
                tableChanges.removeHeld(path)?.close()
                endChannel(path)
                writers.remove(path)
            case .notifyingEnded(let path):
                // BlueZ signals the end of a session that we end before it answers.
                guard !subscriptions.isEnding(path), subscriptions[path]?.takesSignals == true else { break }
                endChannel(path)
            }
        }
    }

    func warn(ofDuplicate adapter: ObjectTree.Adapter) {
        log(
            .warning,
            "another adapter has the same address: this one is not used; unplug one of them",
            [.init("adapter", adapter.name), .init("address", adapter.address?.description ?? "")]
        )
    }

    private func apply(_ event: CentralEvent) {
        switch event {
        case .disconnected(let id):
            linkEnded(id)
            publish(event)
            publishEndReason(id)
        case .peripheralRemoved(let id):
            publish(event)
            waiters.wake(id)
        case .peripheralChanged(let status):
            publish(event)
            waiters.wake(status.id)
        default: publish(event)
        }
    }

    // MARK: - GATT tables

    /// Handles an attribute of a peripheral that was added or removed.
    private func tableChanged(_ id: PeripheralID, hasGrown: Bool) {
        let isTracked = tableChanges.record(id, hasGrown: hasGrown) { [weak self] deadline in
            self?.assumeIsolated { $0.tablePassed(deadline, of: id) }
        }
        if !isTracked { waiters.wake(id) }
    }

    private func tablePassed(_ deadline: TableChanges.Deadline, of id: PeripheralID) {
        switch deadline {
        case .quiet:
            publish(.servicesChanged(id))
            waiters.wake(id)
        case .hold: endSessions(of: tableChanges.endChange(of: id))
        }
    }

    // MARK: - Ends of links

    /// Publishes the reason of a link's end, a moment later: the reason, or the adapter's end, may still be on its way.
    private func publishEndReason(_ id: PeripheralID) {
        let owner = owner
        loop.schedule(after: Self.endReasonDelay) { [weak self] in
            self?.assumeIsolated { central in
                guard central.owner == owner, !central.isClosed else { return }
                central.publish(.linkEnded(id, central.tree.endReason(id)))
            }
        }
    }

    /// Ends everything that lives as long as the link.
    private func linkEnded(_ id: PeripheralID) {
        activePeripherals.remove(id)
        writers.close(of: id)
        endSessions(of: tableChanges.untrack(id) + subscriptions.removeAll(of: id))
        subscriptions.endAcquisitions(of: id)
        waiters.wake(id)
    }
}

extension DisconnectReason {
    /// The reasons of `Device1.Disconnected`.
    init(blueZ name: String) {
        self =
            switch name {
            case "org.bluez.Reason.Timeout": .timedOut
            case "org.bluez.Reason.Local": .local
            case "org.bluez.Reason.Remote": .remote
            case "org.bluez.Reason.Authentication": .authentication
            case "org.bluez.Reason.Suspend", "org.bluez.Reason.LocalSuspend": .suspended
            default: .unknown
            }
    }
}
