import GattherdMachines

/// An edge node's requests to the journal, and the pings that confirm values: which are due, and when.
///
/// At most one request of each kind is pending. After a failure, and after an answer without entries, there is a pause.
struct JournalWork: Sendable {
    /// The time of a ping within which the broker could have answered for twice as many values.
    private static let fastAnswer = Duration.seconds(5)

    private let options: SparkplugMachine.Options
    private(set) var progress: JournalProgress
    private var isLoading = false
    /// The number after which entries are being fetched, if any.
    private var fetchedAfter: Int64?
    private var saves: CursorSaves
    /// The earliest times of the next request and ping.
    private var requestAt = Duration.zero
    private var pingAt = Duration.zero
    /// The time of the last ping.
    private var pingedAt = Duration.zero

    init(options: SparkplugMachine.Options, waitsForHost: Bool) {
        self.options = options
        progress = JournalProgress(window: options.window, hostGrace: waitsForHost ? options.hostGrace : .zero)
        saves = CursorSaves(interval: options.saveInterval, pause: options.journalPause)
    }

    // MARK: - Answers

    mutating func loaded(_ cursor: Int64) {
        isLoading = false
        guard progress.cursor == nil else { return }
        progress.load(cursor)
        saves.loaded(cursor)
    }

    mutating func headMoved(to seq: Int64) {
        progress.headMoved(to: seq)
    }

    /// Records the entries after `start` that are to be sent; returns false if these were not expected.
    ///
    /// A session may end during a fetch. The next one asks for other entries, and the answers may come in any order.
    mutating func fetched(after start: Int64, through seq: Int64, count: Int, at now: Duration) -> Bool {
        guard fetchedAfter == start, start == progress.sent else { return false }
        fetchedAfter = nil
        if seq <= progress.sent { requestAt = now + options.journalPause }
        progress.send(through: seq, count: count, at: now)
        return true
    }

    /// Records that the broker has answered the ping.
    mutating func confirmed(at now: Duration) {
        progress.confirm(isFast: now - pingedAt <= Self.fastAnswer, at: now)
    }

    mutating func saved(_ seq: Int64) {
        saves.saved(seq)
    }

    mutating func failed(_ operation: SparkplugMachine.Operation, at now: Duration) {
        requestAt = now + options.journalPause
        switch operation {
        case .load: isLoading = false
        case .fetch: fetchedAfter = nil
        case .save: saves.failed(at: now)
        }
    }

    /// Starts a session: the primary host, if any, is online.
    mutating func start(at now: Duration) {
        progress.start(at: now)
    }

    /// Ends the session: unconfirmed values will be sent again, and late answers are ignored.
    mutating func reset(at now: Duration) {
        progress.reset(at: now)
        fetchedAfter = nil
    }

    /// Records that the primary host is or was offline: values that it may have missed will be sent again.
    mutating func hostIsOffline() {
        progress.hostIsOffline()
    }

    // MARK: - Requests

    mutating func load(at now: Duration) -> [SparkplugMachine.Effect] {
        guard progress.cursor == nil, !isLoading, now >= requestAt else { return [] }
        isLoading = true
        return [.load]
    }

    mutating func fetch(at now: Duration) -> [SparkplugMachine.Effect] {
        guard progress.canFetch, fetchedAfter == nil, now >= requestAt else { return [] }
        fetchedAfter = progress.sent
        return [.fetch(after: progress.sent, limit: min(options.fetchLimit, progress.room))]
    }

    mutating func save(at now: Duration) -> [SparkplugMachine.Effect] {
        progress.moveResumePoint(at: now)
        return saves.start(progress.resumePoint, at: now).map { [.save($0)] } ?? []
    }

    /// Saves the last cursor at once; `nil` if it is saved already.
    mutating func saveLast(at now: Duration) -> [SparkplugMachine.Effect]? {
        progress.moveResumePoint(at: now)
        if let cursor = saves.startLast(progress.resumePoint) { return [.save(cursor)] }
        return saves.isIdle ? nil : []
    }

    /// True if the broker is to be pinged now.
    mutating func startPing(at now: Duration) -> Bool {
        guard progress.wantsPing, now >= pingAt else { return false }
        progress.ping()
        (pingedAt, pingAt) = (now, now + options.pingPause)
        return true
    }

    // MARK: - Time

    var loadDeadline: Duration? { progress.cursor == nil && !isLoading ? requestAt : nil }
    var saveDeadline: Duration? {
        [saves.time(of: progress.resumePoint), progress.resumeDeadline].compactMap(\.self).min()
    }
    /// The time of the next ping or fetch.
    var sendDeadline: Duration? {
        let ping = progress.wantsPing ? pingAt : nil
        let fetch = progress.canFetch && fetchedAfter == nil ? requestAt : nil
        return [ping, fetch].compactMap(\.self).min()
    }
}
