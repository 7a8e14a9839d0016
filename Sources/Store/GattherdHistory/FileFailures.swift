import GattherdModel

/// The current fault of the file: when the file is tried again, and when readings are delivered without it.
struct FileFailures {
    typealias Instant = ContinuousClock.Instant

    /// The numbers of readings and rejects that were not stored during a fault.
    struct Unstored: Equatable {
        var readings = 0
        var rejects = 0
    }

    private struct Failure {
        var fault: StoreFault
        let since: Instant
        /// The time before which the disk is not accessed.
        var nextTry: Instant
        /// True if readings are delivered from memory.
        var isDelivering = false
        var unstored = Unstored()
        var isDamaged = false
    }

    private let maySkip: Bool
    private let timeout: Duration
    private let pause: Duration
    private var current: Failure?
    private var damages = DamageCount()

    init(_ options: HistoryOptions) {
        maySkip = !options.consumers.isEmpty && options.whenFull == .deliver
        timeout = options.timeout
        pause = options.pause
    }

    /// The last fault; `nil` while the file can be used.
    var fault: StoreFault? { current?.fault }

    /// True if damage was found: the file must be reopened even if it can be written.
    var isDamaged: Bool { current?.isDamaged == true }

    /// True if the file must be replaced although it passes its check, because damage was found in it repeatedly.
    var isReplacementDue: Bool { isDamaged && damages.isRepeated }

    /// Records a fault; returns true if it is the first since the file could be used.
    mutating func record(_ fault: StoreFault, at now: Instant) -> Bool {
        let isFirst = current == nil
        var failure = current ?? Failure(fault: fault, since: now, nextTry: now)
        failure.fault = fault
        if fault.kind == .damaged, !failure.isDamaged {
            failure.isDamaged = true
            damages.add(at: now)
        }
        current = failure
        return isFirst
    }

    /// True if a reopening may help: after an I/O error the state of the connection is unreliable.
    func isReopeningDue(isOpen: Bool) -> Bool {
        guard let fault else { return false }
        return !isOpen || fault.kind == .damaged || fault.kind == .disk
    }

    /// Records that a batch could not be written.
    mutating func postponeWriting(at now: Instant) {
        let next = now.advanced(by: pause)
        current?.nextTry = next
    }

    /// True if readings are delivered from memory without trying to write them.
    func skipsFile(at now: @autoclosure () -> Instant) -> Bool {
        guard let current, current.isDelivering else { return false }
        return now() < current.nextTry
    }

    /// True if readings that cannot be written may be delivered from memory.
    func mayDeliverUnstored(at now: Instant) -> Bool {
        guard let current, maySkip else { return false }
        return now - current.since >= timeout
    }

    /// Counts readings delivered from memory; returns true if they are the first of this fault.
    mutating func recordUnstored(readings: Int, rejects: Int) -> Bool {
        guard var failure = current else { return false }
        let isFirst = !failure.isDelivering
        failure.isDelivering = true
        failure.unstored.readings += readings
        failure.unstored.rejects += rejects
        current = failure
        return isFirst
    }

    /// Ends the fault; returns `nil` if there was none.
    mutating func recover() -> Unstored? {
        let unstored = current?.unstored
        current = nil
        return unstored
    }

    /// Records that the damaged file was moved aside.
    mutating func didReplaceFile() {
        damages = DamageCount()
    }
}

/// Counts findings of damage, because the check at opening does not detect all damage.
struct DamageCount {
    /// The time without damage after which the count restarts.
    private static let memory = Duration.seconds(3600)

    private var count = 0
    private var last: ContinuousClock.Instant?

    mutating func add(at now: ContinuousClock.Instant) {
        if let last, now - last >= Self.memory { count = 0 }
        count += 1
        last = now
    }

    /// True if reopening the file would not help.
    var isRepeated: Bool { count > 1 }
}
