public import Observation

/// The observable model of a central for a user interface.
///
/// The model follows the central while ``follow()`` runs, for example in the task of the view.
@MainActor @Observable public final class CentralModel {
    public let central: Central
    public private(set) var state: CentralState
    /// The peripherals of the last scan, in the order of their first advertisements; the 1000 heard last.
    public private(set) var discoveries: [Advertisement] = []
    /// True while ``scan(_:timeout:)`` runs.
    public private(set) var isScanning = false
    /// The reason why the last scan ended; `nil` if it was stopped.
    public private(set) var scanError: BluetoothError?
    // A view that asks for a model does not depend on the models of other peripherals.
    @ObservationIgnored private var models = PeripheralModels()
    /// The place of each peripheral in ``discoveries``.
    @ObservationIgnored private var places: [PeripheralID: Int] = [:]
    @ObservationIgnored private var currentScan: Scan.Iterator?
    /// The number of scans so far, of which only the last one is recorded.
    @ObservationIgnored private var scanCount = 0

    public init(_ central: Central) {
        self.central = central
        state = central.state
    }

    /// Returns the model of a peripheral; always the same object while it is held.
    ///
    /// The central's model holds those of peripherals that are connected or reconnecting, and of the 1000 peripherals
    /// that were asked for last. Hold any other one that must not lose its ``PeripheralModel/values``.
    public func model(of peripheral: Peripheral) -> PeripheralModel { models.model(of: peripheral) }

    /// Follows the central, and the peripherals that have a model, until the task is cancelled.
    public func follow() async {
        let changes = central.connectionStateChanges()
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.followState() }
            group.addTask { await self.follow(changes) }
            group.addTask { await self.followStatuses() }
        }
    }

    private func followState() async {
        for await state in central.states { self.state = state }
    }

    private func follow(_ changes: BufferedSequence<ConnectionStateChange>) async {
        for await change in changes { model(of: change.peripheral).apply(change) }
    }

    private func followStatuses() async {
        let changes = central.statusChanges()
        var dropped: UInt64 = 0
        for await id in changes {
            let count = changes.droppedCount
            if let id, count == dropped {
                models[id]?.updateStatus()
            } else {
                for model in models.all { model.updateStatus() }
            }
            dropped = count
        }
    }

    /// Scans until the task is cancelled, the time is up, or another scan of this model begins.
    public func scan(_ filter: ScanFilter = ScanFilter(), timeout: Duration? = nil) async {
        scanCount += 1
        let number = scanCount
        currentScan?.stop()
        let scan = central.scan(filter, allowDuplicates: true, timeout: timeout).makeAsyncIterator()
        (discoveries, places, isScanning, scanError, currentScan) = ([], [:], true, nil, scan)
        let error = await record(scan, as: number)
        guard number == scanCount else { return }
        (isScanning, scanError, currentScan) = (false, error, nil)
    }

    /// Records the advertisements of a scan until it ends; returns the reason, or `nil` if it was stopped.
    private func record(_ scan: Scan.Iterator, as number: Int) async -> BluetoothError? {
        do throws(BluetoothError) {
            while let advertisement = try await scan.nextAdvertisement(), number == scanCount {
                record(advertisement)
            }
            return nil
        } catch {
            return error.kind == .timedOut ? nil : error
        }
    }

    private func record(_ advertisement: Advertisement) {
        let id = advertisement.peripheral.id
        if let place = places[id] {
            discoveries[place] = advertisement
        } else {
            if discoveries.count >= Self.maximumDiscoveries { removeOldest() }
            places[id] = discoveries.count
            discoveries.append(advertisement)
        }
        models[id]?.update()
    }

    /// The maximum number of discoveries; the radio may hear any number of addresses.
    private static let maximumDiscoveries = 1000

    /// Removes the peripheral that has been silent for the longest time.
    private func removeOldest() {
        guard let oldest = discoveries.indices.min(by: { discoveries[$0].time < discoveries[$1].time }) else { return }
        discoveries.remove(at: oldest)
        places = [:]
        for (place, discovery) in discoveries.enumerated() { places[discovery.peripheral.id] = place }
    }
}
