public import GattherdMachines
public import GattherdModel
import GattherdSync

/// The leases of this gateway's devices, for all threads: fences controls, selects publishers, and shows the bids.
///
/// Written by the lease loop. A lease ends here by itself, also if that loop hangs: its end is a time.
public final class LeaseBoard: Sendable {
    /// One device's lease.
    public struct Entry: Sendable {
        public var status: LeaseStatus
        /// The end of the lease of this gateway; `nil` if it is not the owner.
        public var until: ContinuousClock.Instant?
        /// True if another gateway has a lease that has not ended.
        public var isOwnedElsewhere: Bool

        public init(_ status: LeaseStatus, until: ContinuousClock.Instant?, isOwnedElsewhere: Bool) {
            (self.status, self.until, self.isOwnedElsewhere) = (status, until, isOwnedElsewhere)
        }
    }

    /// An advertisement of a device with a lease.
    public struct Sighting: Hashable, Sendable {
        public let address: String
        public let adapter: String
        /// The signal strength in dBm.
        public let rssi: Int

        public init(address: String, adapter: String, rssi: Int) {
            (self.address, self.adapter, self.rssi) = (address, adapter, rssi)
        }
    }

    private struct Shared: Sendable {
        var entries: [String: Entry] = [:]
        var publishers: [String: PublisherRecord] = [:]
        var transactions: [String: LeaseTransactions] = [:]
        var sightings: [Sighting] = []
        var problem: String?
        var tally = LeaseTally()
        /// The time of the centre's last answer.
        var answered: ContinuousClock.Instant?
    }

    /// The maximum number of advertisements between two passes of the lease loop.
    private static let maximumSightings = 4096

    private let shared = Locked(Shared())

    public init() {}

    // MARK: - Advertisements

    func record(_ sighting: Sighting) {
        shared.withLock { shared in
            if shared.sightings.count < Self.maximumSightings { shared.sightings.append(sighting) }
        }
    }

    /// Removes and returns the advertisements since the last call.
    public func drainSightings() -> [Sighting] {
        shared.withLock { shared in
            defer { shared.sightings.removeAll(keepingCapacity: true) }
            return shared.sightings
        }
    }

    // MARK: - Leases

    /// Replaces the leases of all devices.
    ///
    /// - Parameters:
    ///   - entries: The leases by device.
    ///   - problem: The reason why the centre does not answer, with the remedy; `nil` if it does.
    ///   - time: The wall clock, by which readings have their times.
    public func update(_ entries: [String: Entry], problem: String?, at time: Timestamp) {
        shared.withLock { shared in
            (shared.entries, shared.problem) = (entries, problem)
            shared.publishers = shared.publishers.filter { entries[$0.key] != nil }
            shared.transactions = shared.transactions.filter { entries[$0.key] != nil }
            for (device, entry) in entries {
                shared.publishers[device, default: PublisherRecord()].set(!entry.isOwnedElsewhere, at: time)
            }
        }
    }

    public func status(of device: String) -> LeaseStatus? { shared.withLock { $0.entries[device]?.status } }

    /// True if another gateway has a lease of the device.
    public func isOwnedElsewhere(_ device: String) -> Bool {
        shared.withLock { $0.entries[device]?.isOwnedElsewhere ?? false }
    }

    /// The reason why the centre does not answer, with the remedy; `nil` if it does.
    public var problem: String? { shared.withLock(\.problem) }

    /// True if this gateway publishes the advertisements that a device sent at that time.
    ///
    /// Without an owner every gateway does, so that nothing is lost.
    public func publishes(_ device: String, at time: Timestamp) -> Bool {
        shared.withLock { $0.publishers[device]?.publishes(at: time) ?? true }
    }

    // MARK: - Figures

    /// Records an answer of the centre, which has renewed the leases that were due.
    public func recordAnswer() { shared.withLock { $0.answered = .now } }

    /// Counts a lease that this gateway has acquired.
    public func recordClaim() { shared.withLock { $0.tally.claims += 1 } }

    /// Counts a device that this gateway has released or lost.
    public func recordHandover(_ cause: LeaseCause) { shared.withLock { $0.tally.handovers[cause, default: 0] += 1 } }

    /// The leases and the counts of their changes, for the metrics.
    public var summary: DaemonStatus.Fleet {
        shared.withLock { shared in
            let now = ContinuousClock.now
            var fleet = DaemonStatus.Fleet()
            fleet.held = shared.entries.values.count { $0.until.map { now < $0 } ?? false }
            fleet.claims = shared.tally.claims
            for cause in LeaseCause.allCases { fleet.handovers[cause.rawValue] = shared.tally.handovers[cause] ?? 0 }
            for cause in LeaseTally.Refusal.allCases {
                fleet.refusedControls[cause.rawValue] = shared.tally.refusals[cause] ?? 0
            }
            fleet.answerAge = shared.answered.map { Double((now - $0) / .milliseconds(1)) / 1000 }
            fleet.error = shared.problem
            return fleet
        }
    }

    // MARK: - Controls

    /// Returns the reason to refuse a control of a device that has a lease; `nil` if it may be written now.
    func refusal(of request: ControlRequest) -> ControlError? {
        if request.isLocal { return nil }
        return shared.withLock { shared -> ControlError? in
            let refusal = Self.refusal(of: request, shared)
            if let refusal { shared.tally.refuse(refusal) }
            return refusal
        }
    }

    private static func refusal(of request: ControlRequest, _ shared: Shared) -> ControlError? {
        guard let entry = shared.entries[request.device] else {
            return .notOwner(device: request.device, owner: nil)
        }
        guard let until = entry.until, ContinuousClock.now < until else {
            let owner = entry.isOwnedElsewhere ? entry.status.owner : nil
            return .notOwner(device: request.device, owner: owner)
        }
        guard let epoch = request.epoch, epoch != entry.status.epoch else { return nil }
        return .otherEpoch(present: entry.status.epoch)
    }

    /// Records a request with an epoch and a transaction; false if it was recorded before.
    func begin(_ request: ControlRequest) -> Bool {
        guard let key = LeaseTransactions.Key(request) else { return true }
        return shared.withLock { shared in
            let isNew = shared.transactions[request.device, default: LeaseTransactions()].insert(key)
            if !isNew { shared.tally.refuse(.repeated) }
            return isNew
        }
    }

    /// Removes a request that was not written, so that it may be sent again.
    func cancel(_ request: ControlRequest) {
        guard let key = LeaseTransactions.Key(request) else { return }
        shared.withLock { $0.transactions[request.device]?.remove(key) }
    }
}

/// Counts of claims, hand-overs and refused controls since the start.
private struct LeaseTally: Sendable {
    enum Refusal: String, CaseIterable {
        case notOwner = "not_owner"
        case otherEpoch = "other_epoch"
        case repeated
    }

    var claims: UInt64 = 0
    var handovers: [LeaseCause: UInt64] = [:]
    private(set) var refusals: [Refusal: UInt64] = [:]

    mutating func refuse(_ error: ControlError) {
        switch error {
        case .notOwner: refusals[.notOwner, default: 0] += 1
        case .otherEpoch: refusals[.otherEpoch, default: 0] += 1
        case .repeated: refusals[.repeated, default: 0] += 1
        default: break
        }
    }
}

/// The last transactions of a device's controls.
struct LeaseTransactions: Sendable {
    struct Key: Hashable, Sendable {
        let epoch: Int64
        let control: String
        let transaction: String

        /// Creates the key; `nil` without an epoch or a transaction, because such a request may be repeated.
        init?(_ request: ControlRequest) {
            guard let epoch = request.epoch, let transaction = request.transaction else { return nil }
            (self.epoch, control, self.transaction) = (epoch, request.control, transaction)
        }
    }

    /// The maximum number of transactions in memory; with the limit of a payload it bounds their size.
    private static let capacity = 64

    private var keys: [Key] = []

    /// Adds a transaction; false if it is known.
    mutating func insert(_ key: Key) -> Bool {
        guard !keys.contains(key) else { return false }
        if keys.count >= Self.capacity { keys.removeFirst() }
        keys.append(key)
        return true
    }

    mutating func remove(_ key: Key) { keys.removeAll { $0 == key } }
}

/// The times in which this gateway was the publisher of a device.
struct PublisherRecord: Sendable {
    private struct Change: Sendable {
        let time: Timestamp
        let isPublisher: Bool
    }

    private static let capacity = 64

    private var changes: [Change] = []

    mutating func set(_ isPublisher: Bool, at time: Timestamp) {
        // After the clock was set back, later changes would decide about readings of the future.
        changes.removeAll { $0.time > time }
        guard changes.last?.isPublisher != isPublisher else { return }
        if changes.count >= Self.capacity { changes.removeFirst() }
        changes.append(Change(time: time, isPublisher: isPublisher))
    }

    /// True before the first recorded change, because the publisher at that time is unknown.
    func publishes(at time: Timestamp) -> Bool {
        changes.last { $0.time <= time }?.isPublisher ?? true
    }
}
