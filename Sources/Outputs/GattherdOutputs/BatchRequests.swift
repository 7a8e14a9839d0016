import GattherdMachines
import GattherdModel

/// The requests of a batch output to the journal: to load the cursor, to fetch entries, to save the cursor.
///
/// At most one request of each kind is pending. A failed one is repeated after a pause.
struct BatchRequests: Sendable {
    /// The maximum number of entries of one fetch, which bounds its bytes.
    private static let fetchLimit = 512

    private let options: BatchOptions
    /// The newest committed number; `nil` until known.
    private(set) var head: Int64?
    /// The time of the next load; `nil` while one is pending and after the last.
    private(set) var loadAt: Duration?
    private var fetchNotBefore = Duration.zero
    private(set) var isFetching = false
    /// True if entries may have been committed that ``head`` does not show yet.
    private(set) var needsLastFetch = false
    private var isLastFetch = false
    private var saves: CursorSaves

    init(_ options: BatchOptions) {
        self.options = options
        saves = CursorSaves(interval: options.saveInterval, count: options.saveCount, pause: options.journalPause)
    }

    var isSaving: Bool { !saves.isIdle }

    // MARK: - Answers

    mutating func headMoved(to seq: Int64) {
        guard seq >= 0 else { return }
        head = max(head ?? 0, seq)
    }

    mutating func cursorLoaded(_ seq: Int64) {
        saves.loaded(seq)
        loadAt = nil
    }

    /// Records the answer to a fetch; false if none was expected.
    ///
    /// After an answer without progress the next fetch waits.
    mutating func fetched(hasProgress: Bool, at now: Duration) -> Bool {
        guard isFetching else { return false }
        isFetching = false
        if !hasProgress { fetchNotBefore = now + options.journalPause }
        return true
    }

    mutating func saved(_ seq: Int64) {
        saves.saved(seq)
    }

    mutating func failed(_ operation: BatchMachine.JournalOperation, at now: Duration) {
        let retry = now + options.journalPause
        switch operation {
        case .load: loadAt = retry
        case .fetch: (isFetching, needsLastFetch, fetchNotBefore) = (false, needsLastFetch || isLastFetch, retry)
        case .save: saves.failed(at: now)
        case .rewind: break
        }
    }

    // MARK: - Requests

    mutating func startLoading(at now: Duration) { loadAt = now }
    mutating func stopLoading() { loadAt = nil }
    mutating func requireLastFetch() { needsLastFetch = true }

    mutating func load(at now: Duration) -> [BatchMachine.Effect] {
        guard let loadAt, now >= loadAt else { return [] }
        self.loadAt = nil
        return [.load]
    }

    /// Returns the earliest time of a fetch that is wanted at `time`; `nil` if there is nothing to fetch.
    func fetchTime(after seq: Int64, wantedAt time: Duration) -> Duration? {
        guard !isFetching, needsLastFetch || (head ?? 0) > seq else { return nil }
        return max(fetchNotBefore, time)
    }

    mutating func fetch(after seq: Int64, room: Int) -> [BatchMachine.Effect] {
        (isFetching, isLastFetch, needsLastFetch) = (true, needsLastFetch, false)
        return [.fetch(after: seq, limit: max(1, min(room, Self.fetchLimit)))]
    }

    /// The time at which `cursor` must be saved; `nil` if it is saved, or being saved.
    func saveTime(of cursor: Int64?) -> Duration? { saves.time(of: cursor) }

    mutating func save(_ cursor: Int64?, at now: Duration) -> [BatchMachine.Effect] {
        saves.start(cursor, at: now).map { [.save($0)] } ?? []
    }

    /// Saves the last cursor at once; a failed save is not repeated.
    mutating func saveLast(_ cursor: Int64?) -> [BatchMachine.Effect] {
        guard !saves.hasFailed else { return [] }
        return saves.startLast(cursor).map { [.save($0)] } ?? []
    }
}
