public import GattherdModel

/// Downloads the stored records of one stream on one link.
///
/// The machine requests records, recognises the end of a request, repeats what failed, and gives up on a device that
/// sends more than it can have. It never sees a record: the counts of ``DownloadFacts`` are enough.
public struct DownloadMachine: Sendable {
    public enum Event: Hashable, Sendable {
        /// The state before the first request.
        case opened(DownloadFacts)
        /// A value of the characteristic that answers.
        case response([UInt8])
        /// All values before the last ``Step/drain`` are decoded.
        case drained(DownloadFacts)
        /// Time has passed, or records have arrived.
        case progress(DownloadFacts)
        /// An operation failed.
        case failed(String)
    }

    public enum Step: Hashable, Sendable {
        case begin(RecordRequest, RecordRequest.Relation = .new)
        case write([UInt8])
        /// Reads the stream's characteristic.
        case read
        /// Demands ``Event/drained(_:)``.
        case drain
        /// All records are received.
        case complete
        /// The request has failed.
        case end
        case finish(Outcome)
    }

    public enum Outcome: Hashable, Sendable {
        case complete
        case failed(String)
    }

    enum State: Hashable, Sendable {
        case idle
        case counting(RecordRequest)
        case transferring(RecordRequest)
        /// Waits before a block is read again.
        case waiting(RecordRequest)
        /// Waits until the payloads of a request are decoded.
        case draining(RecordRequest, Ending)
        /// Waits for the device to confirm that it stopped.
        case aborting(since: Duration, String, isFinal: Bool)
        /// Waits until the decoder has ended the download; it refuses that if history has not stored the last records.
        case completing
        case finished
    }

    /// The end of a request.
    enum Ending: Hashable, Sendable {
        case success
        case none
        /// The reason for the abort; `isFinal` if no further attempt is made.
        case aborted(String, isFinal: Bool)
    }

    /// The maximum number of attempts without a new record.
    static let attempts = 3
    /// The longest wait for a count or for the end of a request that was aborted.
    private static let patience = Duration.seconds(5)
    /// The pause before a block is read again.
    private static let pause = Duration.milliseconds(500)
    private static let unavailable = "history cannot be used now"
    private static let stalled = "decoding does not end"
    private static let lossy = "values were lost, because too many waited for history"
    /// The maximum number of records of a device that does not report their number.
    static let mostRecords = 2_000_000
    /// The maximum number of requests of one download.
    static let mostRequests = 200_000

    let procedure: DownloadDescriptor.Procedure
    let timeout: Duration
    let clock: @Sendable () -> Int64
    var state = State.idle
    var facts = DownloadFacts()
    private(set) var choice: RequestChoice
    /// The number of records that the device has announced; `nil` if unknown.
    public internal(set) var total: Int?
    /// The request for which the device has announced ``total``.
    var counted: RecordRequest?
    private var failures = 0
    var requests = 0
    /// The number of the current request, as the decoder counts requests.
    var begun = 0
    /// True from the start of a request until its end.
    var isRequesting = false
    /// The relation of the current request to the one before it.
    var relation = RecordRequest.Relation.new
    /// The requests that were repeated for missing records.
    private var repetitions = 0
    /// The requests beyond a range since the last new record.
    private var passedRanges = 0
    var lastCount = 0
    var lastChange = Duration.zero
    /// The index of the current block, and the number of payloads before its request.
    var index: Int64 = 0
    var payloadsBefore = 0
    /// The number of times that the current block was read again.
    var rereads = 0
    /// True if the index of a block is the number of its first record.
    let isNumbered: Bool

    /// - Parameters:
    ///   - procedure: The procedure by which the records are requested and sent.
    ///   - isNumbered: True if the device numbers its records.
    ///   - timeout: The time without a record or an answer after which a request has failed.
    ///   - clock: The current time in seconds since 1970, for requests that contain it.
    public init(
        _ procedure: DownloadDescriptor.Procedure,
        isNumbered: Bool = true,
        timeout: Duration,
        clock: @escaping @Sendable () -> Int64
    ) {
        (self.procedure, self.isNumbered) = (procedure, isNumbered)
        (self.timeout, self.clock) = (timeout, clock)
        choice = RequestChoice(procedure, isNumbered: isNumbered)
    }

    public mutating func handle(_ event: Event, at now: Duration) -> [Step] {
        switch event {
        case .opened(let facts):
            self.facts = facts
            begun = facts.requests
            return facts.isLoaded ? start(at: now) : finish(.failed(Self.unavailable))
        case .drained(let facts) where !facts.isLoaded, .progress(let facts) where !facts.isLoaded:
            return stop(at: now)
        case .response(let octets): return respond(octets, at: now)
        case .drained(let facts) where state == .completing && facts.hasLosses && facts.requests == begun:
            self.facts = facts
            return retry(Self.lossy, at: now)
        case .drained where state == .completing: return finish(.complete)
        case .drained(let facts):
            // A stalled disk may answer the demand of an earlier request.
            guard case .draining(let request, let ending) = state, facts.requests == begun else { return [] }
            self.facts = facts
            return conclude(request, ending, at: now)
        case .progress(let facts): return progress(facts, at: now)
        case .failed(let reason): return fail(reason, at: now)
        }
    }

    // MARK: - Answers

    private mutating func respond(_ octets: [UInt8], at now: Duration) -> [Step] {
        switch procedure {
        case .accessControlPoint: return answer(AccessControlPoint.Answer(octets), at: now)
        case .request(_, let end):
            guard case .transferring(let request) = state, end?.fits(octets) == true else { return [] }
            return drain(request, .success, at: now)
        case .blocks: return []
        }
    }

    private mutating func answer(_ answer: AccessControlPoint.Answer?, at now: Duration) -> [Step] {
        switch (state, answer) {
        case (.counting(let request), .count(let count)):
            (total, counted) = (count, request)
            return transfer(request, at: now)
        case (.counting(let request), .result(operation: 4, _)): return transfer(request, at: now)
        case (.transferring(let request), .result(operation: 1, let result)):
            return received(result, of: request, at: now)
        case (.aborting(_, let reason, let isFinal), .result(operation: 3, _)):
            return drain(.all, .aborted(reason, isFinal: isFinal), at: now)
        default: return []
        }
    }

    private mutating func received(_ result: UInt8, of request: RecordRequest, at now: Duration) -> [Step] {
        switch result {
        case AccessControlPoint.success: return drain(request, .success, at: now)
        case AccessControlPoint.noRecords: return drain(request, .none, at: now)
        case _ where AccessControlPoint.isUnsupported(result) && request != .all:
            let replacement = choice.replacement(forUnsupported: request)
            return transfer(replacement, at: now)
        default:
            let reason = "the device says: \(AccessControlPoint.text(result))"
            return drain(request, .aborted(reason, isFinal: false), at: now)
        }
    }

    mutating func drain(_ request: RecordRequest, _ ending: Ending, at now: Duration) -> [Step] {
        state = .draining(request, ending)
        lastChange = now
        return [.drain]
    }

    /// Decides what follows a request whose records are all decoded.
    private mutating func conclude(_ request: RecordRequest, _ ending: Ending, at now: Duration) -> [Step] {
        if facts.stored > 0 { (failures, passedRanges) = (0, 0) }
        if case .aborted(let reason, let isFinal) = ending { return retry(reason, isFinal: isFinal, at: now) }
        if facts.isRestarted { return transfer(.all, at: now) }
        if facts.hasLosses { return retry(Self.lossy, at: now) }
        if case .blocks = procedure { return concludeBlock(request, at: now) }
        // The device may have more than half of the numbers since the newest stored record.
        // Ranges around the wrap of the numbers follow each other without end if all of their records are stored.
        if case .within(let range) = request, facts.hasRangeEnd, passedRanges < Self.attempts {
            passedRanges += 1
            return transfer(choice.next(beyond: range, facts), at: now)
        }
        if request.isFiltered, relation != .continuation {
            // All records of the device may be from after the wrap, and more than a range holds.
            if ending == .none { return transfer(.allAfterNone, at: now) }
            if facts.isAtWrap { return transfer(choice.afterWrap(of: facts), .continuation, at: now) }
        }
        if let again = repetition(of: request) { return transfer(again.request, again.relation, at: now) }
        if case .request = procedure, isUnexpectedlyEmpty(request) { return transfer(.allAfterNone, at: now) }
        return complete(at: now)
    }

    /// The request for records that this host has lost, if any.
    ///
    /// A device may have no records with missing numbers, so a hole that stays is not requested for ever.
    mutating func repetition(
        of request: RecordRequest
    ) -> (request: RecordRequest, relation: RecordRequest.Relation)? {
        let isLacking = request == counted && total.map { facts.count < $0 } ?? false
        guard facts.hasHoles || isLacking || isUnexpectedlyEmpty(request) else { return nil }
        guard repetitions == 0 || (repetitions < Self.attempts && facts.stored > 0) else { return nil }
        repetitions += 1
        // Without the number of the missing record, none is known to be the last before it.
        return isLacking && !facts.isAnchored ? (request, .repetition) : (nextRequest, .new)
    }

    mutating func complete(at now: Duration) -> [Step] {
        isRequesting = false
        (state, lastChange) = (.completing, now)
        return [.complete, .drain]
    }

    /// True if nothing arrived, although the newest stored record was requested again.
    private func isUnexpectedlyEmpty(_ request: RecordRequest) -> Bool {
        facts.count == 0 && request.isFiltered && relation != .continuation
    }

    // MARK: - Time

    private mutating func progress(_ facts: DownloadFacts, at now: Duration) -> [Step] {
        switch state {
        case .counting(let request):
            return now - lastChange < Self.patience ? [] : transfer(request, at: now)
        case .transferring(let request): return watch(request, facts, at: now)
        case .waiting(let request) where now - lastChange >= Self.pause: return readBlock(request, at: now)
        case .draining where now - lastChange > timeout + Self.patience: return retry(Self.stalled, at: now)
        case .completing where now - lastChange > timeout + Self.patience: return finish(.failed(Self.stalled))
        case .aborting(let since, let reason, let isFinal) where now - since >= Self.patience:
            return drain(.all, .aborted(reason, isFinal: isFinal), at: now)
        default: return []
        }
    }

    private mutating func watch(_ request: RecordRequest, _ facts: DownloadFacts, at now: Duration) -> [Step] {
        if facts.requests < begun { return isLate(at: now) ? abort(lateness, at: now, isFinal: false) : [] }
        self.facts = facts
        let isEndless = if case .request(_, nil) = procedure { true } else { false }
        let received = max(facts.count, facts.payloads)
        // Records that the device makes meanwhile would prolong a request that only a pause ends.
        let progress = received - (isEndless ? facts.live : 0)
        if progress > lastCount { (lastCount, lastChange) = (progress, now) }
        if received > limit(of: request) {
            return abort("the device sends more records than it can have", at: now, isFinal: true)
        }
        if case .blocks = procedure, facts.payloads > payloadsBefore { return drain(request, .success, at: now) }
        guard isLate(at: now) else { return [] }
        if isEndless, progress > 0 { return drain(request, .success, at: now) }
        return abort(lateness, at: now, isFinal: false)
    }

    private func isLate(at now: Duration) -> Bool { now - lastChange >= timeout }
    private var lateness: String { "no answer within \(timeout)" }

    /// The maximum number of records of a request; a count applies only to the request that was counted.
    private func limit(of request: RecordRequest) -> Int {
        guard let total, counted ?? request == request else { return Self.mostRecords }
        return 2 * min(total, Self.mostRecords) + 1000
    }

    private mutating func abort(_ reason: String, at now: Duration, isFinal: Bool) -> [Step] {
        guard case .accessControlPoint = procedure else { return retry(reason, isFinal: isFinal, at: now) }
        state = .aborting(since: now, reason, isFinal: isFinal)
        return [.write([3, 0])]
    }

    /// Aborts a request that could not be written: the device may refuse it while it answers one of a killed daemon.
    private mutating func fail(_ reason: String, at now: Duration) -> [Step] {
        switch state {
        case .counting, .transferring: abort(reason, at: now, isFinal: false)
        default: retry(reason, at: now)
        }
    }

    mutating func retry(_ reason: String, isFinal: Bool = false, at now: Duration) -> [Step] {
        (failures, passedRanges) = (failures + 1, 0)
        guard !isFinal, failures < Self.attempts, state != .finished else { return finish(.failed(reason)) }
        return endRequest() + start(at: now)
    }

    /// Gives up while history stores nothing: the device would not be asked for these records again.
    private mutating func stop(at now: Duration) -> [Step] {
        guard case .transferring = state else { return finish(.failed(Self.unavailable)) }
        return abort(Self.unavailable, at: now, isFinal: true)
    }

    mutating func finish(_ outcome: Outcome) -> [Step] {
        guard state != .finished else { return [] }
        state = .finished
        return endRequest() + [.finish(outcome)]
    }

    private mutating func endRequest() -> [Step] {
        defer { isRequesting = false }
        return isRequesting ? [.end] : []
    }

    /// Continues the same request with another block.
    mutating func continueTransfer(_ request: RecordRequest, at now: Duration) -> [Step] {
        requests += 1
        guard requests <= Self.mostRequests else { return finish(.failed("the device sends records without end")) }
        state = .transferring(request)
        lastChange = now
        return requestBlock(request, at: now)
    }
}
