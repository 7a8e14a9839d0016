import GattherdBluetooth
import GattherdDBus
import GattherdModel
import GattherdSync

extension BlueZCentral {
    /// Takes one signal of the bus; `arrived` is called when it says that bluetoothd is there.
    func receive(_ signal: borrowing DBusSignal, arrived: () -> Void) {
        if let owner, signal.isFrom(owner) {
            wasHeard = true
            let follows = order.record(signal.serial)
            guard isLoaded, !takeValue(signal, follows: follows), let arguments = try? signal.arguments() else {
                return
            }
            noteEnd(signal, arguments)
            apply(changes(signal, arguments))
        } else if signal.isSignal("org.freedesktop.DBus", "NameOwnerChanged"), signal.isFrom("org.freedesktop.DBus") {
            guard let names = try? signal.arguments().compactMap(\.string), names.count == 3,
                names[0] == BlueZ.service
            else { return }
            setOwner(names[2].isEmpty ? nil : names[2], arrived: arrived)
        }
    }

    /// Takes the value of a characteristic; true when the signal says nothing else.
    ///
    /// The way of every notification: nothing is decoded, copied or allocated here.
    private func takeValue(_ signal: borrowing DBusSignal, follows: Bool) -> Bool {
        guard let change = signal.changedOctets("Value", of: BlueZ.characteristic) else {
            // It may have waited in bluetoothd until the answer after the run was sent.
            if follows { sifting?.completeRun() } else { endRun(isAnswered: true) }
            return false
        }
        if let channel = channels.value(for: signal) {
            pass(change.octets, to: channel, follows: follows)
        } else {
            endRun(isAnswered: !follows)
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

    /// BlueZ says why a link has ended, from 5.83 on; right after it says that it has.
    private func noteEnd(_ signal: borrowing DBusSignal, _ arguments: [DBusValue]) {
        guard signal.isSignal(BlueZ.device, "Disconnected"), let name = arguments.first?.string else { return }
        tree.noteEnd(signal.path, DisconnectReason(blueZ: name))
    }

    /// Passes on what the tree made of a signal, and lets everybody look who waits for such news.
    func apply(_ changes: [ObjectTree.Change]) {
        for change in changes {
            switch change {
            case .event(let event): apply(event)
            case .monitorable: arrivals?.yield()
            case .adapterIgnored(let adapter): warn(ofTwin: adapter)
            case .advertised(let advertisement): watch?.sink.receive(advertisement, at: .now)
            case .tableGrew(let id): tableChanged(id, hasGrown: true)
            case .tableShrank(let id): tableChanged(id, hasGrown: false)
            case .characteristicRemoved(let path):
                tableChanges.removeHeld(path)?.close()
                endChannel(path)
                writers.removeValue(forKey: path)?.socket?.close()
            // Of a session that we end bluetoothd says so before it answers.
            case .notifyingEnded(let path) where stopping[path] == nil:
                if channels[path]?.takesSignals == true { endChannel(path) }
            case .notifyingEnded: break
            }
        }
    }

    func warn(ofTwin adapter: ObjectTree.Adapter) {
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
            tell(event)
            explain(id)
        case .peripheralRemoved(let id):
            tell(event)
            wakeWaiters(of: id)
        case .peripheralChanged(let status):
            tell(event)
            wakeWaiters(of: status.id)
        default: tell(event)
        }
    }

    /// Tells why the link has ended, once what explains it is here: the reason itself, or the end of the adapter.
    private func explain(_ id: PeripheralID) {
        let owner = owner
        loop.schedule(after: .milliseconds(50)) { [weak self] in
            self?.assumeIsolated { central in
                guard central.owner == owner, !central.isClosed else { return }
                central.tell(.linkEnded(id, central.tree.endReason(id)))
            }
        }
    }

    /// Subscriptions live as long as the link.
    private func linkEnded(_ id: PeripheralID) {
        engaged.remove(id)
        closeWriters(of: id)
        endSessions(of: tableChanges.untrack(id))
        for (token, path) in paths {
            guard let channel = channels[path], channel.peripheral == id else { continue }
            if channel.takesSignals { endSession(path) }
            channel.close()
            channels[path] = nil
            paths[token] = nil
        }
        acquisitions = acquisitions.filter { $0.value != id }
        wakeWaiters(of: id)
    }

    /// An attribute of a peripheral was added or removed.
    private func tableChanged(_ id: PeripheralID, hasGrown: Bool) {
        let isTracked = tableChanges.record(id, hasGrown: hasGrown) { [weak self] deadline in
            self?.assumeIsolated { $0.tablePassed(deadline, of: id) }
        }
        if !isTracked { wakeWaiters(of: id) }
    }

    private func tablePassed(_ deadline: TableChanges.Deadline, of id: PeripheralID) {
        switch deadline {
        case .quiet:
            tell(.servicesChanged(id))
            wakeWaiters(of: id)
        case .hold: endSessions(of: tableChanges.endChange(of: id))
        }
    }

    /// Closes channels without subscribers, in bluetoothd too.
    private func endSessions(of channels: [NotificationChannel]) {
        for channel in channels {
            channel.close()
            if channel.takesSignals { endSession(channel.path) }
        }
    }

    /// Else BlueZ would enable the notifications by itself as soon as the peripheral is connected again, and what came
    /// before our next subscription would have nobody to take it.
    func endSession(_ path: String) {
        guard let bus, let owner else { return }
        try? bus.post(owner, path, BlueZ.characteristic, "StopNotify")
    }
}

extension DisconnectReason {
    /// What the names of `Device1.Disconnected` mean.
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
