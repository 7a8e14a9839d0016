import GattherdLog
import GattherdSync

// One scan of the adapter for all scanners.
extension Central {
    /// Scans for peripherals until the loop over the result is left.
    ///
    /// - Parameters:
    ///   - services: The services to search for; a peripheral must list one of them or have its service
    ///     data. Any peripheral if empty.
    ///   - name: The required name; `nil` for any.
    ///   - namePrefix: The required beginning of the name; `nil` for any.
    ///   - minimumRSSI: The minimum signal strength in dBm; `nil` for any.
    ///   - allowDuplicates: True for each advertisement, false for one of each peripheral. Advertisements that are not
    ///     handled in time count as dropped: ``Scan/Iterator/droppedCount``.
    ///   - timeout: The time after which the loop ends with `timedOut`; `nil` for none.
    /// - Returns: The sequence of advertisements.
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

    /// True while any program on this machine scans with the used adapter.
    public var isScanning: Bool { adapter?.isDiscovering ?? false }

    /// Adds a scanner until the lease ends; it starts with the current advertisements.
    func addScanner(_ scanner: Scanner) -> Cancellable {
        let id = registry.withLock { registry -> UInt64? in
            guard !registry.isClosed else { return nil }
            let id = registry.makeID()
            let adapter = registry.platform.adapter(configuration.adapter)?.address
            registry.scanners.add(scanner, id: id, sightings: registry.peripherals.sightings(by: adapter))
            return id
        }
        guard let id else {
            scanner.mailbox.finish(unreadiness.during(.scan))
            return Cancellable {}
        }
        if !scanner.isInternal { log(.debug, "scan started", [LogField("scan", id)]) }
        if let obstacle { scanner.mailbox.finish(obstacle.during(.scan)) }
        updateDiscovery()
        let runTimeout = life.state == .new ? waitForRun(scanner.mailbox) : nil
        return Cancellable { [weak self, isInternal = scanner.isInternal] in
            runTimeout?.cancel()
            _ = self?.registry.withLock { $0.scanners.remove(id) }
            self?.updateDiscovery()
            if !isInternal { self?.log(.debug, "scan ended", [LogField("scan", id)]) }
        }
    }

    /// Fails the scan if the central does not start to run.
    private func waitForRun(_ scanner: Mailbox<Sighting>) -> Task<Void, Never> {
        Task {
            do throws(BluetoothError) { try await awaitRun() } catch { scanner.finish(error.during(.scan)) }
        }
    }

    /// The reason why a scan cannot start without a change by the user, if any.
    private var obstacle: BluetoothError? {
        switch state {
        case .unsupported, .unauthorized, .poweredOff: unreadiness
        case .unknown, .resetting, .poweredOn: nil
        }
    }

    // MARK: - The radio

    /// Starts and stops the adapter's scan as all scanners together require.
    func driveDiscovery() async {
        var active: DiscoveryRequest?
        for await request in discovery.watch() where request != active {
            if let active, request?.adapter != active.adapter { await stopDiscovery(active) }
            active = await startDiscovery(request)
            // A scan whose start failed may run nevertheless.
            if active == nil, let request { await stopDiscovery(request) }
        }
    }

    private func stopDiscovery(_ request: DiscoveryRequest) async {
        // A scan that cannot be stopped has stopped, or its adapter is gone.
        try? await backend.stopDiscovery(on: request.adapter)
    }

    /// The time in which a kernel may continue the scan of a bluetoothd that was killed: 10 s, and some more.
    private static let discoveryTimeout = Duration.seconds(15)
    /// The first and the longest pause between attempts to start a scan.
    private static let discoveryPauses = Duration.milliseconds(250)...Duration.seconds(2)

    /// Starts a scan; tries as long as a kernel may continue the scan of a bluetoothd that was killed, then fails all
    /// scanners.
    private func startDiscovery(_ request: DiscoveryRequest?) async -> DiscoveryRequest? {
        guard let request else { return nil }
        let deadline = ContinuousClock.now.advanced(by: Self.discoveryTimeout)
        var pause = Self.discoveryPauses.lowerBound
        while discovery.state == request, !Task.isCancelled {
            do throws(BluetoothError) {
                try await backend.startDiscovery(on: request.adapter, filter: request.filter)
                return request
            } catch {
                guard discovery.state == request, !Task.isCancelled else { return nil }
                guard error.isTransient, .now < deadline else {
                    fail(error.during(.scan))
                    return nil
                }
                try? await Task.sleep(for: pause)
                pause = min(pause * 2, Self.discoveryPauses.upperBound)
            }
        }
        return nil
    }

    private func fail(_ error: BluetoothError) {
        var scanners: [Scanner] = []
        update { scanners = $0.scanners.removeAll() }
        // A scanner that failed may scan again at once.
        for scanner in scanners { scanner.mailbox.finish(error) }
    }
}
