/// The advertisements of a scan.
///
/// Each loop is a scan of its own, and all share the adapter's scan.
///
/// The scan starts with the loop and ends when the loop is left or its task is cancelled. It resumes by itself after a
/// loss of bluetoothd or the adapter. The scan buffers 1024 advertisements; slow consumers miss the oldest. On a busy
/// machine an advertisement may replace the peripheral's one before. ``Iterator/droppedCount`` counts both.
public struct Scan: AsyncSequence, Sendable {
    public typealias Element = Advertisement
    /// The errors are ``BluetoothError``s.
    public typealias Failure = any Error

    let central: Central
    let filter: ScanFilter
    let allowsDuplicates: Bool
    let timeout: Duration?
    /// True for a scan of the library itself, which is not restored.
    var isInternal = false

    public func makeAsyncIterator() -> Iterator {
        let mailbox = Mailbox<Sighting>(.bufferingNewest(1024))
        let lease = central.addScanner(Scanner(filter, allowsDuplicates, mailbox, isInternal: isInternal))
        return Iterator(
            central: central,
            mailbox: mailbox,
            lease: lease,
            deadline: timeout.map { ContinuousClock.now.advanced(by: $0.settable) }
        )
    }

    public struct Iterator: AsyncIteratorProtocol, Sendable {
        public typealias Failure = any Error

        fileprivate let central: Central
        fileprivate let mailbox: Mailbox<Sighting>
        fileprivate let lease: Cancellable
        fileprivate let deadline: ContinuousClock.Instant?

        /// The number of advertisements dropped because they were not handled or consumed in time.
        public var droppedCount: UInt64 { mailbox.droppedCount }

        /// The next advertisement; `nil` if the task is cancelled or the central closed.
        ///
        /// - Throws: `timedOut` with ``BluetoothError/Operation/scan`` when the scan's time is up; the adapter's error
        ///   if scanning is impossible.
        public mutating func next() async throws -> Advertisement? {
            try await nextAdvertisement()
        }

        public mutating func next(isolation: isolated (any Actor)?) async throws -> Advertisement? {
            try await nextAdvertisement()
        }

        /// Ends the scan after its buffered advertisements.
        func stop() {
            mailbox.finish()
            lease.end()
        }

        func nextAdvertisement() async throws(BluetoothError) -> Advertisement? {
            while let sighting = try await nextSighting() {
                if let advertisement = Advertisement(sighting, central) { return advertisement }
            }
            return nil
        }

        private func nextSighting() async throws(BluetoothError) -> Sighting? {
            guard let deadline else { return try await mailbox.next() }
            return try await withDeadline(deadline, BluetoothError(.timedOut, "the scan's time is up").during(.scan)) {
                [mailbox] () throws(BluetoothError) in try await mailbox.next()
            }
        }
    }
}

extension Scan {
    /// Returns the first advertisement and ends the scan.
    ///
    ///     let strap = try await central.scan(services: [0x180D], timeout: .seconds(10)).first().peripheral
    ///
    /// - Throws: As the loop; `cancelled` with the task.
    public func first() async throws -> Advertisement {
        guard let advertisement = try await makeAsyncIterator().nextAdvertisement() else {
            throw BluetoothError(.cancelled, "cancelled").during(.scan)
        }
        return advertisement
    }
}

/// The status of a peripheral with the time of its advertisement.
struct Sighting: Sendable {
    let status: PeripheralStatus
    let time: ContinuousClock.Instant
}

/// One consumer of the adapter's scan.
struct Scanner: Sendable {
    let filter: ScanFilter
    let allowsDuplicates: Bool
    let mailbox: Mailbox<Sighting>
    let isInternal: Bool
    private var seen: Set<PeripheralID> = []

    init(_ filter: ScanFilter, _ allowsDuplicates: Bool, _ mailbox: Mailbox<Sighting>, isInternal: Bool) {
        self.isInternal = isInternal
        self.filter = filter
        self.allowsDuplicates = allowsDuplicates
        self.mailbox = mailbox
    }

    /// Returns true if the scanner admits `sighting`, and records it as seen.
    ///
    /// One that is no new advertisement is admitted only as the peripheral's first.
    mutating func admits(_ sighting: Sighting, isNew: Bool = true) -> Bool {
        let status = sighting.status
        return filter.admits(status) && (seen.insert(status.id).inserted || allowsDuplicates && isNew)
    }

    /// Removes a peripheral, so that its next advertisement is new.
    mutating func forget(_ id: PeripheralID) {
        seen.remove(id)
    }

    /// Removes all peripherals.
    mutating func forgetAll() {
        seen = []
    }
}
