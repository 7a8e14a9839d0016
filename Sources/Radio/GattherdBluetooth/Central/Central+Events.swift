import GattherdLog
import GattherdSync

// The platform's events.
extension Central {
    func handle(_ event: CentralEvent) {
        switch event {
        case .available: becomeAvailable()
        case .accessDenied(let detail): becomeUnavailable(detail, isRefused: true)
        case .unavailable(let detail): becomeUnavailable(detail, isRefused: registry.withLock { $0.platform.isRefused })
        case .adapterChanged(let status): adapterChanged(status)
        case .adapterRemoved(let address): update { $0.platform.removeAdapter(address) }
        case .peripheralChanged(let status): peripheralChanged(status)
        case .peripheralRemoved(let id): peripheralRemoved(id)
        case .disconnected: break  // the status that follows says which link it was
        case .linkEnded(let id, let reason): ended(id, reason)
        case .tableCut(let id, let kept, let ignored): warn(ofTableCut: id, kept, ignored)
        case .servicesChanged(let id): change(id) { $0.servicesChanged(Peripheral(id, of: self)) }
        case .subscriptionEnded(let token, let id): change(id) { $0.subscriptionEnded(token) }
        }
    }

    private func warn(ofTableCut id: PeripheralID, _ kept: Int, _ ignored: Int) {
        let fields = [LogField("peripheral", id.address), LogField("kept", kept), LogField("ignored", ignored)]
        log(.warning, "the peripheral has too many attributes: some are missing", fields)
    }

    /// Handles a change of attributes, then subscribes for lasting listeners that lost their subscription.
    private func change(_ id: PeripheralID, _ handle: (Link) -> Void) {
        guard let link = link(id) else { return }
        handle(link)
        joinLasting(link)
    }

    /// Changes the registry, then updates its observers in the order of the changes.
    func update(_ change: (inout CentralRegistry) -> Void) {
        telling.withLock { _ in
            let (state, powered, request) = registry.withLock { registry in
                change(&registry)
                let choice = configuration.adapter
                return (registry.state(choice), registry.poweredAdapters, registry.discoveryRequest(choice))
            }
            stateBoard.set(state)
            poweredAdapters.set(powered)
            discovery.set(request)
        }
    }

    func updateDiscovery() {
        update { _ in }
    }

    // MARK: - The platform

    /// Handles bluetoothd's arrival; the events of its adapters follow at once, if there are any.
    private func becomeAvailable() {
        let session = registry.withLock { registry in
            registry.forgetPeripherals()
            return registry.platform.arrive()
        }
        statusUpdates.send(nil)
        inBackground {
            try? await Task.sleep(for: self.waits.adapters)
            self.update { $0.platform.confirm(session) }
        }
    }

    private func becomeUnavailable(_ detail: String, isRefused: Bool) {
        let (links, newest) = registry.withLock { ($0.links.values.map(\.self), $0.peripherals.newestLink) }
        update { registry in
            registry.platform.leave(detail, isRefused: isRefused)
            registry.forgetPeripherals()
        }
        statusUpdates.send(nil)
        for link in links {
            link.drop(upTo: newest, self)
            ended(link, .daemonLost)
        }
    }

    private func adapterChanged(_ status: AdapterStatus) {
        update { $0.platform.update(status) }
        // Peripherals are announced before their adapters: scans that began earlier have missed them.
        let missed = registry.withLock { registry -> [(Mailbox<Sighting>, Sighting)] in
            let adapter = registry.platform.adapter(configuration.adapter)?.address
            return registry.peripherals.sightings(by: adapter).flatMap { sighting in
                registry.scanners.admit(sighting, isNew: false).map { ($0, sighting) }
            }
        }
        for (mailbox, sighting) in missed { mailbox.push(sighting) }
    }

    // MARK: - Peripherals

    private func peripheralChanged(_ status: PeripheralStatus) {
        let now = Sighting(status: status, time: .now)
        let (link, before, sighting, listeners) = registry.withLock { registry in
            let (before, isNew) = registry.peripherals.update(now)
            let sighting = Sighting(status: status, time: registry.peripherals.lastSeen(status.id) ?? now.time)
            let isOurs = registry.platform.adapter(configuration.adapter)?.address == status.id.adapter
            let isOffered = isOurs && (isNew || status.hasNewNameOrServices(since: before))
            let missed = status.missedAdvertisements(since: before)
            let listeners = isOffered ? registry.scanners.admit(sighting, isNew: isNew, missed: missed) : []
            return (registry.links[status.id], before, sighting, listeners)
        }
        for mailbox in listeners { mailbox.push(sighting) }
        if before?.name != status.name { link?.names.send(status.name) }
        if status.hasNewNameBondOrStrength(since: before) { statusUpdates.send(status.id) }
        link?.follow(status, self)
    }

    private func peripheralRemoved(_ id: PeripheralID) {
        let (before, link) = registry.withLock { registry in
            registry.scanners.forget(id)
            return (registry.peripherals.remove(id), registry.linkOfRemoved(id))
        }
        guard let before else { return }
        statusUpdates.send(id)
        link?.drop(upTo: before.link, self)
    }

    private func ended(_ id: PeripheralID, _ reason: DisconnectReason) {
        guard let link = link(id) else { return }
        ended(link, reason)
    }
}
