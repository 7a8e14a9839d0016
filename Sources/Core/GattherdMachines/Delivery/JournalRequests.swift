import GattherdModel

/// The delivery's requests to the journal: to load the cursor, to fetch readings, to save the resume point.
///
/// At most one request of each kind is pending. A failed one is repeated after a pause.
struct JournalRequests: Sendable {
    /// The number of readings fetched at once.
    private static let fetchLimit = 256
    /// The number of unpublished readings below which more are fetched.
    private static let lowWater = 128
    /// The maximum number of readings kept after one that is held back.
    private static let longestSpan = 4096

    private let options: DeliveryMachine.Options
    /// The newest committed `seq`; `nil` until the journal has reported one.
    private(set) var head: Int64?
    /// The first reported head; entries up to it may be of an earlier run.
    private var firstHead: Int64?
    private var saves: CursorSaves
    /// The time of the next load; `nil` while one is pending and after the last.
    private var loadAt: Duration?
    private var fetchAt = Duration.zero
    private var isFetching = false

    init(options: DeliveryMachine.Options) {
        self.options = options
        saves = CursorSaves(interval: options.saveInterval, count: options.saveCount, pause: options.journalPause)
    }

    // MARK: - Reports of the journal

    /// Records a new head and returns the number of entries committed since the last one.
    ///
    /// The first head is the existing journal (0: empty).
    mutating func headMoved(to seq: Int64) -> Int {
        let before = head ?? seq
        if firstHead == nil { firstHead = seq }
        head = max(before, seq)
        return seq > before ? Int(clamping: seq - before) : 0
    }

    /// True for an entry that the journal had when its first head was reported.
    func mayBeFromEarlierRun(_ seq: Int64) -> Bool { firstHead.map { seq <= $0 } ?? false }

    mutating func cursorLoaded(_ seq: Int64) {
        saves.loaded(seq)
        loadAt = nil
    }

    /// Records the answer to a fetch; returns false if none was expected.
    mutating func fetched() -> Bool {
        defer { isFetching = false }
        return isFetching
    }

    mutating func saved(_ seq: Int64) {
        saves.saved(seq)
    }

    mutating func failed(_ operation: DeliveryMachine.JournalOperation, at now: Duration) {
        switch operation {
        case .load: loadAt = now + options.journalPause
        case .fetch: (isFetching, fetchAt) = (false, now + options.journalPause)
        case .save: saves.failed(at: now)
        }
    }

    // MARK: - Requests

    mutating func startLoading(at now: Duration) { loadAt = now }
    mutating func stopLoading() { loadAt = nil }

    mutating func load(at now: Duration) -> [DeliveryMachine.Effect] {
        guard let loadAt, now >= loadAt else { return [] }
        self.loadAt = nil
        return [.loadCursor]
    }

    mutating func fetch(
        into window: DeliveryWindow?,
        isHolding: Bool = false,
        at now: Duration
    ) -> [DeliveryMachine.Effect] {
        guard let after = nextFetch(into: window, isHolding), now >= fetchAt else { return [] }
        isFetching = true
        return [.fetch(after: after, limit: Self.fetchLimit)]
    }

    /// Saves a resume point that is due.
    mutating func save(_ resumePoint: Int64?, at now: Duration) -> [DeliveryMachine.Effect] {
        saves.start(resumePoint, at: now).map { [.save($0)] } ?? []
    }

    /// Saves the last resume point at once; `nil` if it is saved.
    mutating func saveLast(_ resumePoint: Int64?) -> [DeliveryMachine.Effect]? {
        if saves.isSaved(resumePoint) { return nil }
        return saves.startLast(resumePoint).map { [.save($0)] } ?? []
    }

    // MARK: - Time

    /// The time of the next load.
    var loadDeadline: Duration? { loadAt }

    func fetchDeadline(into window: DeliveryWindow?, isHolding: Bool = false) -> Duration? {
        nextFetch(into: window, isHolding).map { _ in fetchAt }
    }

    func saveDeadline(of window: DeliveryWindow?) -> Duration? {
        guard let window else { return nil }
        guard saves.isSaved(window.resumePoint) else { return saves.time(of: window.resumePoint) }
        guard saves.isIdle else { return nil }
        return window.resumePointDueSince.map { max(saves.intervalEnd, $0 + options.restartReplay) }
    }

    /// The `seq` after which to fetch; `nil` if the window needs no readings or the journal has no more.
    ///
    /// While one stream is held back, readings of other streams are needed, and may be much later in the journal.
    private func nextFetch(into window: DeliveryWindow?, _ isHolding: Bool) -> Int64? {
        guard !isFetching, let window, let head else { return nil }
        guard isHolding || window.pressing < Self.lowWater else { return nil }
        guard !window.isGatheringFull, window.span < Self.longestSpan else { return nil }
        return head > window.fetched ? window.fetched : nil
    }
}
