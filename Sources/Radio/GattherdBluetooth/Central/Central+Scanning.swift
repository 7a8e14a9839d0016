import GattherdSync

// One scan of the radio for all who want to hear.
extension Central {
    /// Scans for peripherals, connecting or not, until the loop over it is left.
    ///
    /// - Parameters:
    ///   - services: Only those that offer one of these; all when empty.
    ///   - name: Only those that call themselves so.
    ///   - namePrefix: Only those whose name begins so.
    ///   - minimumRSSI: Only those that are received at least so strongly, in dBm.
    ///   - allowDuplicates: Each advertisement, instead of each peripheral once.
    ///   - timeout: When the loop ends with `timedOut`; `nil` for never.
    /// - Returns: What to loop over.
    public func scan(
        services: [BluetoothUUID] = [],
        name: String? = nil,
        namePrefix: String? = nil,
        minimumRSSI: Int? = nil,
        allowDuplicates: Bool = false,
        timeout: Duration? = nil
    ) -> Scan {
        var filter = ScanFilter()
        filter.services = services
        filter.name = name
        filter.namePrefix = namePrefix
        filter.minimumRSSI = minimumRSSI
        return scan(filter, allowDuplicates: allowDuplicates, timeout: timeout)
    }

    /// Scans for the peripherals that `filter` admits.
    public func scan(_ filter: ScanFilter, allowDuplicates: Bool = false, timeout: Duration? = nil) -> Scan {
        Scan(central: self, filter: filter, allowsDuplicates: allowDuplicates, timeout: timeout)
    }

    /// True while anybody on this machine scans with the adapter that is used.
    public var isScanning: Bool { adapter?.isDiscovering ?? false }

    /// Takes part in the radio's scan until the lease ends; begins with what it hears already.
    func addScanner(_ scanner: Scanner) -> Cancellable {
        let id = registry.withLock { registry -> UInt64? in
            guard !registry.isClosed else { return nil }
            let id = registry.makeID()
            registry.scanners[id] = scanner
            let adapter = registry.adapter(configuration.adapter)?.address
            for (known, time) in registry.lastSeen where known.adapter == adapter {
                guard let status = registry.peripherals[known] else { continue }
                let sighting = Sighting(status: status, time: time)
                if registry.scanners[id]?.admits(sighting) == true { scanner.mailbox.push(sighting) }
            }
            return id
        }
        guard let id else {
            scanner.mailbox.finish(unreadiness.during(.scan))
            return Cancellable {}
        }
        if let obstacle { scanner.mailbox.finish(obstacle.during(.scan)) }
        updateDiscovery()
        let patience = life.state == .new ? waitForRun(scanner.mailbox) : nil
        return Cancellable { [weak self] in
            patience?.cancel()
            _ = self?.registry.withLock { $0.scanners.removeValue(forKey: id) }
            self?.updateDiscovery()
        }
    }

    /// Tells who scans when nobody runs the central, so that there is nothing to wait for.
    private func waitForRun(_ scanner: Mailbox<Sighting>) -> Task<Void, Never> {
        Task {
            do throws(BluetoothError) { try await awaitRun() } catch { scanner.finish(error.during(.scan)) }
        }
    }

    /// What will not go away by itself.
    private var obstacle: BluetoothError? {
        switch state {
        case .unsupported, .unauthorized, .poweredOff: unreadiness
        case .unknown, .resetting, .poweredOn: nil
        }
    }

    // MARK: - The radio

    /// Lets the radio do what all consumers together want.
    func driveDiscovery() async {
        var active: DiscoveryRequest?
        for await wish in discovery.watch() where wish != active {
            if let active, wish?.adapter != active.adapter { await stopDiscovery(active) }
            active = await startDiscovery(wish)
            // What was not said to have begun may go on all the same.
            if active == nil, let wish { await stopDiscovery(wish) }
        }
    }

    private func stopDiscovery(_ wish: DiscoveryRequest) async {
        // The radio that cannot be stopped has stopped, or is gone.
        try? await backend.stopDiscovery(on: wish.adapter)
    }

    /// Tries for as long as a kernel may need that goes on with the scan of a bluetoothd that was killed; then
    /// everybody who waits is told.
    private func startDiscovery(_ wish: DiscoveryRequest?) async -> DiscoveryRequest? {
        guard let wish else { return nil }
        let deadline = ContinuousClock.now.advanced(by: .seconds(15))
        var pause = Duration.milliseconds(250)
        while discovery.state == wish, !Task.isCancelled {
            do throws(BluetoothError) {
                try await backend.startDiscovery(on: wish.adapter, filter: wish.filter)
                return wish
            } catch {
                guard discovery.state == wish, !Task.isCancelled else { return nil }
                guard error.isTransient, .now < deadline else {
                    fail(error.during(.scan))
                    return nil
                }
                try? await Task.sleep(for: pause)
                pause = min(pause * 2, .seconds(2))
            }
        }
        return nil
    }

    private func fail(_ error: BluetoothError) {
        var scanners: [Scanner] = []
        update { scanners = $0.takeScanners() }
        // Who is told may scan again at once.
        for scanner in scanners { scanner.mailbox.finish(error) }
    }
}
