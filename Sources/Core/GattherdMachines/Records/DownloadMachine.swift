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
        case begin(RecordRequest)
        case write([UInt8])
        /// Reads the stream's characteristic.
        case read
        /// Demands ``Event/drained(_:)``.
        case drain
        /// All records are received.
        case complete
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
        /// Waits until the payloads of a request are decoded.
        case draining(RecordRequest, Ending)
        /// Waits for the device to confirm that it stopped.
        case aborting(since: Duration, String)
        case finished
    }

    /// The end of a request.
    enum Ending: Hashable, Sendable {
        case success
        case none
        case aborted(String)
    }

    /// The maximum number of attempts without a new record.
    static let attempts = 3
    /// The longest wait for a count or for the end of a request that was aborted.
    private static let patience = Duration.seconds(5)
    /// The maximum number of records of a device that does not report their number.
    static let mostRecords = 2_000_000
    /// The maximum number of requests of one download.
    private static let mostRequests = 200_000

    let procedure: DownloadDescriptor.Procedure
    let timeout: Duration
    private let clock: @Sendable () -> Int64
    var state = State.idle
    var facts = DownloadFacts()
    /// True if the device filters by number, as far as known.
    var canFilter = true
    /// True if the device filters by a range of numbers, as far as known.
    private var canFilterRange = true
    /// The number of records that the device has announced; `nil` if unknown.
    public internal(set) var total: Int?
    private var failures = 0
    private var requests = 0
    /// The number of the current request, as the decoder counts them.
    private var begun = 0
    /// True after a request that was repeated for missing records.
    private var hasRepeated = false
    private var lastCount = 0
    private var lastChange = Duration.zero
    /// The index of the current block, and the payloads before its request.
    var index: Int64 = 0
    var payloadsBefore = 0
    /// True if the index of a block is the number of its first record.
    let isNumbered: Bool

    /// - Parameters:
    ///   - procedure: The procedure on the air.
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
    }

    public mutating func handle(_ event: Event, at now: Duration) -> [Step] {
        switch event {
        case .opened(let facts):
            self.facts = facts
            begun = facts.requests
            return facts.isLoaded ? start(at: now) : finish(.failed("history is not readable yet"))
        case .response(let octets): return respond(octets, at: now)
        case .drained(let facts):
            self.facts = facts
            guard case .draining(let request, let ending) = state else { return [] }
            return conclude(request, ending, at: now)
        case .progress(let facts): return progress(facts, at: now)
        case .failed(let reason): return retry(reason, at: now)
        }
    }

    // MARK: - Requests

    /// Starts with a count, if the procedure has one.
    private mutating func start(at now: Duration) -> [Step] {
        let request = nextRequest
        guard case .accessControlPoint(let width) = procedure else { return transfer(request, at: now) }
        state = .counting(request)
        (lastChange, total) = (now, nil)
        return [.write([4] + AccessControlPoint.filter(request, width: width))]
    }

    private var nextRequest: RecordRequest {
        guard let number = facts.resumption else { return .all }
        if case .accessControlPoint(let width) = procedure {
            guard canFilter, width > 0, number >> Int64(8 * width) == 0 else { return .all }
            if facts.hasWrapped, let range = range(from: number) { return .within(range) }
        }
        return .from(number)
    }

    /// Returns the numbers from `number` on that are not from before the numbers wrapped; `nil` if all are not.
    ///
    /// A ring whose numbers wrap has less than half of them. Without the range, each of several links that end early
    /// would first bring the same old records.
    private func range(from number: Int64) -> ClosedRange<Int64>? {
        guard let highest = facts.highest, canFilterRange else { return nil }
        let half = highest / 2
        return number <= half ? number...number + half : nil
    }

    mutating func transfer(_ request: RecordRequest, at now: Duration) -> [Step] {
        requests += 1
        guard requests <= Self.mostRequests else { return finish(.failed("the device has no end of records")) }
        state = .transferring(request)
        (lastCount, lastChange) = (0, now)
        begun += 1
        switch procedure {
        case .accessControlPoint(let width):
            return [.begin(request), .write([1] + AccessControlPoint.filter(request, width: width))]
        case .request(let template, _):
            return write(template, after: [.begin(request)])
        case .blocks(_, let first, _):
            index = isNumbered ? max(first, facts.resumption ?? first) : first
            payloadsBefore = 0
            return [.begin(request)] + requestBlock(request)
        }
    }

    mutating func write(_ template: WriteTemplate, after steps: [Step]) -> [Step] {
        let (facts, index) = (facts, index)
        let octets = template.octets { variable in
            switch variable {
            case .next: facts.resumption.map { $0 + 1 } ?? 0
            case .index: index
            case .since: max(0, facts.newest ?? 0)
            case .now: clock()
            }
        }
        guard let octets else { return finish(.failed("a number does not fit into the request")) }
        return steps + [.write(octets)]
    }

    // MARK: - Answers

    private mutating func respond(_ octets: [UInt8], at now: Duration) -> [Step] {
        switch procedure {
        case .accessControlPoint: return answer(AccessControlPoint.Answer(octets), at: now)
        case .request(_, let end):
            guard case .transferring(let request) = state, end?.fits(octets) == true else { return [] }
            return drain(request, .success)
        case .blocks: return []
        }
    }

    private mutating func answer(_ answer: AccessControlPoint.Answer?, at now: Duration) -> [Step] {
        switch (state, answer) {
        case (.counting(let request), .count(let count)):
            total = count
            return transfer(request, at: now)
        case (.counting(let request), .result(operation: 4, _)): return transfer(request, at: now)
        case (.transferring(let request), .result(operation: 1, let result)):
            return received(result, of: request, at: now)
        case (.aborting(_, let reason), .result(operation: 3, _)): return drain(.all, .aborted(reason))
        default: return []
        }
    }

    private mutating func received(_ result: UInt8, of request: RecordRequest, at now: Duration) -> [Step] {
        switch result {
        case AccessControlPoint.success: return drain(request, .success)
        case AccessControlPoint.noRecords: return drain(request, .none)
        case _ where AccessControlPoint.isUnsupported(result) && request != .all:
            guard case .within(let range) = request else {
                canFilter = false
                return transfer(.all, at: now)
            }
            canFilterRange = false
            return transfer(.from(range.lowerBound), at: now)
        default: return drain(request, .aborted("the device says: \(AccessControlPoint.text(result))"))
        }
    }

    mutating func drain(_ request: RecordRequest, _ ending: Ending) -> [Step] {
        state = .draining(request, ending)
        return [.drain]
    }

    /// Decides what follows a request whose records are all decoded.
    private mutating func conclude(_ request: RecordRequest, _ ending: Ending, at now: Duration) -> [Step] {
        if facts.stored > 0 { failures = 0 }
        if case .aborted(let reason) = ending { return retry(reason, at: now) }
        if case .blocks = procedure { return concludeBlock(request, at: now) }
        if case .accessControlPoint = procedure, request.lowest > 0 {
            if facts.isAtWrap { return transfer(range(from: 0).map { .within($0) } ?? .from(0), at: now) }
            if facts.isRestarted { return transfer(.all, at: now) }
            if ending == .none { return transfer(.allAfterNone, at: now) }
        }
        if facts.hasHoles || isEmptyInVain(request), !hasRepeated {
            hasRepeated = true
            return transfer(nextRequest, at: now)
        }
        return [.complete] + finish(.complete)
    }

    /// True if a request by number ended without a record.
    private func isEmptyInVain(_ request: RecordRequest) -> Bool {
        guard case .accessControlPoint = procedure else { return false }
        return facts.count == 0 && request.lowest > 0
    }

    // MARK: - Time

    private mutating func progress(_ facts: DownloadFacts, at now: Duration) -> [Step] {
        switch state {
        case .counting(let request):
            return now - lastChange < Self.patience ? [] : transfer(request, at: now)
        case .transferring(let request): return watch(request, facts, at: now)
        case .draining where now - lastChange > timeout + Self.patience: return retry("decoding does not end", at: now)
        case .aborting(let since, let reason) where now - since >= Self.patience: return drain(.all, .aborted(reason))
        default: return []
        }
    }

    private mutating func watch(_ request: RecordRequest, _ facts: DownloadFacts, at now: Duration) -> [Step] {
        if facts.requests < begun { return isLate(at: now) ? abort(lateness, at: now, isFinal: false) : [] }
        self.facts = facts
        let progress = max(facts.count, facts.payloads)
        if progress > lastCount { (lastCount, lastChange) = (progress, now) }
        if progress > limit { return abort("the device sends more records than it can have", at: now, isFinal: true) }
        if case .blocks = procedure, facts.payloads > payloadsBefore { return drain(request, .success) }
        guard isLate(at: now) else { return [] }
        if case .request(_, nil) = procedure, progress > 0 { return drain(request, .success) }
        return abort(lateness, at: now, isFinal: false)
    }

    private func isLate(at now: Duration) -> Bool { now - lastChange >= timeout }
    private var lateness: String { "no answer within \(timeout)" }

    private var limit: Int { total.map { 2 * $0 + 1000 } ?? Self.mostRecords }

    private mutating func abort(_ reason: String, at now: Duration, isFinal: Bool) -> [Step] {
        if isFinal { failures = Self.attempts }
        guard case .accessControlPoint = procedure else { return retry(reason, at: now) }
        state = .aborting(since: now, reason)
        return [.write([3, 0])]
    }

    mutating func retry(_ reason: String, at now: Duration) -> [Step] {
        failures += 1
        guard failures < Self.attempts, state != .finished else { return finish(.failed(reason)) }
        return start(at: now)
    }

    mutating func finish(_ outcome: Outcome) -> [Step] {
        guard state != .finished else { return [] }
        state = .finished
        return [.finish(outcome)]
    }

    /// Continues the same request with another block.
    mutating func continueTransfer(_ request: RecordRequest, at now: Duration) -> [Step] {
        requests += 1
        guard requests <= Self.mostRequests else { return finish(.failed("the device has no end of records")) }
        state = .transferring(request)
        lastChange = now
        return requestBlock(request)
    }
}
