import GattherdSync

// The platform's events.
extension Central {
    func handle(_ event: CentralEvent) {
        switch event {
        case .available: becomeAvailable()
        case .accessDenied(let detail): becomeUnavailable(detail, isRefused: true)
        case .unavailable(let detail): becomeUnavailable(detail, isRefused: registry.withLock { $0.isRefused })
        case .adapterChanged(let status): adapterChanged(status)
        case .adapterRemoved(let address): update { $0.adapters[address] = nil }
        case .peripheralChanged(let status): peripheralChanged(status)
        case .peripheralRemoved(let id): peripheralRemoved(id)
        case .disconnected: break  // the status that follows says which link it was
        case .linkEnded(let id, let reason): ended(id, reason)
        case .tableCut: break
        case .servicesChanged(let id): change(id) { $0.servicesChanged(Peripheral(id, of: self)) }
        case .subscriptionEnded(let token, let id): change(id) { $0.subscriptionEnded(token) }
        }
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
            let (state, wish) = registry.withLock { registry in
                change(&registry)
                return (registry.state(configuration.adapter), registry.discoveryWish(configuration.adapter))
            }
            stateBoard.set(state)
            discovery.set(wish)
        }
    }

    func updateDiscovery() {
        update { _ in }
    }

    // MARK: - The platform

    /// Handles bluetoothd's arrival; the events of its adapters follow at once, if there are any.
    private func becomeAvailable() {
        let session = registry.withLock { registry in
            registry.isRefused = false
            registry.forgetPeripherals()
            registry.discoverySession += 1
            return registry.discoverySession
        }
        inBackground {
            try? await Task.sleep(for: .milliseconds(100))
            self.update { registry in
                guard registry.discoverySession == session else { return }
                registry.isAvailable = true
            }
        }
    }

    private func becomeUnavailable(_ detail: String, isRefused: Bool) {
        let (links, newest) = registry.withLock { ($0.links.values.map(\.self), $0.newestLink) }
        update { registry in
            registry.isAvailable = false
            registry.discoverySession += 1
            registry.isRefused = isRefused
            registry.detail = detail
            registry.forgetPeripherals()
        }
        for link in links {
            link.drop(upTo: newest, self)
            ended(link, .daemonLost)
        }
    }

    private func adapterChanged(_ status: AdapterStatus) {
        update { registry in
            registry.isAvailable = true
            let before = registry.adapters.updateValue(status, forKey: status.address)
            if status.isPowered, before?.isPowered != true { registry.discoverySession += 1 }
        }
    }

    // MARK: - Peripherals

    private func peripheralChanged(_ status: PeripheralStatus) {
        let sighting = Sighting(status: status, time: .now)
        let (link, before, listeners) = registry.withLock { registry in
            let before = registry.peripherals.updateValue(status, forKey: status.id)
            registry.newestLink = max(registry.newestLink, status.link)
            let listeners = status.isSighting(after: before) ? hear(sighting, &registry) : []
            return (registry.links[status.id], before, listeners)
        }
        for mailbox in listeners { mailbox.push(sighting) }
        if before?.name != status.name { link?.names.send(status.name) }
        link?.follow(status, self)
    }

    /// Returns the scanners that admit a sighting.
    private func hear(_ sighting: Sighting, _ registry: inout CentralRegistry) -> [Mailbox<Sighting>] {
        let peripheral = sighting.status.id
        registry.lastSeen[peripheral] = sighting.time
        guard registry.adapter(configuration.adapter)?.address == peripheral.adapter else { return [] }
        return registry.scanners.keys.compactMap { id in
            registry.scanners[id]?.admits(sighting) == true ? registry.scanners[id]?.mailbox : nil
        }
    }

    private func peripheralRemoved(_ id: PeripheralID) {
        let (before, link) = registry.withLock { registry in
            for scanner in registry.scanners.keys { registry.scanners[scanner]?.forget(id) }
            let before = registry.peripherals.removeValue(forKey: id)
            registry.lastSeen[id] = nil
            let link = registry.links[id]
            if link?.isForgettable == true { registry.links[id] = nil }
            return (before, link)
        }
        guard let before else { return }
        link?.drop(upTo: before.link, self)
    }

    private func ended(_ id: PeripheralID, _ reason: DisconnectReason) {
        guard let link = link(id) else { return }
        ended(link, reason)
    }
}

extension PeripheralStatus {
    /// True if a scan received the peripheral between the two statuses.
    fileprivate func isSighting(after before: PeripheralStatus?) -> Bool {
        guard let before, rssi != nil else { return rssi != nil }
        return heard != before.heard || before.rssi == nil
    }
}
